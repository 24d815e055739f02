#!/bin/bash -eu
# local.sh [SANITIZER [FOLDER]]: build.sh and check.sh in a clean folder, with the variables that OSS-Fuzz's base-builder
# sets for libFuzzer and that sanitizer (address or undefined), and the compiler of this machine. FOLDER is kept;
# without one a folder under /tmp is used, and removed when all checks pass.

sanitizer=${1:-address}
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

keep=${2:-}
folder=${keep:-$(mktemp -d /tmp/attest-oss-fuzz.XXXXXX)}
mkdir -p "$folder"
[ -z "$(ls -A "$folder")" ] || { echo "local.sh: $folder is not empty" >&2; exit 2; }
folder=$(cd "$folder" && pwd)
export SRC=$folder/src WORK=$folder/work OUT=$folder/out
mkdir "$SRC" "$WORK" "$OUT"

export SANITIZER=$sanitizer FUZZING_ENGINE=libfuzzer ARCHITECTURE=x86_64 FUZZING_LANGUAGE=c++
export CC=${CC:-clang} CXX=${CXX:-clang++} LIB_FUZZING_ENGINE=-fsanitize=fuzzer UBSAN_OPTIONS=silence_unsigned_overflow=1
CFLAGS="-O1 -fno-omit-frame-pointer -gline-tables-only -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION"
export CFLAGS="$CFLAGS $flags -fsanitize=fuzzer-no-link"
# There the engine and the targets use one libc++. Distributions build the engine with libstdc++, which targets must
# then use as well.
probe='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
if "$CXX" -stdlib=libc++ -fsanitize=fuzzer -x c++ - -o "$WORK/probe" <<<"$probe" 2>/dev/null; then
  export CXXFLAGS="$CFLAGS -stdlib=libc++"
else
  echo "local.sh: $CXX's libFuzzer does not link with libc++; using the compiler's default library"
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
