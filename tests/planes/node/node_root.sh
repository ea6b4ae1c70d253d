#!/bin/sh
# Process 1 of a node, in namespaces of its own: everything that is mounted and configured here
# is gone with the last process in them. usage: node_root.sh BUSYBOX NODE ADDRESS SERVICE WORKDIR
set -eu
busybox=$1 node=$2 address=$3 service=$4 workdir=$5

"$busybox" hostname "$node"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
# The groups that this shell is in are the root of what is seen from now on.
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
while IFS=: read -r number controllers path; do
  [ "$path" = / ] || { echo "group $controllers is $path, not the root" >&2; exit 1; }
  case $controllers in
    "") folder=unified ;;
    name=*) folder=${controllers#name=} ;;
    *) folder=$controllers ;;
  esac
  mkdir "/sys/fs/cgroup/$folder"
  case $controllers in
    "") mount -t cgroup2 cgroup2 "/sys/fs/cgroup/$folder" ;;
    name=*) mount -t cgroup -o "none,$controllers" cgroup "/sys/fs/cgroup/$folder" ;;
    *) mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/$folder" ;;
  esac
done </proc/self/cgroup
for controllers in /sys/fs/cgroup/*,*; do
  # Hierarchies of several controllers are found under the name of each.
  [ -d "$controllers" ] || continue
  for name in $(basename "$controllers" | tr , ' '); do
    ln -s "$(basename "$controllers")" "/sys/fs/cgroup/$name"
  done
done

mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=755 log /var/log
# A node is new: what agents of earlier ones noted here, such as the kubelet's certificate, is not its.
mount -t tmpfs -o mode=755 lib /var/lib
# A kubelet sets these for the whole machine; here it finds that they are what it wants.
mkdir "$workdir/sysctl"
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=/proc/sys/${setting%=*}
  [ -e "$file" ] || continue
  copy=$workdir/sysctl/$(echo "${setting%=*}" | tr / -)
  echo "${setting#*=}" >"$copy"
  mount --bind "$copy" "$file"
done

"$busybox" ip link set lo up
"$busybox" ip addr add "$address/32" dev lo
"$busybox" ip addr add "$service/32" dev lo

echo ready >"$workdir/root-ready"
# Whoever loses its parent becomes a child of this one, which has no use for their exit codes.
trap '' CHLD
exec sleep infinity
