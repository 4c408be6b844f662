#!/bin/sh
# sh test/run.sh {demo|test|build|bench|lint} [arguments]: makes the machine ready, then does it.
set -eu
cd "$(dirname "$0")/.."
usage="usage: sh test/run.sh {demo|test|build|bench|lint} [arguments]"
[ $# -gt 0 ] || { echo "$usage" >&2; exit 2; }
task=$1
shift

sh test/setup.sh
PATH="$PWD/test/toolchain/node_modules/.run:$PWD/node_modules/.bin:$PATH:/usr/sbin:/sbin"
export PATH

build_for_this_machine() { bun dist/build/main.ts --target host >&2; }

case "$task" in
  demo)
    build_for_this_machine
    exec bun test/lab/demo.ts "$@" ;;
  test)
    # A finding of the checks fails the run, but does not keep the tests from telling more.
    status=0
    tsc --noEmit || status=1
    biome check . || status=1
    build_for_this_machine
    # All tests: those in guests run meanwhile, on the other processor.
    if [ $# -eq 0 ] && [ "$(uname -m)" = x86_64 ] && [ "$(id -u)" = 0 ]; then
      FLANNEL_VM_AHEAD=$(mktemp -d)
      export FLANNEL_VM_AHEAD
      setsid nice -n 5 bun test/lab/vm/ahead.ts "$FLANNEL_VM_AHEAD" >/dev/null 2>&1 </dev/null &
      ahead=$!
      echo "$ahead" >"$FLANNEL_VM_AHEAD/pid"
      # Guests are in the session of the process that starts them.
      trap 'pkill -s "$ahead" || true; rm -rf "$FLANNEL_VM_AHEAD"' EXIT
      trap 'exit 130' INT TERM
    fi
    # Builds, namespaces and etcd members take their time on a busy machine.
    results=$(mktemp -d)
    {
      code=0
      bun test --timeout 60000 --reporter=junit --reporter-outfile="$results/report.xml" "$@" 2>&1 || code=$?
      echo "$code" >"$results/code"
    } | tee "$results/log"
    code=$(cat "$results/code")
    if [ "$code" -ne 0 ] && [ -e "$results/report.xml" ]; then
      code=0
      bun test/again.ts "$results/report.xml" "$results/log" || code=$?
    fi
    rm -rf "$results"
    [ "$code" -eq 0 ] || status=$code
    exit "$status" ;;
  build)
    exec bun dist/build/main.ts "$@" ;;
  bench)
    build_for_this_machine
    exec bun test/bench/main.ts "$@" ;;
  lint)
    tsc --noEmit
    exec biome check "$@" . ;;
  *)
    echo "$usage" >&2
    exit 2 ;;
esac
