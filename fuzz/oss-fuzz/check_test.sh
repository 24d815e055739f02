#!/bin/bash -eu
# Does check.sh say no? Each case below builds one small target with one thing wrong, and check.sh must name it. The
# first has nothing wrong, and must pass. Needs clang and zip; takes about a minute.

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/attest-check-test.XXXXXX)
trap 'rm -rf "$work"' EXIT
failed=0

# A target with enough code for check.sh's limits. Each BREAK is one mistake.
cat >"$work/target.cpp" <<'CODE'
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <string>
#include <vector>

static int shifted(int x, int by) { return (x << by) + x * by - by; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
#if defined(BREAK_START)
  std::exit(3);
#elif defined(BREAK_PATH)
  if (std::FILE* f = std::fopen(BREAK_PATH, "r")) std::fclose(f);
  else std::abort();
#elif defined(BREAK_WRITE)
  if (std::FILE* f = std::fopen("left-behind", "w")) std::fclose(f);
  else std::abort();
#elif defined(BREAK_HOME)
  if (std::string(std::getenv("HOME")).empty()) return 0;
#elif defined(BREAK_SEED)
  if (size == 5 && data[0] == 's') std::abort();
#endif
  std::string text(reinterpret_cast<const char*>(data), size < 20 ? size : 20);
  std::map<std::string, std::vector<int>> words;
  for (char c : text) words[std::string(1, c)].push_back(shifted(c & 7, c & 3));
  static const std::regex pattern("(a|b)*c[0-9]+(x?y+|z)");
  if (std::regex_search(text, pattern)) std::puts("match");
  return words.size() > 25 ? 1 : 0;
}
CODE

asan="-fsanitize=address -fsanitize=fuzzer-no-link"
build() { # folder, compiler flags, linker flags
  mkdir "$1"
  # shellcheck disable=SC2086  # flags
  ${CXX:-clang++} -O1 -gline-tables-only $2 -c "$work/target.cpp" -o "$work/target.o"
  # shellcheck disable=SC2086
  ${CXX:-clang++} -fsanitize=address,fuzzer ${3--static-libstdc++ -static-libgcc} "$work/target.o" -o "$1/fuzz_small"
  printf 'seed\n' >"$work/seed"
  (cd "$work" && zip -q "$1/fuzz_small_seed_corpus.zip" seed)
  printf '[libfuzzer]\nmax_len = 64\n' >"$1/fuzz_small.options"
}

expect() { # what, folder, exit code, words of the complaint, arguments of check.sh...
  local what=$1 folder=$2 code=$3 words=$4 got=0
  shift 4
  find "$folder" -type f -exec cksum {} + | sort >"$work/before"
  "$here/check.sh" "$folder" "$@" >"$work/said" 2>&1 || got=$?
  find "$folder" -type f -exec cksum {} + | sort >"$work/after"
  sed -n 's,.* are in \(/tmp/attest-check\.[^/]*\)/moved .*,\1,p' "$work/said" | xargs -r rm -rf
  if [ "$got" = "$code" ] && grep -q -- "$words" "$work/said" && cmp -s "$work/before" "$work/after"; then
    echo "ok    $what"
  else
    echo "WRONG $what: exit $got, want $code and '$words'"
    sed 's/^/      /' "$work/said"
    failed=1
  fi
}

build "$work/good" "$asan"
expect "nothing wrong" "$work/good" 0 "PASS: 1 targets"
expect "a target is missing" "$work/good" 1 "fuzz_other: not found" fuzz_small fuzz_other
SANITIZER=undefined expect "another sanitizer" "$work/good" 1 "not built for undefined alone"

mkdir "$work/empty"
expect "no targets" "$work/empty" 1 "no fuzz targets"

cp -r "$work/good" "$work/no-seeds" && rm "$work/no-seeds/"*.zip
expect "no seeds" "$work/no-seeds" 1 "no fuzz_small_seed_corpus.zip"
cp -r "$work/good" "$work/no-options" && rm "$work/no-options/"*.options
expect "no options" "$work/no-options" 1 "no fuzz_small.options"
cp -r "$work/good" "$work/bad-dict" && echo 'not a dictionary' >"$work/bad-dict/fuzz_small.dict"
echo 'dict = fuzz_small.dict' >>"$work/bad-dict/fuzz_small.options"
expect "a broken dictionary" "$work/bad-dict" 1 "from an empty corpus failed"

build "$work/start" "$asan -DBREAK_START"
expect "ends at once" "$work/start" 1 "start-up run failed"
build "$work/path" "$asan -DBREAK_PATH=\"$work/path/fuzz_small\""
expect "a path into OUT" "$work/path" 1 "start-up run failed"
build "$work/write" "$asan -DBREAK_WRITE"
expect "writes into OUT" "$work/write" 1 "start-up run failed"
build "$work/home" "$asan -DBREAK_HOME"
expect "needs HOME" "$work/home" 1 "start-up run failed"
build "$work/seed-crash" "$asan -DBREAK_SEED"
expect "a seed ends it" "$work/seed-crash" 1 "a seed ends it"
build "$work/blind" "-fsanitize=address"
expect "no coverage instrumentation" "$work/blind" 1 "start-up run\|fewer than 100"
build "$work/avx" "$asan -march=x86-64-v3"
expect "more than baseline x86-64" "$work/avx" 1 "AVX instructions"
build "$work/shared" "$asan" ""
expect "a shared library" "$work/shared" 1 "needs shared libraries"

exit $failed
