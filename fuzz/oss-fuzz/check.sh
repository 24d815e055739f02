#!/bin/bash
# check.sh OUT [TARGET...]: is OUT what OSS-Fuzz wants of a build? It asks what the `check_build` of OSS-Fuzz asks, with
# its limits (infra/base-images/base-runner: test_all.py, bad_build_check, run_fuzzer), and more: seeds, what the targets
# need to run, that they write nothing beside themselves. A TARGET that is named must be there. $SANITIZER (address,
# undefined) and $FUZZING_ENGINE (libfuzzer, afl) say what OUT was built for. A table, and exit 1 on any failure.
#
# While it runs, the contents of OUT stand in a folder under /tmp, so that a path into OUT or the build is found out.
set -u

usage() {
  echo "usage: [SANITIZER=address|undefined] [FUZZING_ENGINE=libfuzzer|afl] check.sh OUT [TARGET...]" >&2
  exit 2
}
if [ $# -lt 1 ] || [ ! -d "$1" ]; then usage; fi
out=$(cd "$1" && pwd)
shift
wanted=("$@")
sanitizer=${SANITIZER:-address}
engine=${FUZZING_ENGINE:-libfuzzer}
case $sanitizer/$engine in address/libfuzzer | undefined/libfuzzer | address/afl) ;; *) usage ;; esac
for tool in objdump readelf unzip timeout; do
  command -v $tool >/dev/null || { echo "check.sh: needs $tool" >&2; exit 2; }
done

# ---- a moved, read-only folder --------------------------------------------------------------------------------------

scratch=$(mktemp -d /tmp/attest-check.XXXXXX) || exit 2
moved=$scratch/moved
mkdir "$moved" "$scratch/seeds" "$scratch/logs" "$scratch/work"
chmod 777 "$scratch/work"
contents() { find "$1" -mindepth 1 -maxdepth 1 -exec mv -t "$2" {} +; }
move_back() {
  trap - EXIT
  chmod -R u+w "$moved"
  contents "$moved" "$out"
  rm -rf "$scratch/seeds" "$scratch/work" "$scratch/listing" "$scratch/moved"
  rmdir "$scratch/logs" "$scratch" 2>/dev/null # logs stay where something failed
}
trap move_back EXIT
trap 'exit 130' INT TERM
echo "check.sh: the contents of $out are in $moved meanwhile"
contents "$out" "$moved"
listing() { (cd "$moved" && find . -type f -exec cksum {} + | sort -k 3); }
listing >"$scratch/listing"
chmod -R a-w,a+rX "$moved"
chmod a+rx "$scratch" "$scratch/seeds"

# Root writes where it likes, whatever the mode: the targets run as nobody.
as_nobody=()
if [ "$(id -u)" = 0 ]; then
  as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi

# The sanitizers' options of base-runner, as far as they decide between pass and fail. No HOME.
run() { # log, seconds, command...
  local log=$scratch/logs/$1 seconds=$2
  shift 2
  (cd "$moved" && timeout -k 5 "$seconds" "${as_nobody[@]}" env -i PATH="$moved:$PATH" "${afl_environment[@]}" \
    ASAN_OPTIONS=alloc_dealloc_mismatch=0:allocator_may_return_null=1:detect_leaks=1:detect_stack_use_after_return=1:handle_abort=1:quarantine_size_mb=10:strict_memcmp=1:symbolize=0:"${asan_extra:-}" \
    UBSAN_OPTIONS=print_stacktrace=1:silence_unsigned_overflow=1:symbolize=0 "$@") >"$log" 2>&1 </dev/null
}
afl_environment=()
if [ "$engine" = afl ]; then
  afl_environment=(AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_SKIP_CPUFREQ=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1
    AFL_FORKSRV_INIT_TMOUT=30000 AFL_QUIET=0)
  asan_extra=abort_on_error=1:detect_leaks=0
fi
limits=(-rss_limit_mb=2560 -timeout=25)

# ---- checks: each prints its cell, and returns 1 with a line in $complaints if it fails ----------------------------------

complaints=()
complain() { complaints+=("$1: $2"); }

is_target() { # the way in which OSS-Fuzz finds them
  [ -f "$1" ] && [ -x "$1" ] && [ "$(head -c 4 "$1" | tail -c 3)" = ELF ] && grep -q LLVMFuzzerTestOneInput "$1"
}

last_number() { grep -oE "$1[0-9]+" "$2" | tail -n 1 | grep -oE '[0-9]+$'; }
first_number() { grep -oE "$1[0-9]+" "$2" | head -n 1 | grep -oE '[0-9]+$'; }

