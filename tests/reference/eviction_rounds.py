"""A round of evictions worked out once more, from what was recorded of its tasks.

Nothing of the agent's own rounds is used. Played as the reference plays it, a round has to come
out as recorded; played with our rules, it is what we answer where the two differ on purpose.
"""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from api.wire import quantity

REQUESTED: Final = "podResourceRequest"
_LENT: Final = {
    "koord-batch": {"cpu": "kubernetes.io/batch-cpu", "memory": "kubernetes.io/batch-memory"},
    "koord-mid": {"cpu": "kubernetes.io/mid-cpu", "memory": "kubernetes.io/mid-memory"},
}
_RANGES: Final = {
    "koord-prod": range(9000, 10000),
    "koord-mid": range(7000, 8000),
    "koord-batch": range(5000, 6000),
    "koord-free": range(3000, 4000),
}
_ORDER: Final = {
    "cpu": ("BECPUEvict", "CPUAllocatableEvict", "CPUEvict"),
    "memory": ("BEMemoryEvict", "MemoryAllocatableEvict", "MemoryEvict"),
}
_QOS: Final = {
    "LSE": "koord-prod", "LSR": "koord-prod", "LS": "koord-prod", "BE": "koord-batch",
    "SYSTEM": "",
}  # fmt: skip
_LABEL: Final = "koordinator.sh/priority-class"
Released = dict[tuple[str, str], int]


@dataclasses.dataclass(frozen=True)
class Round:
    """One recorded round of one native resource."""

    native: str
    given: Mapping[str, Any]
    tasks: Mapping[str, Any]
    ours: bool

    def played(self) -> list[tuple[str, str]]:
        """Return who leaves and by which feature, in order."""
        if not self.given["thresholdStrategy"].get("enable"):
            return []
        released: Released = collections.defaultdict(int)
        handled: set[str] = set()
        left = []
        for feature in self._active():
            wanted = self.wanted(feature)
            for name in self._victims(feature):
                target = self.tasks[feature]["releaseTarget"]
                if all(amount <= released[target, r] for r, amount in wanted.items()):
                    break
                if name in handled or not self._can_go(name):
                    continue
                handled.add(name)
                for key, amount in self._gives(name, feature).items():
                    released[key] += amount
                if name not in self.given.get("alreadyEvicted", ()):
                    left.append((name, feature))
        return left

    def wanted(self, feature: str) -> Mapping[str, int]:
        """Return what a task has to free; plain cpu in milli-cores where the round is ours."""
        found = self.tasks[feature]["toRelease"]
        return plain_cpu(feature, found) if self.ours else found

    def _can_go(self, name: str) -> bool:
        gone = self.given.get("alreadyEvicted", ())
        return name in gone or name not in self.given.get("evictFails", ())

    def _active(self) -> list[str]:
        gates = self.given["featureGates"]
        return [
            name
            for name in _ORDER[self.native]
            if gates.get(name) and "toRelease" in self.tasks[name]
        ]

    def _victims(self, feature: str) -> list[str]:
        names = self.tasks[feature]["sortedPods"] or []
        if self.ours and feature.endswith("AllocatableEvict"):
            # Whoever takes nothing of what is over would leave in vain.
            wanted, asked = self.wanted(feature), {name: self._requested(name) for name in names}
            return [name for name in names if asked[name][0] in wanted and asked[name][1] > 0]
        return list(names)

    def _gives(self, name: str, by: str) -> Released:
        """Return what one eviction frees: the most that any task says, by target."""
        most: Released = {}
        for feature in self._active():
            target = self.tasks[feature]["releaseTarget"]
            for resource, amount in self._freed(name, feature, by).items():
                key = target, resource
                most[key] = max(most.get(key, 0), amount)
        return most

    def _freed(self, name: str, feature: str, by: str) -> Mapping[str, int]:
        if feature == "BECPUEvict":
            batch = "kubernetes.io/batch-cpu"
            plain = self._pod(name)["spec"]["containers"]
            return {batch: sum(_amount(one, batch) for one in plain)}
        if feature.endswith("AllocatableEvict"):
            resource, amount = self._requested(name)
            wanted = self.wanted(feature)
            # The reference counts nothing for plain cpu and memory.
            counted = self.ours or resource != self.native
            return {resource: amount} if counted and resource in wanted else {}
        if self.native == "cpu":
            return {"cpu": int(self.given["podCPUUsageCores"].get(name, 0) * 1000)}
        # Who was chosen by priority counts a thousandfold.
        factor = 1 if by == "BEMemoryEvict" else 1000
        return {"memory": self.given["podMemoryUsageBytes"].get(name, 0) * factor}

    def _pod(self, name: str) -> Mapping[str, Any]:
        (found,) = [pod for pod in self.given["pods"] if pod["metadata"]["name"] == name]
        return found

    def _requested(self, name: str) -> tuple[str, int]:
        """Return which resource a pod takes in place of a native one, and how much."""
        pod = self._pod(name)
        resource = _LENT.get(_class(pod), {}).get(self.native)
        if resource is not None:
            sidecars = [
                one
                for one in pod["spec"].get("initContainers") or ()
                if one.get("restartPolicy") == "Always"
            ]
            return resource, sum(
                _amount(one, resource) for one in (*pod["spec"]["containers"], *sidecars)
            )
        return self.native, _requests(pod["spec"], self.native)


