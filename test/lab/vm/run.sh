#!/bin/bash
# run.sh [option …] -- COMMAND [ARGUMENT …]: boots a kernel of its own, runs COMMAND as root in it and exits with
# COMMAND's exit code (255 when the guest never got that far). Standard output and error of COMMAND come out here.
#
#   --env NAME=VALUE   environment of COMMAND, besides PATH and FLANNELD; repeatable
#   --see PATH         a folder or file below /tmp that must be visible; repeatable (this repository and FLANNELD's are)
#   --memory MIB       default 1536
#   --timeout SECONDS  default 600
#   --kernel FOLDER    default: what prepare.sh prints
#
# In the guest: the host's files at their places (what is written to /etc, /root, /var and /tmp is gone afterwards, the
# rest is read-only), FLANNEL_VM=1, the caller's working directory, no network but loopback, one processor.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
repository=$(cd "$here/../../.." && pwd -P)
memory=1536 timeout=600 kernel=""
environment=() see=("$repository")
while [ $# -gt 0 ]; do
  case $1 in
    --env) environment+=("$2"); shift 2 ;;
    --see) see+=("$(readlink -f "$2")"); shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --timeout) timeout=$2; shift 2 ;;
    --kernel) kernel=$2; shift 2 ;;
    --) shift; break ;;
    *) echo "run.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
[ $# -gt 0 ] || { echo "usage: run.sh [option …] -- COMMAND [ARGUMENT …]" >&2; exit 2; }
[ -n "$kernel" ] || kernel=$(bash "$here/prepare.sh")
# Not every test needs the executable: whether it is there is for the command to find out.
if [ -e "${FLANNELD:-}" ]; then
  FLANNELD=$(readlink -f "$FLANNELD")
  environment+=("FLANNELD=$FLANNELD")
  see+=("$(dirname "$FLANNELD")")
fi

# What the guest is to do travels in a folder: the kernel's command line has room for little.
job=$(mktemp -d -t flannel-vm-XXXXXX)
trap 'rm -rf "$job"' EXIT
{
  printf 'export PATH=%q\n' "$PATH:/usr/sbin:/sbin"
  # A guest is several times slower than the machine, and the machine may be busy.
  echo 'export FLANNEL_VM=1 LAB_PATIENCE=5'
  for pair in ${environment[@]+"${environment[@]}"}; do printf 'export %s=%q\n' "${pair%%=*}" "${pair#*=}"; done
  printf 'cd %q\n' "$PWD"
  printf '%q ' "$@"
} >"$job/command"
printf '%s\n' "${see[@]}" >"$job/see"
cp "$here/init.sh" "$job/init"
printf '%s\n' "$kernel" >"$job/kernel"

# One processor each, a free one if there is: user-mode Linux and the processes it traces take turns all the time, and
# are three times slower when every turn wakes another processor.
pin() {
  local processors processor
  mapfile -t processors < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
    while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done | shuf)
  for processor in "${processors[@]}"; do
    exec 8>"$job/../.flannel-vm-processor-$processor"
    if flock -n 8; then break; fi
  done
  echo "$processor"
}

boot_uml() {
  pin >"$job/processor"
  LD_PRELOAD=$kernel/shim.so taskset -c "$(cat "$job/processor")" timeout -k 5 "$timeout" linux.uml \
    mem="${memory}M" root=none rootfstype=hostfs rootflags=/ ro init="$job/init" job="$job" \
    quiet loglevel=3 con=null con0=null,fd:1 uml_dir="$job" umid=guest </dev/null 2>&1 8>&-
}

# What the guest has in memory: the programs, packed once until other packages are installed, and the sources.
pack() {
  local programs
  programs=$kernel/programs-$(cksum </var/lib/dpkg/status | cut -d' ' -f1).tar
  if [ ! -e "$programs" ]; then
    rm -f "$kernel"/programs-*
    bash "$here/pack.sh" "$programs.$$"
    mv "$programs.$$" "$programs"
  fi
  echo "$programs" >"$job/programs"
  tar c -C / --exclude-vcs --exclude=node_modules --exclude=dist "${repository#/}" >"$job/sources"
}

boot_qemu() {
  local daemon
  pack
  /usr/lib/qemu/virtiofsd --socket-path="$job/files" -o source=/ -o sandbox=chroot -o cache=always \
    >"$job/files.log" 2>&1 &
  daemon=$!
  for _ in $(seq 200); do [ -S "$job/files" ] && break; sleep 0.05; done
  timeout -k 5 "$timeout" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -M pc -m "$memory" -smp 1 \
    -nodefaults -no-user-config -display none -serial stdio -no-reboot -device virtio-rng-pci \
    -object memory-backend-memfd,id=memory,size="${memory}M",share=on -numa node,memdev=memory \
    -chardev socket,id=files,path="$job/files" -device vhost-user-fs-pci,chardev=files,tag=host \
    -kernel "$kernel/vmlinuz" \
    -append "console=ttyS0 panic=-1 quiet loglevel=3 rootfstype=virtiofs root=host ro init=$job/init job=$job" \
    </dev/null 2>&1 || true
  kill "$daemon" 2>/dev/null || true
}

# The guest ends with "[vm] exit code N" and then only halts; before that everything is the command's.
# Line by line, as they come: a filter that writes to a pipe would hold back what a guest said before it hung.
"boot_$(cat "$kernel/kind")" | {
  code=""
  while IFS= read -r line; do
    line=${line//$'\r'/}
    if [[ $line =~ ^\[vm\]\ exit\ code\ ([0-9]+)$ ]]; then code=${BASH_REMATCH[1]}; fi
    if [ -z "$code" ]; then printf '%s\n' "$line"; fi
  done
  exit "${code:-255}"
}
