#!/bin/bash
# pack.sh ARCHIVE: packs the programs that tests run, with their libraries and settings. A guest has them in its memory
# then; else it asks this machine for each file that is opened, some twenty times for one `ip`, and is answered when a
# processor is free.
set -euo pipefail
archive=$1

programs="awk bash bridge busybox cat chmod cp cut date dd env ethtool find flock grep head id ip iperf3 ip6tables
  iptables kmod ln ls mkdir mktemp modprobe mount mv nft nsenter openssl paste ping ps readlink rm sed seq setpriv
  setsid sh sleep socat sort ss stat swanctl sync sysctl tail tc tcpdump tee timeout touch tr true umount uname uniq
  unshare wc wg xargs"
settings="/etc/alternatives /etc/gai.conf /etc/group /etc/host.conf /etc/hosts /etc/iproute2 /etc/ld.so.cache
  /etc/nsswitch.conf /etc/passwd /etc/protocols /etc/services /etc/ssl/openssl.cnf /etc/strongswan.conf
  /etc/strongswan.d /etc/swanctl"
folders="/usr/lib/ipsec /usr/lib/*/xtables /usr/lib/locale/C.utf8"

# Names without links among the folders, and what links lead to.
resolve() {
  local names
  names=$(if [ -L /lib ]; then sed -E 's#^/(s?bin|lib(32|64)?)/#/usr/\1/#'; else cat; fi | sort -u)
  printf '%s\n' "$names"
  xargs readlink -f <<<"$names"
}

# Not every machine has all of them.
# shellcheck disable=SC2086 # word lists, the last with patterns
{
  tools=$({ which $programs || true; ls -d /usr/sbin/*tables* || true; } | resolve)
  libraries=$({ echo "$tools"; find /usr/lib/ipsec -type f -not -name "*curl*" -not -name "*ldap*" -not -name "*gcrypt*"; } | xargs ldd | grep -o '/[^ :]*\.so[^ :]*' | resolve || true)
  { echo "$tools"; echo "$libraries"; ls -d $settings $folders || true; } | sort -u | sed 's#^/##' |
    tar cf "$archive" -C / -T -
} 2>/dev/null
