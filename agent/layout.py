"""Where the control groups of pods lie and what their files are called. Pure."""

import dataclasses
import enum
import re
from typing import Literal

Version = Literal[1, 2]
Driver = Literal["systemd", "cgroupfs"]
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_QOS = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
_SCOPES = {
    "docker": "docker",
    "containerd": "cri-containerd",
    "pouch": "pouch",
    "cri-o": "crio",
}


class LayoutError(ValueError):
    """An identity that cannot be part of a path."""


class File(enum.Enum):
    """A file of a group: its controller and name on v1, its name on v2."""

    CPU_USAGE = ("cpuacct", "cpuacct.usage", "cpu.stat")
    MEMORY_STAT = ("memory", "memory.stat", "memory.stat")
    CPUSET = ("cpuset", "cpuset.cpus", "cpuset.cpus")
    EFFECTIVE_CPUSET = ("cpuset", "cpuset.cpus", "cpuset.cpus.effective")
    CPU_QUOTA = ("cpu", "cpu.cfs_quota_us", "cpu.max")


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """How this host arranges its groups."""

    root: str
    version: Version
    driver: Driver
    base: str = ""
    """Folder above the groups of pods, empty for the root."""

    def qos_group(self, kubernetes_qos: str) -> str:
        """Return the group that holds the pods of a kubelet QoS class."""
        part = _QOS.get(kubernetes_qos)
        if part is None:
            raise LayoutError(f"{kubernetes_qos!r} is no QoS class of a kubelet")
        if self.driver == "systemd":
            path = f"kubepods.slice/kubepods-{part}.slice" if part else "kubepods.slice"
        else:
            path = f"kubepods/{part}" if part else "kubepods"
        return f"{self.base}/{path}" if self.base else path

    def pod_group(self, uid: str, kubernetes_qos: str) -> str:
        """Return the group of a pod; it follows the kubelet's class, never a label."""
        above = self.qos_group(kubernetes_qos)
        _check(uid, "uid of a pod")
        if self.driver == "cgroupfs":
            return f"{above}/pod{uid}"
        part = _QOS[kubernetes_qos]
        prefix = f"kubepods-{part}" if part else "kubepods"
        return f"{above}/{prefix}-pod{uid.replace('-', '_')}.slice"

    def container_group(self, pod_group: str, container_id: str) -> str:
        """Return the group of a container, from its id as a pod's status writes it."""
        runtime, found, identity = container_id.partition("://")
        if not found or runtime not in _SCOPES:
            known = ", ".join(_SCOPES)
            raise LayoutError(f"container id {container_id[:80]!r} begins with none of {known}")
        _check(identity, "id of a container")
        if self.driver == "cgroupfs":
            return f"{pod_group}/{identity}"
        return f"{pod_group}/{_SCOPES[runtime]}-{identity}.scope"

    def path(self, file: File, group: str) -> str:
        """Return the path of a file of a group."""
        controller, first, second = file.value
        if self.version == 1:
            return f"{self.root}/{controller}/{group}/{first}"
        return f"{self.root}/{group}/{second}"

    def folder(self, file: File, group: str) -> str:
        """Return the directory of a group, in the hierarchy of that file."""
        return self.path(file, group).rpartition("/")[0]


def _check(identity: str, what: str) -> None:
    if not _SAFE.fullmatch(identity):
        raise LayoutError(f"{identity[:80]!r} cannot be the {what}")