# Starts, runs 4 inputs and ends well; has coverage instrumentation in more than a corner.
start_up() {
  local log=$1.start edges what=(-seed=1337 -runs=4 "${limits[@]}")
  if [ "$engine" = afl ]; then # the driver replays a file
    echo input >"$scratch/work/input"
    what=("$scratch/work/input")
  fi
  if ! run "$log" 60 "./$1" "${what[@]}"; then
    complain "$1" "start-up run failed, see $scratch/logs/$log"
    cell=FAIL
    return
  fi
  log=$scratch/logs/$log
  if [ "$engine" = afl ]; then
    cell=ok
    return
  fi
  edges=$(grep -oE 'Loaded [0-9]+ modules? +\([0-9]+ inline 8-bit counters\)|\([0-9]+ (guards|counters)\)' "$log" |
    grep -oE '\([0-9]+' | tail -n 1 | tr -d '(')
  cell="${edges:-0} edges"
  if ! grep -q 'Done 4 runs' "$log" || grep -q 'no interesting inputs were found' "$log"; then
    complain "$1" "start-up run did not do its 4 runs, see $log"
    cell=FAIL
  elif [ "${edges:-0}" -lt 100 ]; then
    complain "$1" "$cell: fewer than 100, most of the code has no coverage instrumentation"
    cell=FAIL
  fi
}

# From an empty corpus, coverage grows beyond the first input's: the engine sees what an input reaches.
grows() {
  local log=$1.grows before after
  if [ "$engine" = afl ]; then
    grows_under_afl "$1"
    return
  fi
  if ! run "$log" 120 "./$1" -seed=1 -runs=2000 -max_total_time=20 "${limits[@]}" "${options[@]}"; then
    complain "$1" "2000 runs from an empty corpus failed, see $scratch/logs/$log"
    cell=FAIL
    return
  fi
  log=$scratch/logs/$log
  before=$(first_number 'INITED cov: ' "$log")
  after=$(last_number 'DONE +cov: ' "$log")
  cell="${before:-?} -> ${after:-?}"
  if [ -z "$before" ] || [ -z "$after" ] || [ "$after" -le "$before" ]; then
    complain "$1" "coverage $cell: no interesting input found, see $log"
    cell=FAIL
  fi
}

grows_under_afl() {
  local queue=$scratch/work/$1
  mkdir -p "$scratch/work/$1.in"
  echo input >"$scratch/work/$1.in/input"
  run "$1.grows" 120 afl-fuzz -m none -t 5000+ -V 20 -i "$scratch/work/$1.in" -o "$queue" -- "./$1"
  cell="$(find "$queue" -path '*/queue/id:*' 2>/dev/null | grep -c .) kept"
  if ! grep -q 'All set and ready to roll' "$scratch/logs/$1.grows" || [ "${cell% kept}" -le 1 ]; then
    complain "$1" "afl-fuzz found nothing beyond its first input, see $scratch/logs/$1.grows"
    cell=FAIL
  fi
}

# Calls into the sanitizer that was asked for, and none into another; no AVX (VEX-coded instructions: v...).
instructions() {
  local asan msan ubsan vex
  read -r asan msan ubsan vex < <(objdump -d --no-show-raw-insn "$moved/$1" | awk '
    /call.*<__asan/ { a++ } /call.*<__msan/ { m++ } /call.*<__ubsan/ { u++ } /^ +[0-9a-f]+:\tv[a-z]/ { v++ }
    END { print a + 0, m + 0, u + 0, v + 0 }')
  case $sanitizer in
  address) cell="$asan calls" ;;
  undefined) cell="$ubsan calls" ;;
  esac
  if [ "$sanitizer" = address ] && { [ "$asan" -lt 1000 ] || [ "$msan" -gt 3 ] || [ "$ubsan" -gt 200 ]; } ||
    [ "$sanitizer" = undefined ] && { [ "$ubsan" -lt 168 ] || [ "$msan" -gt 3 ] || [ "$asan" -gt 0 ]; }; then
    complain "$1" "not built for $sanitizer alone: $asan calls of ASan, $msan of MSan, $ubsan of UBSan"
    cell=FAIL
  fi
  baseline=ok
  if [ "$vex" -gt 0 ]; then
    complain "$1" "$vex AVX instructions: built for more than baseline x86-64"
    baseline=FAIL
  fi
  if ! readelf -h "$moved/$1" | grep -q 'Machine:.*X86-64'; then
    complain "$1" "not a program for x86-64"
    baseline=FAIL
  fi
}

