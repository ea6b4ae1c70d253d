#!/usr/bin/env bash
# Runs in a mount namespace of its own; build.py sets the variables.
set -euo pipefail

# Buildah starts itself again without its environment, so its libraries and its configuration
# have to be where an installed one has them: here, in this view of the file system only.
mount -t overlay overlay -o "lowerdir=$TOOLS/usr:/usr" /usr
mount -t overlay overlay -o "lowerdir=$TOOLS/etc:/etc" /etc

runroot=$(mktemp -d)
trap 'rm -rf "$runroot"' EXIT
bud() { buildah --root "$STORAGE" --runroot "$runroot" --storage-driver overlay "$@"; }

base=$BASE
if [ -f "$BASE" ]; then
  base=localhost/koord-base
fi
if [ -f "$BASE" ] && ! bud inspect --type image "$base" >/dev/null 2>&1; then
  container=$(bud from scratch)
  bud add --quiet "$container" "$BASE" /
  bud config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  bud commit --quiet --rm --timestamp "$EPOCH" "$container" "$base"
fi

arguments=()
while IFS= read -r label; do arguments+=(--label "$label"); done <<<"$LABELS"
# The certificates that this machine trusts, where something between it and the index is trusted.
[ -d /etc/ssl/certs ] && arguments+=(--volume /etc/ssl/certs:/etc/ssl/certs:ro)
[ -n "${PIP_INDEX_URL:-}" ] && arguments+=(--build-arg "PIP_INDEX_URL=$PIP_INDEX_URL")
bud bud --isolation chroot --layers --timestamp "$EPOCH" --build-arg "BASE=$base" \
  "${arguments[@]}" --tag "$TAG" "$CONTEXT"
bud push --quiet "$TAG" "$DESTINATION:$TAG"
