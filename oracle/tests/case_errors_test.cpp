// Every kind of bad case is refused with its file, its field and a reason, on one line.
#include <gtest/gtest.h>

#include "oracle/case.h"
#include "oracle/tests/case_random.h"

namespace attest {
namespace {

struct Bad {
  const char* title;
  std::string text;
  const char* field;   // must stand in the message
  const char* reason;  // so must this
};

std::string deep(int levels) {
  return minimal("", "\"values\": " + std::string(static_cast<std::size_t>(levels), '[') +
                         std::string(static_cast<std::size_t>(levels), ']'));
}

const std::vector<Bad> bad_cases = {
    {"empty", "", "line 1", "not JSON"},
    {"truncated", minimal("", "").substr(0, 60), "line 1", "not JSON"},
    {"garbage", "\x01\x02garbage", "line 1", "not JSON"},
    {"text after the end", minimal("", "") + "x", "line 1", "not JSON"},
    {"a second line", "{\n  \"schema\": tru }", "line 2", "not JSON"},
    {"unclosed comment", "/* ", "line 1", "not JSON"},
    {"invalid UTF-8", minimal("", "\"about\": \"\xff\""), "line 1", "UTF-8"},
    {"invalid UTF-8 in a comment", "// \xc0\x80\n" + minimal("", ""), "line 1", "UTF-8"},
    {"surrogate", minimal("", "\"about\": \"\xed\xa0\x80\""), "line 1", "UTF-8"},
    {"array at the top", "[]", "$", "object"},
    {"null at the top", "null", "$", "object"},
    {"deep nesting", deep(100000), "values", "8 levels"},
    {"no schema", R"({"op": "forward", "shape": {}})", "schema", "missing"},
    {"another schema", R"({"schema": "attest-case/2"})", "schema", "attest-case/1"},
    {"schema of the wrong type", R"({"schema": 1})", "schema", "string"},
    {"no shape", R"({"schema": "attest-case/1"})", "shape", "missing"},
    {"unknown field", minimal("", R"("colour": 1)"), "colour", "unknown field"},
    {"unknown field with odd bytes", minimal("", R"("a\nb": 1)"), "a\\x0ab", "unknown field"},
    {"unknown field below", minimal("", R"("mask": {"casual": "none"})"), "mask.casual", "unknown field"},
    {"unknown size", minimal(R"(, "n": 3)", ""), "shape.n", "unknown field"},
    {"duplicated key", minimal("", R"("dtype": "fp16", "dtype": "fp32")"), "dtype", "twice"},
    {"duplicated key below", minimal(R"(, "tq": 2)", ""), "shape.tq", "twice"},
    {"unknown op", R"({"schema": "attest-case/1", "op": "backward", "shape": {}})", "op", "forward"},
    {"unknown dtype", minimal("", R"("dtype": "fp8")"), "dtype", "bf16"},
    {"unknown causal", minimal("", R"("mask": {"causal": true})"), "mask.causal", "string"},
    {"size as text", minimal(R"(, "batch": "1")", ""), "shape.batch", "integer"},
    {"size as fraction", minimal(R"(, "batch": 1.5)", ""), "shape.batch", "integer"},
    {"negative size", minimal(R"(, "batch": -1)", ""), "shape.batch", "out of range"},
    {"size beyond 64 bits", minimal(R"(, "batch": 18446744073709551616)", ""), "shape.batch", "integer"},
    {"size beyond int64", minimal(R"(, "batch": 18446744073709551615)", ""), "shape.batch", "out of range"},
    {"size beyond any memory", minimal(R"(, "batch": 1000000000000)", ""), "shape", "limit"},
    {"sizes whose product overflows", minimal(R"(, "batch": 1000000000000, "q_heads": 1000000000000)", ""), "shape",
     "overflow"},
    {"mask beyond memory",
     R"({"schema": "attest-case/1", "shape": {"tq": 1000000, "tk": 1000000}, "mask": {"visible": {"pattern": "random"}}})",
     "shape", "limit"},
    {"padding beyond memory", minimal(R"(, "batch": 4000)", R"("layout": {"q": {"row_padding": 1000000}})"), "shape",
     "limit"},
    {"huge padding", minimal("", R"("layout": {"q": {"row_padding": 4611686018427387904}})"), "layout.q.row_padding",
     "range"},
    {"splits beyond memory", minimal("", R"("tiling": {"splits": 1000000000})"), "shape", "limit"},
    {"no width", R"({"schema": "attest-case/1", "shape": {"d_v": 0}})", "shape.d_v", "out of range"},
    {"no heads", R"({"schema": "attest-case/1", "shape": {"kv_heads": 0}})", "shape.kv_heads", "out of range"},
    {"uneven heads", minimal(R"(, "q_heads": 3, "kv_heads": 2)", ""), "shape.q_heads", "multiple"},
    {"a size of another op", R"({"schema": "attest-case/1", "op": "merge", "shape": {"tk": 3}})", "shape.tk",
     "no meaning"},
    {"a mask on a merge", R"({"schema": "attest-case/1", "op": "merge", "shape": {}, "mask": {"causal": "top-left"}})",
     "mask", "no meaning"},
    {"a scale on a step", R"({"schema": "attest-case/1", "op": "step", "shape": {}, "scale": 1})", "scale",
     "no meaning"},
    {"a normalised step", R"({"schema": "attest-case/1", "op": "step", "state": "olse", "shape": {}})", "state",
     "ml or mla"},
    {"kv_len too long", minimal("", R"("mask": {"kv_len": [2]})"), "mask.kv_len[0]", "out of range"},
    {"kv_len negative", minimal("", R"("mask": {"kv_len": [-2]})"), "mask.kv_len[0]", "out of range"},
    {"kv_len count", minimal("", R"("mask": {"kv_len": [1, 1]})"), "mask.kv_len", "batch"},
    {"kv_len type", minimal("", R"("mask": {"kv_len": 1})"), "mask.kv_len", "array"},
    {"mask pattern", minimal("", R"("mask": {"visible": {"pattern": "stripes"}})"), "mask.visible.pattern",
     "checkerboard"},
    {"mask count", minimal("", R"("mask": {"visible": {"rows": ["11"]}})"), "mask.visible.literal", "2 entries"},
    {"mask digit", minimal("", R"("mask": {"additive": {"rows": ["2"]}})"), "mask.additive.rows[0]", "0 (masked)"},
    {"mask shape", minimal("", R"("mask": {"visible": {"pattern": "random", "shape": [1, 1, 2, 1]}})"),
     "mask.visible.shape[2]", "broadcast"},
    {"mask rank", minimal("", R"("mask": {"visible": {"pattern": "random", "shape": [1]}})"), "mask.visible.shape",
     "four"},
    {"mask density", minimal("", R"("mask": {"visible": {"pattern": "random", "density": "nan"}})"),
     "mask.visible.density", "0 to 1"},
    {"pattern and rows", minimal("", R"("mask": {"visible": {"pattern": "random", "rows": ["1"]}})"), "mask.visible",
     "keep one"},
    {"family", minimal("", R"("values": {"family": "cauchy"})"), "values.family", "gaussian"},
    {"parameter", minimal("", R"("values": {"parameters": {"magnitude": 3}})"), "values.parameters.magnitude", "sigma"},
    {"parameter range", minimal("", R"("values": {"family": "swings", "parameters": {"pattern": 4}})"),
     "values.parameters.pattern", "range"},
    {"parameter fraction", minimal("", R"("values": {"family": "swings", "parameters": {"pattern": 0.5}})"),
     "values.parameters.pattern", "whole"},
    {"parameter NaN", minimal("", R"("values": {"parameters": {"sigma": "nan"}})"), "values.parameters.sigma", "range"},
    {"seed text", minimal("", R"("values": {"seed": "0x12"})"), "values.seed", "digits"},
    {"seed negative", minimal("", R"("values": {"seed": -1})"), "values.seed", "2^64"},
    {"seed beyond", minimal("", R"("values": {"seed": "18446744073709551616"})"), "values.seed", "2^64"},
    {"literal count", minimal("", R"("values": {"tensors": {"v": [1]}})"), "values.tensors.v", "1 numbers"},
    {"literal name", minimal("", R"("values": {"tensors": {"w": [1]}})"), "values.tensors.w", "no such tensor"},
    {"literal type", minimal("", R"("values": {"tensors": {"v": [1, true]}})"), "values.tensors.v[1]", "number"},
    {"nested literal", minimal("", R"("values": {"tensors": {"v": [[1, 2]]}})"), "values.tensors.v[0]", "number"},
    {"bad number", minimal("", R"("values": {"tensors": {"v": [1, "1,5"]}})"), "values.tensors.v[1]", "1,5"},
    {"inexact hex", minimal("", R"("values": {"tensors": {"v": [1, "0x1.00000000000001p0"]}})"), "values.tensors.v[1]",
     "double"},
    {"overflowing number", minimal("", R"("scale": 1e999)"), "line 1", "overflows"},
    {"inexact integer", minimal("", R"("scale": 9007199254740993)"), "scale", "exact"},
    {"no tensor", minimal("", R"("values": {"tensors": {"v": {}}})"), "values.tensors.v", "npy"},
    {"empty path", minimal("", R"("values": {"tensors": {"v": {"npy": ""}}})"), "values.tensors.v.npy", "empty"},
    {"path above", minimal("", R"("values": {"tensors": {"v": {"npy": "a/../../x.npy"}}})"), "values.tensors.v.npy",
     "folder"},
    {"absolute path", minimal("", R"("values": {"tensors": {"v": {"npy": "/etc/passwd"}}})"), "values.tensors.v.npy",
     "folder"},
    {"path with NUL", minimal("", R"("values": {"tensors": {"v": {"npy": "a\u0000b"}}})"), "values.tensors.v.npy",
     "folder"},
    {"expected name", minimal("", R"("expected": {"tensors": {"m": [1]}})"), "expected.tensors.m", "no such tensor"},
    {"expected count", minimal("", R"("expected": {"tensors": {"o": [1]}})"), "expected.tensors.o", "1 numbers"},
    {"tolerance", minimal("", R"("expected": {"tolerance": -1})"), "expected.tolerance", "0 or more"},
    {"tolerance NaN", minimal("", R"("expected": {"tolerance": "nan"})"), "expected.tolerance", "0 or more"},
    {"threads", minimal("", R"("tiling": {"threads": 0})"), "tiling.threads", "out of range"},
    {"block", minimal("", R"("tiling": {"block_k": -3})"), "tiling.block_k", "out of range"},
    {"window", minimal("", R"("reserved": {"window_left": -2})"), "reserved.window_left", "out of range"},
    {"a word for a flag", minimal("", R"("reserved": {"bias": "yes"})"), "reserved.bias", "true or false"},
    {"kernels", minimal("", R"("kernels": "cpu")"), "kernels", "array"},
    {"two names of one tensor",
     R"({"schema": "attest-case/1", "op": "merge", "state": "olse", "shape": {},
         "values": {"tensors": {"lse": [0, 0], "m": [0, 0]}}})",
     "values.tensors.m", "twice"},
};