# Only what base-runner has: the C library and what comes with it.
libraries() {
  local foreign
  foreign=$(readelf -d "$moved/$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' |
    grep -vE '^(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^.]*)\.so' | tr '\n' ' ')
  cell=libc
  if [ -n "$foreign" ] || readelf -d "$moved/$1" | grep -qE 'RPATH|RUNPATH'; then
    complain "$1" "needs shared libraries that are not there: ${foreign:-a search path of its own}"
    cell=FAIL
  fi
}

# Seeds are there and each of them runs to its end.
seed_corpus() {
  local zip=$moved/$1_seed_corpus.zip folder=$scratch/seeds/$1 count
  if [ ! -f "$zip" ]; then
    complain "$1" "no $1_seed_corpus.zip"
    cell=FAIL
    return
  fi
  mkdir "$folder"
  unzip -q "$zip" -d "$folder"
  chmod -R a+rX "$folder"
  count=$(find "$folder" -type f | grep -c .)
  cell="$count"
  if [ "$count" = 0 ]; then
    complain "$1" "$1_seed_corpus.zip is empty"
    cell=FAIL
  elif [ "$engine" = afl ]; then
    # The driver takes files to replay, and no folders.
    find "$folder" -type f -print0 | xargs -0 -n 200 >"$scratch/work/$1.files"
    while read -r files; do
      # shellcheck disable=SC2086  # names that build.sh made of hex digits
      run "$1.seeds" 300 "./$1" $files || { complain "$1" "a seed ends it, see $scratch/logs/$1.seeds"; cell=FAIL; }
    done <"$scratch/work/$1.files"
  elif ! run "$1.seeds" 300 "./$1" -runs=0 "${limits[@]}" "${options[@]}" "$folder"; then
    complain "$1" "a seed ends it, see $scratch/logs/$1.seeds"
    cell=FAIL
  fi
}

# NAME.options parses, and what it names is there. Sets options, as run_fuzzer would from section [libfuzzer].
read_options() {
  local file=$moved/$1.options dictionary=$moved/$1.dict
  options=()
  cell=-
  if [ ! -f "$file" ]; then
    complain "$1" "no $1.options"
    cell=FAIL
    return
  fi
  mapfile -t options < <(sed -n '/^\[libfuzzer\]/,/^\[/s/^ *\([a-z_]*\) *= *\(.*\)/-\1=\2/p' "$file")
  cell=$(IFS=' '; echo "${options[*]#-}")
  if ! [[ "${options[*]}" =~ max_len=[1-9] ]] || { [ -f "$dictionary" ] && ! [[ "${options[*]}" =~ dict= ]]; }; then
    complain "$1" "$1.options names no max_len, or not its dictionary"
    cell=FAIL
  fi
}

# ---- the table ------------------------------------------------------------------------------------------------------

targets=()
for file in "$moved"/*; do
  case ${file##*/} in afl-*) continue ;; esac
  ! is_target "$file" || targets+=("${file##*/}")
done
[ ${#targets[@]} -gt 0 ] || complain "$out" "no fuzz targets"
for name in "${wanted[@]}"; do
  [[ " ${targets[*]} " == *" $name "* ]] || complain "$name" "not found"
done

row='%-16s %-14s %-16s %-14s %-9s %-10s %-6s %s\n'
# shellcheck disable=SC2059  # one format for all rows
printf "$row" target start-up coverage "$sanitizer" baseline libraries seeds options
for name in "${targets[@]}"; do
  read_options "$name"; shown=$cell
  start_up "$name"; started=$cell
  grows "$name"; grown=$cell
  instructions "$name"; instrumented=$cell
  libraries "$name"; linked=$cell
  seed_corpus "$name"; seeded=$cell
  # shellcheck disable=SC2059
  printf "$row" "$name" "$started" "$grown" "$instrumented" "$baseline" "$linked" "$seeded" "$shown"
done

listing >"$scratch/listing.after"
if ! diff "$scratch/listing" "$scratch/listing.after" >"$scratch/logs/written"; then
  complain "$out" "the targets changed it: $(tr '\n' ' ' <"$scratch/logs/written")"
fi
rm -f "$scratch/listing.after"

for line in "${complaints[@]}"; do echo "FAIL $line"; done
if [ ${#complaints[@]} -gt 0 ]; then
  echo "FAIL: ${#complaints[@]} of the checks on ${#targets[@]} targets ($sanitizer, $engine)"
  exit 1
fi
rm -rf "$scratch/logs"
echo "PASS: ${#targets[@]} targets ($sanitizer, $engine)"
