// .npy files: what is read, and that every malformed one is refused with its reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "oracle/case.h"
#include "oracle/npy.h"
#include "oracle/philox.h"
#include "oracle/recipe.h"
#include "oracle/tests/case_random.h"

namespace attest {
namespace {

class NpyFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("attest-npy-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "sub");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }

  void write(const char* name, const std::string& bytes) const { std::ofstream(path(name), std::ios::binary) << bytes; }

  // A file of a version with a header and data, put together by hand.
  static std::string file(int version, std::string header, const std::string& data) {
    std::string s = "\x93NUMPY";
    s += static_cast<char>(version);
    s += '\0';
    header += '\n';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) s += static_cast<char>(header.size() >> (8 * i) & 0xff);
    return s + header + data;
  }
  static std::string header(const std::string& type, const std::string& shape, const std::string& order = "False") {
    return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  }

  void refuse(const std::string& bytes, const std::string& reason) const {
    write("bad.npy", bytes);
    try {
      read_npy(path("bad.npy"), "values.tensors.v.npy");
      ADD_FAILURE() << "accepted; wanted: " << reason;
    } catch (const CaseError& e) {
      const std::string what = e.what();
      EXPECT_NE(what.npos, what.find("bad.npy: values.tensors.v.npy: ")) << what;
      EXPECT_NE(what.npos, what.find(reason)) << what;
      EXPECT_EQ(what.npos, what.find('\n')) << what;
    }
  }

