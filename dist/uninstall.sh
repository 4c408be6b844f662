#!/bin/sh
# Removes what install.sh placed: sh uninstall.sh [--root DIR] [--purge]; repeatable. The data plane is left: run
# `flanneld cleanup` before. Your own settings in /etc/flannel stay unless --purge is given.
set -eu
root=""
purge=false
while [ $# -gt 0 ]; do
	case "$1" in
		--root) root=${2:?--root needs a folder}; shift 2 ;;
		--purge) purge=true; shift ;;
		*) echo "usage: sh uninstall.sh [--root DIR] [--purge]" >&2; exit 1 ;;
	esac
done
if [ -z "$root" ] && [ "$(id -u)" != 0 ]; then echo "uninstall.sh: run it as root" >&2; exit 1; fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then systemctl disable --now flanneld.service || true; fi
for file in /usr/local/bin/flanneld /usr/local/libexec/flannel/mk-docker-opts.sh \
	/etc/systemd/system/flanneld.service \
	/etc/systemd/network/50-flannel.network /etc/systemd/network/50-flannel.link \
	/etc/NetworkManager/conf.d/flannel.conf; do
	if [ -e "$root$file" ]; then rm -f "$root$file"; echo "$file"; fi
done
rmdir "$root/usr/local/libexec/flannel" 2>/dev/null || true
if [ "$purge" = true ]; then
	rm -rf "$root/etc/flannel"
	echo /etc/flannel
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
