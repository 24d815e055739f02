#!/bin/bash -eu
# local.sh [SANITIZER [FOLDER]]: build.sh and check.sh in a clean folder, with the variables that OSS-Fuzz's base-builder
# sets for that sanitizer (address, undefined) and for $FUZZING_ENGINE (libfuzzer, afl), and the compilers of this
# machine. FOLDER is kept; without one a folder under /tmp is used, and removed when all checks pass.

sanitizer=${1:-address}
engine=${FUZZING_ENGINE:-libfuzzer}
oss_fuzz=$(cd "$(dirname "$0")" && pwd)
attest=$(cd "$oss_fuzz/../.." && pwd)

# infra/base-images/base-builder/Dockerfile of OSS-Fuzz, as of 2026-08.
checks=array-bounds,bool,builtin,enum,function,integer-divide-by-zero,null,object-size,return,returns-nonnull-attribute
checks=$checks,shift,signed-integer-overflow,unreachable,vla-bound,vptr
case $sanitizer in
address) flags="-fsanitize=address -fsanitize-address-use-after-scope" ;;
undefined) flags="-fsanitize=$checks,unsigned-integer-overflow -fno-sanitize-recover=$checks" ;;
*) echo "local.sh: address or undefined, not $sanitizer" >&2; exit 2 ;;
esac
case $engine in
libfuzzer)
  export CC=${CC:-clang} CXX=${CXX:-clang++} LIB_FUZZING_ENGINE=-fsanitize=fuzzer
  flags="$flags -fsanitize=fuzzer-no-link"
  ;;
afl)
  afl=$(command -v afl-fuzz) || { echo "local.sh: no afl-fuzz" >&2; exit 2; }
  export CC=afl-clang-fast CXX=afl-clang-fast++ AFL_QUIET=1 AFL_IGNORE_PROBLEMS=1
  export LIB_FUZZING_ENGINE=${afl%/bin/afl-fuzz}/lib/afl/libAFLDriver.a
  ;;
*) echo "local.sh: libfuzzer or afl, not $engine" >&2; exit 2 ;;
esac

keep=${2:-}
folder=${keep:-$(mktemp -d /tmp/attest-oss-fuzz.XXXXXX)}
mkdir -p "$folder"
[ -z "$(ls -A "$folder")" ] || { echo "local.sh: $folder is not empty" >&2; exit 2; }
folder=$(cd "$folder" && pwd)
export SRC=$folder/src WORK=$folder/work OUT=$folder/out
mkdir "$SRC" "$WORK" "$OUT"

export SANITIZER=$sanitizer FUZZING_ENGINE=$engine ARCHITECTURE=x86_64 FUZZING_LANGUAGE=c++
export UBSAN_OPTIONS=silence_unsigned_overflow=1
export CFLAGS="-O1 -fno-omit-frame-pointer -gline-tables-only -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION $flags"
# There the engine and the targets use one libc++, an archive that holds its ABI library. Distributions build libFuzzer
# with libstdc++, which targets must then use as well.
cat >"$WORK/probe.cpp" <<'CODE'
#include <stdexcept>
extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long n) {
  if (n > 3) throw std::runtime_error("long");
  return 0;
}
CODE
if "$CXX" -stdlib=libc++ -static-libstdc++ "$WORK/probe.cpp" "$LIB_FUZZING_ENGINE" -o "$WORK/probe" 2>/dev/null; then
  export CXXFLAGS="$CFLAGS -stdlib=libc++"
else
  echo "local.sh: $CXX does not link $LIB_FUZZING_ENGINE with a static libc++; using its default library"
  export CXXFLAGS=$CFLAGS
fi

# What is in the tree now, committed or not, and nothing that git ignores.
mkdir "$SRC/attest"
(cd "$attest" && git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
  [ -e "$file" ] && printf '%s\0' "$file"
done | tar --null -T - -c) | tar -C "$SRC/attest" -x
cp "$oss_fuzz/build.sh" "$SRC/"

cd "$SRC/attest"
bash -eu "$SRC/build.sh" >"$folder/build.log" 2>&1 || { tail -n 40 "$folder/build.log" >&2; exit 1; }
# shellcheck disable=SC2046  # one word a target
"$oss_fuzz/check.sh" "$OUT" $(cut -d ' ' -f 1 "$WORK/attest/fuzz-targets.txt") || {
  echo "local.sh: $folder is left to look at" >&2
  exit 1
}
[ -n "$keep" ] || rm -rf "$folder"
