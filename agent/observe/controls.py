"""What only decisions need to know of this host: limits, throttling, features, pressure.

Read beside the usage figures, and only as far as something is enforced that asks for it.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from agent.hooks.cpu import cpu_burst
from agent.host import files
from agent.model import cgroup_layout, edits, state, strategy_settings
from agent.observe.cgroups import cgroup_files
from agent.observe.node import kernel_features
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core

_QUALITIES = ("Guaranteed", "Burstable", state.BEST_EFFORT)


class Facts(msgspec.Struct, frozen=True):
    """What changes seldom."""

    kernel: state.Kernel = msgspec.field(default_factory=state.Kernel)
    caches: state.Caches | None = None
    disks: Mapping[str, str] = msgspec.field(default_factory=dict)
    network: state.Network | None = None
    pod_groups: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Groups that pods have on disk and the class they are in, where the kernel ranks them."""


class Place(msgspec.Struct, frozen=True):
    """Where this host's files lie."""

    proc: str
    sys: str
    mounting: bool = False
    """Whether resctrl may be mounted."""


class Controls:
    """Readings for decisions, each as often as it may change."""

    def __init__(self, place: Place, kept: files.Kept) -> None:
        self._place = place
        self._kept = kept
        self._facts = Facts()
        self._looked: float | None = None
        self._throttled: dict[str, tuple[int, int]] = {}
        self._sandboxes: dict[tuple[str, tuple[str, ...]], tuple[float, str]] = {}

    def facts(self, arranged: cgroup_layout.Layout, at: float, *, network: bool = False) -> Facts:
        """Return what the kernel and the machine offer, looked at once a minute."""
        if self._looked is None or at - self._looked >= kernel_features.SECONDS:
            self._looked = at
            classes = groups(arranged)
            kernel = kernel_features.kernel(arranged, classes.values())
            caches = kernel_features.caches(self._place.proc, self._place.sys)
            if self._place.mounting:
                mountable = kernel_features.can_divide(self._place.proc, self._place.sys)
                kernel = msgspec.structs.replace(kernel, mountable_caches=mountable)
            ranked = edits.Role.CPU_IDENTITY in kernel.roles
            self._facts = Facts(
                kernel,
                caches,
                kernel_features.disks(self._place.sys),
                _network() if network else None,
                kernel_features.pod_groups(arranged, classes) if ranked else {},
            )
            self._sandboxes = {
                key: found
                for key, found in self._sandboxes.items()
                if at - found[0] < 2 * kernel_features.SECONDS
            }
        return self._facts

    def pressure_of_node(self) -> state.Pressure:
        """Return how long tasks of the whole node wait."""
        paths = {what: f"{self._place.proc}/pressure/{what}" for what in ("cpu", "memory", "io")}
        return kernel_features.pressure(paths, self._kept)

    def pressure_of_online(
        self, arranged: cgroup_layout.Layout, pods: Sequence[state.PodState]
    ) -> state.Pressure:
        """Return how long tasks of online pods wait: the most that any of their groups does."""
        online = [arranged.qos_group("Burstable")] + [
            pod.group for pod in pods if pod.group and pod.kubernetes_qos == "Guaranteed"
        ]
        return kernel_features.highest(
            kernel_features.pressure(kernel_features.pressure_files(arranged, group), self._kept)
            for group in online
        )

    def throttled(self, group: str, cgroups: cgroup_files.Cgroups) -> float | None:
        """Return in which share of the periods since the last look a group was throttled."""
        now, before = cgroups.throttled(group), self._throttled.get(group)
        if now is None:
            self._throttled.pop(group, None)
            return None
        self._throttled[group] = now
        if before is None or now[0] < before[0] or now[1] < before[1]:
            return None
        periods = now[0] - before[0]
        return (now[1] - before[1]) / periods if periods else 0.0

    def forget(self, groups: Sequence[str]) -> None:
        """Keep the counters of these groups only."""
        if len(self._throttled) > 2 * len(groups):
            present = set(groups)
            self._throttled = {g: n for g, n in self._throttled.items() if g in present}

    def sandbox(
        self, arranged: cgroup_layout.Layout, group: str, known: Sequence[str], at: float
    ) -> str:
        """Return the group of the pause container: the one that no status names, if it is one."""
        key = group, tuple(known)
        found = self._sandboxes.get(key)
        if found is None or (not found[1] and at - found[0] >= kernel_features.SECONDS):
            found = self._sandboxes[key] = (at, _sandbox(arranged, group, known))
        return found[1]


def _network() -> state.Network:
    from agent.observe.network import interfaces  # noqa: PLC0415 - 109 KiB

    return interfaces.look()


def groups(arranged: cgroup_layout.Layout) -> dict[str, str]:
    """Return the groups of the three Kubernetes classes."""
    return {name: arranged.qos_group(name) for name in _QUALITIES}


class Asked(NamedTuple):
    """What decisions and reports ask about how a pod is limited."""

    quotas: bool = False
    throttling: bool = False


def asked(pod: core.Pod, wanted: strategy_settings.Strategies) -> Asked:
    """Tell what is read of a pod: quotas where it may burst, throttling unless it is batch work."""
    own = names.ANNOTATION_CPU_BURST in pod.metadata.annotations
    if wanted.burst.every.policy == "none" and not own:
        return Asked()
    named = qos.qos_of(pod.metadata.labels)
    return Asked(named not in cpu_burst.WITHOUT, named is not qos.QoS.BE)


def _sandbox(arranged: cgroup_layout.Layout, group: str, known: Sequence[str]) -> str:
    folder = arranged.folder(cgroup_layout.File.CPUSET, group)
    taken = {one.rpartition("/")[2] for one in known}
    try:
        with os.scandir(folder) as entries:
            left = [
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
                and entry.name not in taken
                and files.is_text(entry.name)
                and not cgroup_layout.accompanies(entry.name)
            ]
    except OSError:
        return ""
    # CRI-O under systemd makes the group of a sandbox itself, and it is no scope.
    plain = [name for name in left if not (name.startswith("crio-") and name.endswith(".scope"))]
    left = plain if len(left) > 1 else left
    return f"{group}/{left[0]}" if len(left) == 1 else ""
