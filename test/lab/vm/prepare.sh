#!/bin/bash
# prepare.sh: gets a kernel for tests ready, once per machine, and prints the folder with it; quick afterwards.
#
# First choice: Debian's 6.12 cloud kernel, unpacked, under qemu's interpreter; it mounts the host's files through
# virtiofs by itself, so there is no disk image. Never KVM: on machines that are virtual themselves it may open and
# then hang. Where that cannot be had: Debian's user-mode Linux 6.1, a kernel that runs as a process. Its package lacks
# WireGuard and nftables for IPv4/IPv6; these modules are built from the source the package was built from (a minute).
#
# FLANNEL_TEST_KERNEL=qemu|uml takes only that one; FLANNEL_TEST_CACHE is where they are kept.
# Folder: kind ("qemu" or "uml"), mod/lib/modules/…, and vmlinuz or shim.so.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
cache=${FLANNEL_TEST_CACHE:-/var/cache/flannel-test}
export PATH="$PATH:/usr/sbin:/sbin" DEBIAN_FRONTEND=noninteractive

say() { echo "vm: $*" >&2; }

[ "$(uname -m)" = x86_64 ] || { say "kernels for tests are prepared on x86-64 only, this is $(uname -m)"; exit 1; }
[ "$(id -u)" = 0 ] || { say "preparing a kernel for tests needs root"; exit 1; }

# A changed recipe makes a new folder; the old one stays for other clones of the repository.
recipe=$(cat prepare.sh xstate-shim.c | cksum | cut -d' ' -f1)
kinds=${FLANNEL_TEST_KERNEL:-qemu uml}

use_ready() {
  for kind in $kinds; do
    if [ -e "$cache/$kind-$recipe/kind" ]; then echo "$cache/$kind-$recipe"; exit 0; fi
  done
}

packages() {
  apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

# Replaces modules of the package by ours in the finished tree: modules_built <source> <modules>
install_modules() {
  local source=$1 modules=$2 module
  mkdir -p "$modules/extra"
  for module in drivers/net/wireguard/wireguard net/netfilter/{nf_tables,nft_nat,nft_chain_nat} \
    lib/crypto/{libcurve25519,libcurve25519-generic,libchacha20poly1305,libchacha,libpoly1305}; do
    find "$modules/kernel" -name "${module##*/}.ko" -delete
    strip --strip-unneeded -o "$modules/extra/${module##*/}.ko" "$source/$module.ko"
  done
}

# Builds only what the package leaves out. NF_TABLES_INET stays off: the package's nf_nat.ko lacks its hooks.
build_modules() {
  local version=$1 modules=$2 package source folder
  package=$(apt-cache madison "linux-source-${version%.*}" | awk '{print $3}' | grep -m1 "^$version-")
  apt-get -qq -o Acquire::Retries=3 download "linux-source-${version%.*}=$package"
  source=$PWD/linux-source-${version%.*}
  dpkg-deb --fsys-tarfile linux-source-*.deb | tar xO "./usr/src/${source##*/}.tar.xz" | xz -dc -T2 |
    tar x --wildcards '*/Kconfig*' '*/Makefile*' '*/Kbuild*' '*.include' \
      "${source##*/}"/{arch/um,arch/x86,include,scripts,tools/include,kernel/bounds.c,kernel/time,lib/crypto} \
      "${source##*/}"/{drivers/net/wireguard,net/netfilter,security/selinux}
  linux.uml --showconfig >"$source/.config"
  printf 'CONFIG_%s\n' WIREGUARD=m NF_TABLES_IPV4=y NF_TABLES_IPV6=y NFT_NAT=m >>"$source/.config"
  make -C "$source" -s ARCH=um olddefconfig
  make -C "$source" -s ARCH=um -j2 modules_prepare
  [ "$(make -C "$source" -s ARCH=um kernelrelease)" = "$version" ]
  sed -i -E '/^obj-/{/CONFIG_NF_TABLES\)|nft_chain_nat|nft_nat/!d}' "$source/net/netfilter/Makefile"
  for folder in lib/crypto drivers/net/wireguard net/netfilter; do
    make -C "$source" -s ARCH=um -j2 KBUILD_MODPOST_WARN=1 M=$folder modules
  done
  install_modules "$source" "$modules"
  rm -rf "$source" linux-source-*.deb
}

prepare_uml() {
  local version
  packages user-mode-linux gcc make flex bison bc libelf-dev libc6-dev kmod xz-utils
  version=$(linux.uml --version)
  gcc -O2 -shared -fPIC -o shim.so "$here/xstate-shim.c"
  mkdir -p mod/lib/modules
  # Copied: depmod does not survive a link to the package's folder.
  cp -a "/usr/lib/uml/modules/$version" mod/lib/modules/
  build_modules "$version" "$PWD/mod/lib/modules/$version"
  depmod -b "$PWD/mod" "$version"
  echo uml >kind
}

# The package is unpacked, not installed: no initramfs, no boot loader.
prepare_qemu() {
  local package version
  if ! command -v qemu-system-x86_64 || ! command -v depmod; then packages qemu-system-x86 kmod; fi
  # A bare machine has no package lists yet.
  apt-cache show linux-image-6.12-cloud-amd64 >/dev/null || apt-get -q -o Acquire::Retries=3 update
  package=$(apt-cache depends linux-image-6.12-cloud-amd64 | awk '/Depends:/ {print $2}')
  apt-get -qq -o Acquire::Retries=3 download "$package"
  dpkg-deb -x ./"$package"_*.deb unpacked
  version=$(basename unpacked/boot/vmlinuz-*)
  version=${version#vmlinuz-}
  mkdir -p mod/lib
  if [ -d unpacked/usr/lib/modules ]; then mv unpacked/usr/lib/modules mod/lib/; else mv unpacked/lib/modules mod/lib/; fi
  mv "unpacked/boot/vmlinuz-$version" vmlinuz
  rm -r unpacked ./*.deb
  depmod -b "$PWD/mod" "$version"
  echo qemu >kind
}

# In a folder beside the final one, proved by a boot, then moved: a folder that exists is whole.
# Not to be called in a condition: `set -e` would be off in everything below it, and a step that fails not be told.
prepare() {
  local kind=$1 folder=$2 status=0
  rm -rf "$folder.new"
  mkdir -p "$folder.new"
  set +e
  (set -ex; cd "$folder.new"; "prepare_$kind"; bash "$here/run.sh" --kernel "$folder.new" -- true) >"$folder.log" 2>&1
  status=$?
  set -e
  if [ $status = 0 ]; then
    mv "$folder.new" "$folder"
  else
    say "$kind: the last lines of $folder.log:"
    tail -n 20 "$folder.log" >&2
    rm -rf "$folder.new"
  fi
}

use_ready
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
use_ready
say "preparing a kernel for tests in $cache (once)"
for kind in $kinds; do
  prepare "$kind" "$cache/$kind-$recipe"
  use_ready
done
say "no kernel for tests can be prepared on this machine"
exit 1
