#!/bin/sh
# Brings a machine to where it can build and test this repository; safe to repeat, and quick when nothing is missing.
# Needs Node with npm; installs Debian packages when run as root. Progress goes to standard error.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/sbin:/sbin"

say() { echo "setup: $*" >&2; }
fail() { echo "setup: $*" >&2; exit 1; }

# One run at a time: two installs into one node_modules tear each other apart.
if command -v flock >/dev/null 2>&1; then
  exec 9<test/toolchain/package.json
  flock 9
fi

# --- programs the tests drive: "program package" pairs -----------------------------------------------------------
missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need etcd etcd-server
need etcdctl etcd-client
need ip iproute2
need bridge iproute2
need ping iputils-ping
need iperf3 iperf3
need nft nftables
need iptables iptables
need ethtool ethtool
need sysctl procps
need openssl openssl
need socat socat
need curl curl
need gcc gcc
[ -e /usr/include/linux/if_tun.h ] && [ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
need tcpdump tcpdump
need wg wireguard-tools
need wireguard-go wireguard-go
# charon lies outside of PATH; kernel-libipsec moves packets where the kernel has no ESP, openssl brings the curves.
[ -x /usr/lib/ipsec/charon ] || missing="$missing strongswan-charon"
need swanctl strongswan-swanctl
[ -e /usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so ] || missing="$missing libcharon-extra-plugins"
[ -e /usr/lib/ipsec/plugins/libstrongswan-openssl.so ] || missing="$missing libstrongswan-standard-plugins"
need unshare util-linux
need setpriv util-linux
need git git
need dockerd docker.io
need busybox busybox-static
need systemd-nspawn systemd-container
# A kernel of its own for what this one may lack; see test/lab/vm/prepare.sh.
if [ "$(uname -m)" = x86_64 ]; then
  need qemu-system-x86_64 qemu-system-x86
  need depmod kmod
fi
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"

install_packages() {
  command -v apt-get >/dev/null 2>&1 || fail "missing:$missing; install these (only Debian's apt-get is automated)"
  [ "$(id -u)" = 0 ] || fail "missing:$missing; run as root once, or: sudo apt-get install$missing"
  say "installing$missing"
  # Debian starts and enables etcd and Docker on installation; the tests start their own.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt="apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 -q -y"
  # shellcheck disable=SC2086 # $apt and $missing are word lists
  if ! $apt install --no-install-recommends $missing >&2 2>&1; then
    say "refreshing the package lists"
    $apt update >&2
    $apt install --no-install-recommends $missing >&2
  fi
  case "$missing" in
    *etcd-server*)
      if [ -d /run/systemd/system ]; then systemctl disable etcd >&2 || true; fi ;;
  esac
  case "$missing" in
    *docker.io*)
      if [ -d /run/systemd/system ]; then systemctl disable docker.service docker.socket containerd >&2 || true; fi ;;
  esac
}
[ -z "$missing" ] || install_packages

# --- Bun, pinned by integrity in test/toolchain/package-lock.json ------------------------------------------------
toolchain=test/toolchain
mark() { cat "$@" | cksum; }
want="$(mark $toolchain/package.json $toolchain/package-lock.json) $(uname -m)"
bun="$toolchain/node_modules/.run/bun"
if [ "$(cat $toolchain/node_modules/.installed 2>/dev/null)" != "$want" ] || [ ! -x "$bun" ]; then
  command -v npm >/dev/null 2>&1 || fail "npm not found; install Node.js with npm"
  say "installing Bun"
  npm ci --prefix "$toolchain" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  # The `bun` package links its binary in an install script, which npm may refuse to run: take the binary where it lies.
  version="$(sed -n 's/.*"bun": "\([0-9.]*\)".*/\1/p' $toolchain/package.json)"
  found=""
  for candidate in "$toolchain"/node_modules/@oven/bun-linux-*/bin/bun; do
    if [ "$("$candidate" --version 2>/dev/null)" = "$version" ]; then found="$candidate"; break; fi
  done
  [ -n "$found" ] || fail "no Bun $version for this machine ($(uname -s) $(uname -m)) in $toolchain/node_modules/@oven"
  mkdir -p "$toolchain/node_modules/.run"
  ln -sf "../${found#"$toolchain"/node_modules/}" "$bun"
  echo "$want" >"$toolchain/node_modules/.installed"
fi

# --- the project's own packages ----------------------------------------------------------------------------------
want="$(mark package.json bun.lock)"
if [ "$(cat node_modules/.installed 2>/dev/null)" != "$want" ]; then
  say "installing packages"
  "$bun" install --frozen-lockfile >&2
  echo "$want" >node_modules/.installed
fi

# --- the kernel for tests, in the background: nobody has to wait for it but the first test that boots it -----------
if [ "$(uname -m)" = x86_64 ] && [ "$(id -u)" = 0 ]; then
  nice bash test/lab/vm/prepare.sh >/dev/null 2>&1 </dev/null 9>&- &
fi

# --- an EC2 API, likewise ------------------------------------------------------------------------------------------
if [ "$(id -u)" = 0 ]; then
  nice bash test/lab/cloud/aws/moto/prepare.sh >/dev/null 2>&1 </dev/null 9>&- &
fi