TEST(CaseErrors, NameFileFieldAndReason) {
  for (const Bad& bad : bad_cases) {
    SCOPED_TRACE(bad.title);
    try {
      parse_case(bad.text, "some.case");
      ADD_FAILURE() << "was accepted";
    } catch (const CaseError& e) {
      const std::string what = e.what();
      EXPECT_EQ(0u, what.find("some.case: " + std::string(bad.field))) << what;
      EXPECT_NE(what.npos, what.find(bad.reason)) << what;
      EXPECT_EQ(what.npos, what.find('\n')) << what;
      EXPECT_LT(what.size(), 1200u);
    }
  }
}

TEST(CaseErrors, TheSmallestCaseIsFine) { EXPECT_NO_THROW(parse_case(minimal("", ""), "some.case")); }

TEST(CaseErrors, OddScalesAndReservedOptionsAreForKernelsToRefuse) {
  for (const char* scale : {"0", "-1", "\"inf\"", "\"nan:7fc00001\""})
    EXPECT_NO_THROW(parse_case(minimal("", std::string("\"scale\": ") + scale), "some.case"));
  EXPECT_NO_THROW(
      parse_case(minimal("", R"("reserved": {"softcap": 30, "window_left": 0, "bias": true})"), "some.case"));
}

TEST(CaseErrors, FilesThatAreNoCases) {
  for (const char* path : {"/nonexistent/x.case", "/", "/dev/null", "/dev/zero"}) {
    try {
      load_case(path);
      ADD_FAILURE() << path;
    } catch (const CaseError& e) {
      EXPECT_EQ(0u, std::string(e.what()).find(std::string(path) + ": file: ")) << e.what();
    }
  }
}

}  // namespace
}  // namespace attest