  std::filesystem::path folder_;
};

TEST_F(NpyFile, ReadsWhatItWrote) {
  const std::vector<double> xs = {0.1, -0.0, INFINITY, 1e300, 5e-324, 3};
  write_npy(path("a.npy"), "<f8", {2, 3}, xs);
  const Npy a = read_npy(path("a.npy"), "q");
  EXPECT_EQ("<f8", a.type);
  EXPECT_EQ((std::vector<std::int64_t>{2, 3}), a.shape);
  EXPECT_EQ(xs, a.values);
  EXPECT_TRUE(std::signbit(a.values[1]));
  write_npy(path("b.npy"), "<f4", {6}, xs);
  EXPECT_EQ(0.1f, read_npy(path("b.npy"), "q").values[0]);
  EXPECT_EQ(0, std::filesystem::file_size(path("b.npy")) % 8);
}

TEST_F(NpyFile, ReadsAllVersionsTypesAndShapes) {
  for (int version : {1, 2, 3}) {
    write("v.npy", file(version, header("<f2", "(2,)"), std::string("\x00\x3c\x01\x7e", 4)));
    const Npy npy = read_npy(path("v.npy"), "q");
    EXPECT_EQ(1, npy.values[0]);
    EXPECT_TRUE(std::isnan(npy.values[1]));
  }
  write("u.npy", file(1, header("|u1", "(1, 3)"), std::string("\x00\x01\xff", 3)));
  EXPECT_EQ((std::vector<double>{0, 1, 255}), read_npy(path("u.npy"), "q").values);
  write("s.npy", file(1, header("|u1", "()"), "\x07"));
  EXPECT_EQ((std::vector<double>{7}), read_npy(path("s.npy"), "q").values);
  write("e.npy", file(1, header("<f8", "(0, 4)"), ""));
  EXPECT_TRUE(read_npy(path("e.npy"), "q").values.empty());
  write("o.npy", file(1, "{\"shape\":(1,),'fortran_order':False,'descr':'|u1'}", "\x07"));  // any order, no commas
  EXPECT_EQ(7, read_npy(path("o.npy"), "q").values[0]);
}

TEST_F(NpyFile, RefusesMalformedFiles) {
  const std::string good = file(1, header("<f8", "(2,)"), std::string(16, 'x'));
  refuse("", "truncated");
  refuse("PK\x03\x04 a zip archive", "not a .npy file");
  refuse(good.substr(0, 9), "truncated");
  refuse(good.substr(0, 40), "truncated");
  refuse(good.substr(0, good.size() - 1), "truncated: 15 bytes");
  refuse(good + "x", "bytes after");
  refuse(file(4, header("<f8", "(2,)"), std::string(16, 'x')), "version 4.0");
  refuse(file(1, header(">f8", "(2,)"), std::string(16, 'x')), "dtype '>f8'");
  refuse(file(1, header("<i8", "(2,)"), std::string(16, 'x')), "dtype '<i8'");
  refuse(file(1, header("<f8", "(2,)", "True"), std::string(16, 'x')), "Fortran order");
  refuse(file(1, header("<f8", "(2,)", "Maybe"), std::string(16, 'x')), "fortran_order");
  refuse(file(1, header("<f8", "(-2,)"), std::string(16, 'x')), "shape");
  refuse(file(1, header("<f8", "2"), std::string(16, 'x')), "'(' expected");
  refuse(file(1, header("<f8", "(99999999999999999999,)"), ""), "shape");
  refuse(file(1, header("<f8", "(999999999999999999, 999999999999999999)"), ""), "overflows");
  refuse(file(1, header("<f8", "(999999999999999999,)"), ""), "truncated");
  refuse(file(1, header("<f8", "(2, 576460752303423488)"), ""), "overflows");  // 2^60 elements of 8 bytes
  refuse(file(1, header("<f8", "(1,1,1,1,1,1,1,1,1)"), std::string(8, 'x')), "8 axes");
  refuse(file(1, "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", std::string(8, 'x')),
         "structured");
  refuse(file(1, "{'descr': '<f8', 'fortran_order': False}", ""), "lacks");
  refuse(file(1, "{'descr': '<f8', 'descr': '<f8'}", ""), "unexpected header entry");
  refuse(file(1, header("<f8", "(2,)") + "import os", std::string(16, 'x')), "text after");
  refuse(file(1, "", std::string(16, 'x')), "'{' expected");
  std::string believable = file(2, header("<f8", "(2,)"), "");
  believable[11] = '\x7f';  // a header of 2 GiB
  refuse(believable, "not believable");
}

TEST_F(NpyFile, MutationsNeverCrash) {
  const std::string good = file(1, header("<f2", "(2, 3)"), std::string(12, 'x'));
  RandomStream random(8, 8);
  int read = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    std::string bytes = good;
    for (std::uint64_t n = 0; n <= i % 2; ++n)
      bytes[random.bits(3 * i + n) % bytes.size()] = static_cast<char>(random.bits(5 * i + 2 + n));
    write("m.npy", bytes);
    try {
      read_npy(path("m.npy"), "q");
      ++read;
    } catch (const CaseError&) {
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_LT(read, 3900);
}

TEST_F(NpyFile, ACaseNamesItsTensorsFiles) {
  write_npy(path("sub/v.npy"), "<f4", {1, 2}, {5, 6});
  Case c = parse_case(minimal("", R"("values": {"tensors": {"v": {"npy": "sub/v.npy"}}})"), "test");
  save_case(c, path("x.case"));
  const Case loaded = load_case(path("x.case"));
  EXPECT_EQ((std::vector<double>{5, 6}), make_values(loaded).at("v"));

  const auto refused = [&](const char* reason) {
    try {
      load_case(path("x.case"));
      ADD_FAILURE() << reason;
    } catch (const CaseError& e) {
      const std::string what = e.what();
      EXPECT_NE(what.npos, what.find("x.case")) << what;
      EXPECT_NE(what.npos, what.find("values.tensors.v.npy")) << what;
      EXPECT_NE(what.npos, what.find(reason)) << what;
    }
  };
  write_npy(path("sub/v.npy"), "<f4", {2, 2}, {5, 6, 7, 8});
  refused("shape");
  write("sub/v.npy", "junk junk junk");
  refused("not a .npy file");
  std::filesystem::remove(path("sub/v.npy"));
  refused("no such .npy file");
  std::filesystem::create_directories(path("sub/v.npy"));
  refused("regular file");
}

}  // namespace
}  // namespace attest
