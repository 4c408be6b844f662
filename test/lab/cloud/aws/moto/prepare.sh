#!/bin/bash
# prepare.sh: gets moto's EC2 API ready, once per machine, and prints the folder with it; quick afterwards.
#
# moto is AWS emulated by others (https://docs.getmoto.org), so it knows nothing of what this project expects of EC2.
# Debian has it from trixie on: its package and all that it depends on are unpacked into a folder, from the archive that
# this machine's apt is set up with.
#
# FLANNEL_TEST_CACHE is where it is kept (200 MB). Folder: root/, to chroot into and run moto_server.
set -euo pipefail
cd "$(dirname "$0")"
cache=${FLANNEL_TEST_CACHE:-/var/cache/flannel-test}
# The programs inside have no other locale.
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C

say() { echo "moto: $*" >&2; }

[ "$(id -u)" = 0 ] || { say "preparing it needs root"; exit 1; }
for program in apt-get dpkg-deb flock curl; do
  command -v "$program" >/dev/null || { say "preparing it needs $program"; exit 1; }
done

# A changed recipe makes a new folder; the old one stays for other clones of the repository.
folder=$cache/moto-$(cksum <prepare.sh | cut -d' ' -f1)

use_ready() {
  if [ -e "$folder" ]; then echo "$folder"; exit 0; fi
}

# The archives of Debian that this machine's apt uses.
sites() {
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' 'Component: main' | sort -u
}

# apt with lists and packages of its own in $PWD/apt, on a machine that has nothing installed; what is set up for this
# machine's (proxies, certificates) holds.
apt_beside() {
  apt-get -q -o Acquire::Retries=3 -o Dir::Etc::sourcelist="$PWD/apt/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State="$PWD/apt/state" -o Dir::State::status="$PWD/apt/status" -o Dir::Cache="$PWD/apt/cache" "$@"
}

build() {
  local site package
  # A bare machine has no package lists yet.
  [ -n "$(sites)" ] || apt-get -q -o Acquire::Retries=3 update
  [ -n "$(sites)" ] || { echo "E: apt is set up with no archive of Debian"; exit 1; }
  mkdir -p apt/state/lists/partial apt/cache/archives/partial root
  : >apt/status
  for site in $(sites); do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site trixie main" >>apt/sources.list
  done
  apt_beside update
  apt_beside install -y --no-install-recommends --download-only python3-moto python3-flask-cors base-files
  # Unpacked, not installed. base-files first, which has the links /bin, /lib …
  for package in apt/cache/archives/base-files_*.deb apt/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" |
      tar x -C root --keep-directory-symlink --exclude './usr/share/doc/*' --exclude './usr/share/locale/*'
  done
  # The one thing that a set-up would have made, and that Python's requests will not start without.
  cat root/usr/share/ca-certificates/mozilla/*.crt >root/etc/ssl/certs/ca-certificates.crt
  mkdir -p root/run root/tmp
  rm -r apt
  mend
}

# DescribeInstances of moto 5.1 tells of each interface what holds for the instance, whatever was set for the interface.
# EC2 tells what was set (EC2 API reference, InstanceNetworkInterface: SourceDestCheck).
mend() {
  local file=root/usr/lib/python3/dist-packages/moto/ec2/responses/instances.py
  sed -i '/<networkInterfaceSet>/,/<\/networkInterfaceSet>/s/{{ instance\.source_dest_check }}/{{ "true" if nic.source_dest_check else "false" }}/' "$file"
}

# Ready is what answers: asks it for all VPCs, of which AWS gives everybody one.
prove() {
  local server left=120 answer=""
  chroot root moto_server -H unix:///run/proof.sock 9>&- &
  server=$!
  # shellcheck disable=SC2064 # now: the variable is gone by then
  trap "kill $server; wait" EXIT
  while [ $left -gt 0 ] && kill -0 $server; do
    answer=$(curl -sS --max-time 30 --unix-socket root/run/proof.sock --user test:test --aws-sigv4 aws:amz:eu-west-1:ec2 \
      --data 'Action=DescribeVpcs&Version=2016-11-15' http://ec2.eu-west-1.amazonaws.com/) || true
    case $answer in *"<vpcId>"*) return 0 ;; esac
    left=$((left - 1))
    sleep 0.5
  done
  echo "$answer"
  return 1
}

use_ready
mkdir -p "$cache"
exec 9>"$cache/moto.lock"
flock 9
use_ready
say "preparing an EC2 API for tests in $cache (once)"
# In a folder beside the final one, proved, then moved: a folder that exists is whole.
rm -rf "$folder.new"
mkdir -p "$folder.new"
# Shells of their own, and no condition: `set -e` is off inside one.
set +e
(set -ex; cd "$folder.new"; build; (prove); rm -f root/run/proof.sock) >"$folder.log" 2>&1 </dev/null
status=$?
set -e
if [ $status = 0 ]; then
  mv "$folder.new" "$folder"
  use_ready
fi
say "the last lines of $folder.log:"
tail -n 20 "$folder.log" >&2
rm -rf "$folder.new"
reason=$(grep -m1 -E '^(W: Failed|E: )' "$folder.log") || reason="see $folder.log"
say "it cannot be prepared on this machine: ${reason#?: }"
exit 1