def plain_cpu(feature: str, to_release: Mapping[str, int]) -> dict[str, int]:
    """Return what has to be freed with plain cpu in milli-cores.

    The reference counts requests of it a thousandfold.
    """
    if feature != "CPUAllocatableEvict" or "cpu" not in to_release:
        return dict(to_release)
    milli, rest = divmod(to_release["cpu"], 1000)
    assert rest == 0, to_release
    return {**to_release, "cpu": milli}


def _named(pod: Mapping[str, Any]) -> str:
    """Return the priority class that a pod names by label or value."""
    labels = pod["metadata"].get("labels") or {}
    if _LABEL in labels:
        return labels[_LABEL] if labels[_LABEL] in _RANGES else ""
    value = pod["spec"].get("priority")
    return next((name for name, found in _RANGES.items() if value in found), "")


def _class(pod: Mapping[str, Any]) -> str:
    """Return the class that a pod names, else the one that its QoS class stands for."""
    qos = (pod["metadata"].get("labels") or {}).get("koordinator.sh/qosClass", "")
    if qos not in _QOS:
        qos = "BE" if _is_best_effort(pod) else "LS"
    return _named(pod) or _QOS[qos]


def _is_best_effort(pod: Mapping[str, Any]) -> bool:
    told = (pod.get("status") or {}).get("qosClass")
    spec = pod["spec"]
    every = (*spec["containers"], *(spec.get("initContainers") or ()))
    plain = any(
        _amount(one, native, kind)
        for one in every
        for native in ("cpu", "memory")
        for kind in ("requests", "limits")
    )
    return told == "BestEffort" if told else not plain


def _requests(spec: Mapping[str, Any], native: str) -> int:
    """Return what a pod requests: all that runs together, or more while it starts."""
    sidecars = start = 0
    for one in spec.get("initContainers") or ():
        start = max(start, sidecars + _amount(one, native))
        sidecars += _amount(one, native) if one.get("restartPolicy") == "Always" else 0
    together = sidecars + sum(_amount(one, native) for one in spec["containers"])
    overhead = quantity.amount(native, (spec.get("overhead") or {}).get(native, 0))
    return max(together, start) + overhead


def _amount(container: Mapping[str, Any], resource: str, kind: str = "requests") -> int:
    written = (container.get("resources") or {}).get(kind) or {}
    return quantity.amount(resource, written.get(resource, 0))
