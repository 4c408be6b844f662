#!/bin/sh
# Turns the subnet file of flanneld into options for dockerd; see -h.

usage() {
	echo "$0 [-f FLANNEL-ENV-FILE] [-d DOCKER-ENV-FILE] [-i] [-c] [-m] [-k COMBINED-KEY]

Generate Docker daemon options based on the subnet file of flanneld.
OPTIONS:
	-f	Path to the subnet file. Defaults to /run/flannel/subnet.env
	-d	Path to the file written for Docker. Defaults to /run/docker_opts.env
	-i	Output each option as a variable of its own, e.g. DOCKER_OPT_MTU
	-c	Output all options in one variable
	-k	Name of that variable. Defaults to DOCKER_OPTS
	-m	Do not output --ip-masq (useful for old versions of Docker)
" >&2
	exit 1
}

flannel_env=/run/flannel/subnet.env
docker_env=/run/docker_opts.env
combined_key=DOCKER_OPTS
want_individual=false
want_combined=false
want_masq=true

while getopts "f:d:icmk:h?" option; do
	case "$option" in
		f) flannel_env=$OPTARG ;;
		d) docker_env=$OPTARG ;;
		i) want_individual=true ;;
		c) want_combined=true ;;
		m) want_masq=false ;;
		k) combined_key=$OPTARG ;;
		*) usage ;;
	esac
done

if [ "$want_individual" = false ] && [ "$want_combined" = false ]; then
	want_individual=true
	want_combined=true
fi

if [ -f "$flannel_env" ]; then
	# shellcheck disable=SC1090
	. "$flannel_env"
fi

if [ -n "$FLANNEL_SUBNET" ]; then
	# shellcheck disable=SC2034 # read back through `set`
	DOCKER_OPT_BIP="--bip=$FLANNEL_SUBNET"
fi

if [ -n "$FLANNEL_MTU" ]; then
	# shellcheck disable=SC2034
	DOCKER_OPT_MTU="--mtu=$FLANNEL_MTU"
fi

if [ -n "$FLANNEL_IPMASQ" ] && [ "$want_masq" = true ]; then
	case "$FLANNEL_IPMASQ" in
		# Only one of the two may masquerade.
		true) DOCKER_OPT_IPMASQ="--ip-masq=false" ;;
		false) DOCKER_OPT_IPMASQ="--ip-masq=true" ;;
		*)
			echo "Invalid value of FLANNEL_IPMASQ: $FLANNEL_IPMASQ" >&2
			exit 1
			;;
	esac
	# shellcheck disable=SC2034
	: "$DOCKER_OPT_IPMASQ"
fi

# Names of all DOCKER_OPT_ variables, those of the caller's environment included, in alphabetical order.
option_names=$(set | sed -n 's/^\(DOCKER_OPT_[A-Za-z0-9_]*\)=.*/\1/p' | sort)

: >"$docker_env" || exit 1

if [ "$want_individual" = true ]; then
	for name in $option_names; do
		eval "value=\$$name"
		echo "$name=\"$value\"" >>"$docker_env"
	done
fi

if [ "$want_combined" = true ]; then
	eval "combined=\$$combined_key"
	for name in $option_names; do
		eval "value=\$$name"
		combined="$combined $value"
	done
	echo "$combined_key=\"$combined\"" >>"$docker_env"
fi

# A route through a gateway to this host's own subnet means that flanneld here lost it to another host.
if [ -n "$FLANNEL_SUBNET" ] && command -v ip >/dev/null 2>&1; then
	network=$(echo "$FLANNEL_SUBNET" | sed 's/\.[0-9]*\//.0\//')
	if ip route show 2>/dev/null | grep -F "$network" | grep -q ' via '; then
		echo "There is already a route to $network through another host" >&2
		exit 1
	fi
fi
