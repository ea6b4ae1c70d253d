#!/bin/sh
# What a node's processors have worked, as machine containers show it to their pods: the time of
# the node's own groups, not that of the machine below. usage: node_view.sh FILE
set -eu
mkdir -p "$(dirname "$1")"
: >"$1"
while :; do
  read -r used </sys/fs/cgroup/cpuacct/cpuacct.usage
  # Readers keep the file open: it is overwritten in one go and always as long.
  printf 'cpu  %020d 0 0 0 0 0 0 0 0 0\n' "$((used / 10000000))" 1<>"$1"
  sleep 0.1
done
