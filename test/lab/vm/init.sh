#!/bin/bash
# The guest's first process: run.sh starts it with job=FOLDER on the kernel's command line.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
mount -t proc proc /proc
for word in $(</proc/cmdline); do case $word in job=*) job=${word#job=} ;; esac; done
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
ln -sfn /proc/self/fd /dev/fd
mount -t tmpfs run /run
mkdir -p /run/netns /run/lock /run/job /run/see
cp "$job"/* /run/job/ 2>/dev/null
kernel=$(</run/job/kernel)

# /tmp becomes the guest's own; what must be seen below it is bound there again.
# place SOURCE TARGET: makes TARGET a folder or a file as SOURCE is.
place() {
  mkdir -p "${2%/*}"
  if [ -d "$1" ]; then mkdir -p "$2"; else : >"$2"; fi
}
mapfile -t see < <(grep ^/tmp/ /run/job/see; case $kernel in /tmp/*) echo "$kernel" ;; esac)
for index in "${!see[@]}"; do
  place "${see[index]}" "/run/see/$index"
  mount --bind "${see[index]}" "/run/see/$index"
done
mount -t tmpfs -o mode=1777,size=60% tmp /tmp
for index in "${!see[@]}"; do
  place "/run/see/$index" "${see[index]}"
  mount --bind "/run/see/$index" "${see[index]}"
done

# The kernel asks for modules by running this.
printf '#!/bin/sh\nexec /sbin/modprobe -d %s "$@"\n' "$kernel/mod" >/run/modprobe
chmod +x /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
/run/modprobe -a ipv6 overlay br_netfilter tun 2>/dev/null

# What is opened all the time lies in memory, over the same files of the host: those would be asked for each time.
if [ -e /run/job/programs ]; then
  mkdir -p /run/packed
  tar x -C /run/packed -f "$(</run/job/programs)"
  mkdir -p /run/changes
  mv /run/packed/etc /run/changes/etc
  mount -t overlay -o lowerdir=/run/packed/usr:/usr overlay /usr
  repository=$(head -n 1 /run/job/see)
  tar x -C /run/packed -f /run/job/sources
  mount -t overlay -o "lowerdir=/run/packed$repository:$repository" overlay "$repository"
fi

# Places programs write to: changes stay in memory.
for folder in /etc /root /var; do
  mkdir -p "/run/changes$folder" "/run/changes-work$folder"
  mount -t overlay -o "lowerdir=$folder,upperdir=/run/changes$folder,workdir=/run/changes-work$folder" overlay "$folder"
done
ip link set lo up
# Through a pipe: programs shall not take the console for a terminal.
bash /run/job/command </dev/null 2>&1 | cat
printf '\n[vm] exit code %s\n' "${PIPESTATUS[0]}"
sync
busybox poweroff -f 2>/dev/null || echo o >/proc/sysrq-trigger
read -rt 10 </dev/zero
