#!/bin/bash -eu
# Builds every fuzz target of $SRC/attest into $OUT, as OSS-Fuzz and ClusterFuzzLite call it: with $CC, $CXX, $CFLAGS,
# $CXXFLAGS, $LIB_FUZZING_ENGINE, $SRC, $WORK and $OUT set. Beside each target NAME stand NAME_seed_corpus.zip,
# NAME.options and, where there is one, NAME.dict.

attest=$SRC/attest
build=$WORK/attest

# No build type: the flags are the caller's. No -march: the machines that run the targets are not known here.
cmake -S "$attest" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE= -DATTEST_TESTS=OFF -DATTEST_PORTABLE=ON -DATTEST_ARCH= \
  -DATTEST_FUZZERS=ON -DATTEST_FUZZ_ENGINE="$LIB_FUZZING_ENGINE"
ninja -C "$build" -j "${JOBS:-$(nproc)}" fuzzers

# Files of the given folders that libFuzzer would not cut short. fuzz_case reads text: of the whole corpus only its
# cases, and what a campaign stored for it.
seeds() { # name, longest, folders...
  local name=$1 size=-$(($2 + 1))c
  shift 2
  if [ "$name" = fuzz_case ]; then
    find "$@" -type f -size "$size" \( -name '*.case' -o -path '*/fuzz/case/*' \)
  else
    find "$@" -type f -size "$size"
  fi
}

pack_seeds() { # name, longest, folders...
  local folder=$WORK/seeds/$1 zip=$OUT/$1_seed_corpus.zip file
  rm -rf "$folder" "$zip"
  mkdir -p "$folder"
  # By content: files of the same name in two folders must not meet, and equal ones are one seed.
  (cd "$attest" && seeds "$@") | sort | while read -r file; do
    cp "$attest/$file" "$folder/$(sha1sum "$attest/$file" | cut -c 1-40)"
  done
  if [ -z "$(ls -A "$folder")" ]; then
    echo "build.sh: no seeds for $1" >&2 # check.sh says no to it
  else
    (cd "$folder" && zip -q -r "$zip" .)
  fi
}

while read -r name longest inputs; do
  cp "$build/bin/$name" "$OUT/"
  # shellcheck disable=SC2086  # a list of folders
  pack_seeds "$name" "$longest" $inputs
  cp "$build/bin/$name.options" "$OUT/"
  [ ! -f "$build/bin/$name.dict" ] || cp "$build/bin/$name.dict" "$OUT/"
done <"$build/fuzz-targets.txt"
