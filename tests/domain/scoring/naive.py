"""The same scores a second time: one node after the other, from objects as they are written.

Slow and plain; nothing of the package under test is used but the values of a profile.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from domain.scoring import profile

Object = Mapping[str, Any]
SUFFIXES = {"m": Decimal("0.001"), "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6}


def amount(text: object) -> Decimal:
    """Read a quantity."""
    written = str(text)
    for suffix, factor in SUFFIXES.items():
        if written.endswith(suffix):
            return Decimal(written.removesuffix(suffix)) * factor
    return Decimal(written)


def whole(name: str, value: Decimal) -> int:
    """Count cpu in thousandths and the rest in ones, rounded up."""
    scaled = value * 1000 if name == "cpu" else value
    return int(scaled.to_integral_value(ROUND_CEILING))


def requested(pod: Object, name: str, missing: Decimal) -> int:
    """Return what a pod requests of one resource."""
    spec = pod["spec"]

    def of(container: Object) -> Decimal:
        requests = container.get("resources", {}).get("requests", {})
        return amount(requests[name]) if name in requests else missing

    together = sum((of(one) for one in spec["containers"]), Decimal(0))
    before, peak = Decimal(0), Decimal(0)
    for one in spec.get("initContainers", ()):
        if one.get("restartPolicy") == "Always":
            before += of(one)
            together += of(one)
            peak = max(peak, before)
        else:
            peak = max(peak, before + of(one))
    overhead = amount(spec.get("overhead", {}).get(name, 0))
    return whole(name, max(together, peak) + overhead)


def counted_apart(pod: Object, name: str, missing: Decimal) -> int:
    """Return what a pod on a node counts up to 1.31, where sidecars are init containers."""
    spec = pod["spec"]

    def of(container: Object) -> Decimal | None:
        written = container.get("resources", {}).get("requests", {}).get(name)
        return None if written is None else amount(written)

    together = 0
    for one in spec["containers"]:
        asked = of(one)
        together += whole(name, missing if asked is None else asked)
    before: Decimal | None = None
    starts = [0]
    for one in spec.get("initContainers", ()):
        asked = of(one)
        known = [part for part in (before, asked) if part is not None]
        start = sum(known, Decimal(0)) if known else None
        starts.append(whole(name, missing if start is None else start))
        if one.get("restartPolicy") == "Always":
            before = start
    overhead = whole(name, amount(spec.get("overhead", {}).get(name, 0)))
    return max(together, *starts) + overhead


class Naive:
    """A cluster as lists of objects."""

    def __init__(self, settings: profile.ScoringProfile, cluster: Mapping[str, list[Any]]) -> None:
        self.settings = settings
        self.nodes = {node["metadata"]["name"]: node for node in cluster["nodes"]}
        self.workloads = cluster["workloads"]
        self.pods: list[tuple[Object, str]] = [(pod, node) for pod, node in cluster["placed"]]

    def totals(self, pod: Object, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the weighted scores of each plug-in by node, with their sum as ``total``."""
        scored = {name: dict[str, int]() for name in names}
        plugins: dict[str, Callable[[Object, Sequence[str]], list[int] | None]] = {
            profile.FIT: self.fit,
            profile.BALANCE: self.balance,
            profile.TAINTS: self.taints,
            profile.NODE_AFFINITY: self.node_affinity,
            profile.IMAGES: self.images,
            profile.SPREAD: self.spread,
        }
        for plugin, weight in self.settings.weights:
            found = plugins[plugin](pod, names) if plugin in plugins else None
            for name, score in zip(names, found or (), strict=bool(found)):
                scored[name][plugin] = score * weight
        for figures in scored.values():
            figures["total"] = sum(figures.values())
        return scored

    def _on(self, node: str) -> list[Object]:
        return [pod for pod, place in self.pods if place == node]

    def _figures(self, pod: Object, node: str, name: str, plain: bool) -> tuple[int, int, int]:
        """Return capacity, what is requested and what the pod requests of one resource."""
        minimum = {"cpu": Decimal("0.1"), "memory": Decimal(200 * 2**20)}
        missing = Decimal(0) if plain else minimum.get(name, Decimal(0))
        offered = self.nodes[node]["status"]["allocatable"]
        capacity = whole(name, amount(offered.get(name, 0)))
        older = self.settings.release.minor <= 31 and not plain and name in minimum
        counted = counted_apart if older else requested
        taken = sum(counted(one, name, missing) for one in self._on(node))
        return capacity, taken, requested(pod, name, missing)

    def fit(self, pod: Object, names: Sequence[str]) -> list[int]:
        """Score how full nodes are."""
        fit = self.settings.fit
        scores = []
        for node in names:
            points, weights = 0, 0
            for name, weight in fit.weights:
                capacity, taken, asked = self._figures(pod, node, name, plain=False)
                if not capacity or ("/" in name and not asked):
                    continue
                used = min(taken + asked, capacity)
                if fit.strategy.value == "LeastAllocated":
                    score = (capacity - used) * 100 // capacity
                elif fit.strategy.value == "MostAllocated":
                    score = used * 100 // capacity
                else:
                    score = fit.ramp[used * 100 // capacity]
                    if not score:
                        continue
                points, weights = points + score * weight, weights + weight
            if not weights:
                scores.append(0)
            elif fit.ramp:
                scores.append(math.floor(points / weights + 0.5))
            else:
                scores.append(points // weights)
        return scores

    def balance(self, pod: Object, names: Sequence[str]) -> list[int] | None:
        """Score how even nodes are."""
        release = self.settings.release
        asked = [requested(pod, name, Decimal(0)) for name in self.settings.balanced]
        if release.balance_skips_best_effort and not any(asked):
            return None
        scores = []
        for node in names:
            after = self._evenness(pod, node, with_pod=True)
            before = self._evenness(pod, node, with_pod=False)
            scores.append(50 + (50 + after - before) // 2 if release.balance_gain else after)
        return scores

    def _evenness(self, pod: Object, node: str, with_pod: bool) -> int:
        shares = []
        for name in self.settings.balanced:
            capacity, taken, asked = self._figures(pod, node, name, plain=True)
            if capacity and (asked or "/" not in name):
                shares.append(min((taken + (asked if with_pod else 0)) / capacity, 1.0))
        if len(shares) == 2:
            deviation = abs((shares[0] - shares[1]) / 2)
        elif len(shares) > 2:
            mean = math.fsum(shares) / len(shares)
            deviation = math.sqrt(sum((one - mean) ** 2 for one in shares) / len(shares))
        else:
            deviation = 0.0
        return int((1 - deviation) * 100.0)

    def taints(self, pod: Object, names: Sequence[str]) -> list[int]:
        """Score taints that are not tolerated."""
        tolerations = pod["spec"].get("tolerations", ())

        def tolerated(taint: Object) -> bool:
            return any(
                one.get("effect") in (None, "PreferNoSchedule")
                and one.get("key") in (None, taint["key"])
                and (one.get("operator") == "Exists" or one.get("value") == taint.get("value"))
                for one in tolerations
            )

        counts = [
            sum(
                taint["effect"] == "PreferNoSchedule" and not tolerated(taint)
                for taint in self.nodes[node]["spec"].get("taints", ())
            )
            for node in names
        ]
        most = max(counts)
        return [100 - 100 * count // most if most else 100 for count in counts]

    def node_affinity(self, pod: Object, names: Sequence[str]) -> list[int] | None:
        """Score preferred terms, which ask for one label each."""
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution")
        if not preferred:
            return None
        sums = [
            sum(
                one["weight"]
                for one in preferred
                for wanted in one["preference"]["matchExpressions"]
                if self.nodes[node]["metadata"]["labels"].get(wanted["key"]) in wanted["values"]
            )
            for node in names
        ]
        most = max(sums)
        return [100 * one // most if most else 0 for one in sums]

    def images(self, pod: Object, names: Sequence[str]) -> list[int]:
        """Score images that nodes have."""
        spec, kind = pod["spec"], self.settings.release.images.name
        wanted = [one["image"] for one in spec["containers"]]
        if kind != "CONTAINERS":
            wanted += [one["image"] for one in spec.get("initContainers", ())]
        full = [name if ":" in name.rpartition("/")[2] else f"{name}:latest" for name in wanted]
        scores = []
        for node in names:
            here = self._images(node)
            total = 0
            for name in full:
                spread = sum(name in self._images(other) for other in self.nodes) / len(self.nodes)
                total += int(here.get(name, 0) * spread)
            most = 1000 * 2**20 * len(full)
            within = max(23 * 2**20, min(total, most))
            scores.append(100 * (within - 23 * 2**20) // (most - 23 * 2**20))
        return scores

    def _images(self, node: str) -> dict[str, int]:
        held = self.nodes[node]["status"].get("images", ())
        return {name: one["sizeBytes"] for one in held for name in one["names"]}

    def spread(self, pod: Object, names: Sequence[str]) -> list[int] | None:
        """Score how crowded hosts and zones are with pods of the same controller or Service."""
        wanted = self._selector(pod)
        if not wanted:
            return None
        zone_key = "topology.kubernetes.io/zone"
        labels = {name: node["metadata"]["labels"] for name, node in self.nodes.items()}
        zones = {labels[name].get(zone_key, "") for name in names}

        def count(node: str) -> int:
            return sum(
                one["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and wanted.items() <= one["metadata"]["labels"].items()
                for one in self._on(node)
            )

        required = pod["spec"].get("nodeSelector", {})
        raw = []
        for name in names:
            score = 0.0
            if "kubernetes.io/hostname" in labels[name]:
                score += count(name) * math.log(len(names) + 2) + 2.0
            if zone_key in labels[name]:
                together = sum(
                    count(other)
                    for other in self.nodes
                    if labels[other].get(zone_key, "") == labels[name][zone_key]
                    and required.items() <= labels[other].items()
                )
                score += together * math.log(len(zones) + 2) + 4.0
            raw.append(math.floor(score + 0.5))
        least, most = min(raw), max(raw)
        return [100 * (most + least - one) // most if most else 100 for one in raw]

    def _selector(self, pod: Object) -> dict[str, str]:
        metadata = pod["metadata"]
        wanted: dict[str, str] = {}
        for one in self.workloads:
            if one["metadata"]["namespace"] != metadata["namespace"]:
                continue
            selector = one["spec"]["selector"]
            if one["kind"] == "Service":
                if selector.items() <= metadata["labels"].items():
                    wanted |= selector
            elif {"kind": one["kind"], "name": one["metadata"]["name"]} in [
                {"kind": owner["kind"], "name": owner["name"]}
                for owner in metadata.get("ownerReferences", ())
            ]:
                wanted |= selector.get("matchLabels", {})
        return wanted
