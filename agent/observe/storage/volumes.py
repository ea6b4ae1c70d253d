"""On which disk volume groups and the volumes of pods lie, for limits of block I/O."""

import re
from collections.abc import Iterable, Mapping

from agent.host import block_devices, files
from agent.model import blkio_annotation, state
from agent.observe import collectors
from api import names

_LONGEST = 8 * 1024 * 1024
_VOLUME = re.compile(r"/pods/(?P<uid>[^/]+)/volumes/[^/]+/(?P<name>[^/]+)(?:/mount)?$")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Volumes:
    """Finds the disks of volume groups, and of the volumes that pods want limits for."""

    name = "volumes"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def collect(self, sight: collectors.Sight) -> None:
        """Look once."""
        sight.disks.clear()
        devices = block_devices.look(sight.layout.sys)
        sight.disks.update({f"volumegroup:{k}": v for k, v in devices.groups().items()})
        wanted = wishes(sight.pods)
        if not wanted:
            return
        path = f"{sight.layout.proc}/1/mountinfo"
        text = files.read(path, _LONGEST).decode("utf-8", "replace")
        unknown = []
        found = mounted(text, devices)
        for uid, volumes in wanted.items():
            for volume in volumes:
                number = disk_of(found.get(uid, {}), volume)
                if number:
                    sight.disks[f"podvolume:{uid}/{volume}"] = number
                else:
                    unknown.append(f"{uid}/{volume}")
        if unknown:
            raise files.ReadingError(
                f"{path} tells no disk of {', '.join(unknown[:5])}: host.proc or the folder of the "
                "kubelet's pods must be the host's, and a pod with several volumes names the "
                "persistent volume itself"
            )

    def close(self) -> None:
        """Nothing is open."""


def wishes(pods: Iterable[state.PodState]) -> dict[str, list[str]]:
    """Return the volumes that pods want limits for, by the uid of the pod."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        written = pod.pod.metadata.annotations.get(names.ANNOTATION_BLKIO_QOS)
        for device in blkio_annotation.read(written) if written else ():
            if device.kind == "podvolume":
                found.setdefault(pod.pod.metadata.uid, []).append(device.name)
    return found


def mounted(text: str, devices: block_devices.Devices) -> dict[str, dict[str, str]]:
    """Return the disk of each mounted volume on a disk, by pod and by the volume's folder."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) < 10 or "-" not in words:
            continue
        place = _VOLUME.search(_plain(words[4]))
        if place is None:
            continue
        # Some file systems have a number of their own; then the source is the device.
        source = _plain(words[words.index("-") + 2])
        name = devices.named(words[2]) or _device(source, devices)
        disks = devices.under(name)
        if len(disks) == 1:
            found.setdefault(place["uid"], {})[place["name"]] = next(iter(disks))
    return found


def disk_of(volumes: Mapping[str, str], name: str) -> str:
    """Return the disk of a volume by the name of its folder, or the only one there is.

    The folder is called like the persistent volume; which of them a pod's own name of a volume
    means is written in the claim alone.
    """
    only = next(iter(volumes.values())) if len(volumes) == 1 else ""
    return volumes.get(name, only)


def _device(source: str, devices: block_devices.Devices) -> str:
    if source.startswith("/dev/mapper/"):
        mapped = source.removeprefix("/dev/mapper/")
        return next((name for name, known in devices.mapped.items() if known == mapped), "")
    return source.removeprefix("/dev/") if source.startswith("/dev/") else ""


def _plain(word: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), word)
