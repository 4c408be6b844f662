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
    if [ $# -eq 0 ]; then bun test/suite.ts || status=1; else bun test --timeout 60000 "$@" || status=1; fi
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
