"""What an agent enforces by until it has heard from a server: the last news of the one before it.

An outage of the API server must not remove isolation from a node whose agent is restarted. As long
as nothing newer was heard, the last NodeSLO, Node, live switches, pods and kubelet configuration
hold.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from agent.model.cpus import kubelet_cpu_manager
from agent.store import last_known
from api.kubernetes import core
from process.runtime import metrics

NODE, SLO, SWITCHES, PODS, KUBELET = "node", "nodeslo", "switches", "pods", "kubelet"
PODS_SECONDS: Final = 10.0
"""How often the list of pods is written at most."""
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError)
T = TypeVar("T")


class _Pods(msgspec.Struct, frozen=True):
    boot_id: str
    pods: tuple[core.Pod, ...]


class Remembered:
    """The last news of one node, from disk at first, and on disk whenever there are newer ones."""

    def __init__(self, folder: Path, boot_id: str) -> None:
        self._last = last_known.LastKnown(folder)
        self.boot_id = boot_id
        self._ages: dict[str, float] = {}
        self._pods_at: float | None = None
        self._kept_pods: object = None
        self._kept_kubelet: object = None
        self.node = self._read(NODE, _reader(core.Node))
        self.slo = self._read(SLO, _reader(dict[str, Any]))
        """The NodeSLO as the API server sent it."""
        self.switches = self._read(SWITCHES, _reader(dict[str, str]))
        """What the ConfigMap of the live switches said; None where it was never read."""
        self.kubelet = self._read(KUBELET, _reader(kubelet_cpu_manager.Configuration))
        found = self._read(PODS, _reader(_Pods))
        self.pods = found.pods if found is not None and found.boot_id == boot_id else None
        """The pods of this boot; those of another one have other cgroups."""

    @property
    def problem(self) -> str | None:
        """What could not be read or kept, None when all is well."""
        return self._last.problem

    def show(self, figures: metrics.Registry) -> None:
        """Export how old the news were by which this agent began."""
        gauge = figures.gauge(
            "koord_agent_last_known_age_seconds",
            "Age of what an earlier agent had kept, when this one started.",
            ["kind"],
        )
        for kind, age in self._ages.items():
            gauge.labels(kind).set(age)

    def keep_node(self, node: core.Node | None) -> None:
        """Remember the Node."""
        if node is not None:
            self._last.keep(NODE, msgspec.json.encode(node))

    def keep_slo(self, raw: Mapping[str, Any] | None) -> None:
        """Remember what is to be enforced, or that nothing is."""
        self.slo = None if raw is None else dict(raw)
        if raw is None:
            self._last.forget(SLO)
            return
        metadata = raw.get("metadata") or {}
        kept = {"name": metadata.get("name", ""), "generation": metadata.get("generation", 0)}
        body = {"metadata": kept, "spec": raw.get("spec") or {}}
        self._last.keep(SLO, msgspec.json.encode(body))

    def keep_switches(self, data: Mapping[str, str]) -> None:
        """Remember the live switches."""
        self._last.keep(SWITCHES, msgspec.json.encode(dict(data)))

    def keep_kubelet(self, found: kubelet_cpu_manager.Configuration | None) -> None:
        """Remember how the kubelet hands out cpus."""
        if found is not None and found is not self._kept_kubelet:
            self._kept_kubelet = found
            self._last.keep(KUBELET, msgspec.json.encode(found))

    def keep_pods(self, pods: tuple[core.Pod, ...], now: float) -> None:
        """Remember which pods run here; a list that did not change costs nothing."""
        if pods is self._kept_pods:
            return
        if self._pods_at is not None and 0 <= now - self._pods_at < PODS_SECONDS:
            return
        self._kept_pods, self._pods_at = pods, now
        self._last.keep(PODS, msgspec.json.encode(_Pods(self.boot_id, pods)))

    def forget(self) -> None:
        """Forget everything: no agent follows."""
        for name in (NODE, SLO, SWITCHES, PODS, KUBELET):
            self._last.forget(name)

    def _read(self, name: str, read: Callable[[bytes], T]) -> T | None:
        found = self._last.load(name)
        if found is None:
            return None
        body, age = found
        try:
            value = read(body)
        except _UNREADABLE as error:
            self._last.quarantine(name, f"{type(error).__name__}: {error}")
            return None
        self._ages[name] = age
        return value


def _reader(kind: type[T]) -> Callable[[bytes], T]:
    return msgspec.json.Decoder(kind).decode
