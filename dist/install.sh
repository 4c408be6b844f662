#!/bin/sh
# Installs flanneld on this host: sh install.sh [--root DIR] [--binary FILE]; repeatable. uninstall.sh undoes it.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=""
binary="$here/bin/flanneld"
while [ $# -gt 0 ]; do
	case "$1" in
		--root) root=${2:?--root needs a folder}; shift 2 ;;
		--binary) binary=${2:?--binary needs a file}; shift 2 ;;
		*) echo "usage: sh install.sh [--root DIR] [--binary FILE]" >&2; exit 1 ;;
	esac
done
if [ -z "$root" ] && [ "$(id -u)" != 0 ]; then echo "install.sh: run it as root" >&2; exit 1; fi
if [ ! -f "$binary" ]; then echo "install.sh: there is no $binary: run \`npm run build\`, or name it by --binary" >&2; exit 1; fi

place() { # MODE SOURCE TARGET: whole or not at all
	mkdir -p "$(dirname "$root$3")"
	cp "$2" "$root$3.new"
	chmod "$1" "$root$3.new"
	mv -f "$root$3.new" "$root$3"
	echo "$3"
}
place 755 "$binary" /usr/local/bin/flanneld
place 755 "$here/mk-docker-opts.sh" /usr/local/libexec/flannel/mk-docker-opts.sh
place 644 "$here/systemd/flanneld.service" /etc/systemd/system/flanneld.service
if [ -d "$root/etc/systemd/network" ] || [ -d /run/systemd/system ]; then
	place 644 "$here/networkd/50-flannel.network" /etc/systemd/network/50-flannel.network
	place 644 "$here/networkd/50-flannel.link" /etc/systemd/network/50-flannel.link
fi
if [ -d "$root/etc/NetworkManager" ]; then
	place 644 "$here/NetworkManager/flannel.conf" /etc/NetworkManager/conf.d/flannel.conf
fi
mkdir -p "$root/etc/flannel/plugins"
chmod 755 "$root/etc/flannel" "$root/etc/flannel/plugins"
if [ ! -e "$root/etc/flannel/flanneld.env" ]; then
	printf '# Flags of flanneld, see flanneld --help.\n#FLANNELD_ETCD_ENDPOINTS=http://192.0.2.100:2379\n' >"$root/etc/flannel/flanneld.env"
	chmod 600 "$root/etc/flannel/flanneld.env"
	echo /etc/flannel/flanneld.env
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
