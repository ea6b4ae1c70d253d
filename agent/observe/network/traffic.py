"""What pods and the node send and receive, as the kernel counts it for their interfaces.

A pod's interfaces are seen through any of its processes, so the agent must be able to name those:
it takes the host's process ids. Pods in the node's own network have no figures of their own.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from agent.host import files
from agent.model import cgroup_layout, state
from agent.observe import collectors
from agent.observe.node import kernel_features
from agent.store import time_series
from process.runtime import metrics

DIRECTIONS: Final = ("received", "sent")
_KINDS: Final = ("bytes", "packets", "dropped")
_COLUMNS: Final = {"received": (0, 1, 3), "sent": (8, 9, 11)}
_NOBODYS: Final = ("lo", "veth", "cali", "lxc", "tap", "eni")
"""Interfaces that only pass on what others count: ends of pods, and the loop."""
_MOST_INTERFACES: Final = 64
_LONGEST_GAP: Final = 6.0
Counts = Mapping[tuple[str, str], int]


class Pod(msgspec.Struct, frozen=True):
    """What is known of a pod where its figures go."""

    uid: str
    namespace: str
    name: str
    group: str = ""


class Shown:
    """The metrics and series of what was counted, from either source."""

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self._rates = time_series.Counters(_LONGEST_GAP * seconds)
        self._pods = _tables(figures, "koord_agent_network", ["pod_namespace", "pod_name"])
        self._node = _tables(figures, "koord_agent_node_network", ["interface"])

    def show(
        self, sight: collectors.Sight, node: Mapping[str, Counts], pods: Mapping[Pod, Counts]
    ) -> None:
        """Tell these counters and no others."""
        told = sorted(name for name in node if not name.startswith(_NOBODYS))[:_MOST_INTERFACES]
        if told:
            self._sample(sight, ("node",), "", total(node[name] for name in told))
        for pod, counts in pods.items():
            self._sample(sight, ("pod", pod.uid), pod.group, counts)
        self._rates.prune(sight.at)
        _tell(self._node, {(name,): node[name] for name in told})
        _tell(self._pods, {(pod.namespace, pod.name): found for pod, found in pods.items()})

    def clear(self) -> None:
        """Tell nothing any more."""
        _tell(self._node, {})
        _tell(self._pods, {})

    def _sample(
        self, sight: collectors.Sight, key: tuple[str, ...], group: str, counts: Counts
    ) -> None:
        """Keep rates per second, as `network-received-bytes` and so on."""
        for (direction, kind), count in counts.items():
            figure = f"network-{direction}-{kind}"
            rate = self._rates.rate((*key, group, figure), sight.at, count)
            if rate is not None:
                sight.add(key, figure, rate)


class Traffic:
    """Reads the counters of the interfaces of the node and of every pod."""

    name = "network"

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self.seconds = seconds
        self._shown = Shown(figures, seconds)

    def collect(self, sight: collectors.Sight) -> None:
        """Look at every interface once."""
        self.close()
        proc = sight.layout.proc
        if proc == "/proc" and not kernel_features.names_processes():
            raise files.ReadingError(
                "interfaces of pods and of the node are seen with the host's process ids only "
                "(agent.measure.network of the chart)"
            )
        node = interfaces(files.read(f"{proc}/1/net/dev"))
        pods: dict[Pod, Counts] = {}
        for pod in sight.pods:
            if pod.pod.spec.host_network or not pod.active:
                continue
            counts = of_pod(sight, pod)
            if counts is not None:
                metadata = pod.pod.metadata
                pods[Pod(metadata.uid, metadata.namespace, metadata.name, pod.group)] = counts
        self._shown.show(sight, node, pods)

    def close(self) -> None:
        """Tell nothing any more."""
        self._shown.clear()


def of_pod(sight: collectors.Sight, pod: state.PodState) -> Counts | None:
    """Return what a pod has sent and received, None while none of its processes is seen."""
    for container in pod.containers:
        if not container.running:
            continue
        path = sight.layout.path(cgroup_layout.File.PROCESSES, container.group)
        try:
            process = sight.kept.read(path, 64, head=True).split()[:1]
            if not process or process[0] == b"0":
                continue
            # Not kept open: that would keep the network of a pod that is gone.
            data = files.read(f"{sight.layout.proc}/{process[0].decode('ascii')}/net/dev")
        except (files.ReadingError, UnicodeDecodeError):
            # This container has just ended; its siblings share its network.
            continue
        return total(counts for name, counts in interfaces(data).items() if name != "lo")
    return None


def interfaces(data: bytes) -> dict[str, Counts]:
    """Read the counters of every interface."""
    found: dict[str, Counts] = {}
    for line in data.decode("ascii", "replace").splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or len(words) < 16:
            continue
        try:
            found[name.strip()] = {
                (direction, kind): int(words[column])
                for direction, columns in _COLUMNS.items()
                for kind, column in zip(_KINDS, columns, strict=True)
            }
        except ValueError:
            raise files.ReadingError(f"no counters in {line[:60]!r}") from None
    return found


def total(several: Iterable[Counts]) -> Counts:
    """Add up the counters of several interfaces."""
    found = dict[tuple[str, str], int]()
    for counts in several:
        for key, count in counts.items():
            found[key] = found.get(key, 0) + count
    return found


def _tell(tables: Mapping[str, metrics.Table], found: Mapping[tuple[str, ...], Counts]) -> None:
    for kind, table in tables.items():
        table.replace(
            {
                (*labels, direction): counts[direction, kind]
                for labels, counts in found.items()
                for direction in DIRECTIONS
                if (direction, kind) in counts
            }
        )


def _tables(figures: metrics.Registry, prefix: str, labels: list[str]) -> dict[str, metrics.Table]:
    said = {
        "bytes": ("bytes_total", "Bytes received and sent."),
        "packets": ("packets_total", "Packets received and sent."),
        "dropped": ("dropped_packets_total", "Packets that were to be received or sent, but lost."),
    }
    return {
        kind: figures.table(f"{prefix}_{name}", text, [*labels, "direction"])
        for kind, (name, text) in said.items()
    }
