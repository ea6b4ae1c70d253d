"""LowNodeLoad a second time, node by node and pod by pod, on recorded cases; slow and plain.

Each switch is one way in which the reference decides and the plug-in does not. It shares no code
with the plug-in.
"""

import collections
import functools
import math
import operator

import msgspec

from api.koordinator.metadata import qos
from api.kubernetes import core, selectors
from api.wire import durations, quantity
from domain.pods import resources
from tests.descheduler.plugins.low_node_load.naive_objects import (
    FULL,
    Detector,
    Node,
    Pod,
    Switches,
    completed,
)

BANDS = ("koord-free", "koord-batch", "koord-mid", "koord-prod", "")
CLASSES = ("BE", "LS", "LSR", "LSE")
NATIVE = {"BestEffort": "BE", "Burstable": "LS", "Guaranteed": "LSR"}


def added(numbers):
    """The sum as the reference rounds it: from Python 3.12 on sum() does that in another way."""
    return functools.reduce(operator.add, numbers, 0.0)


class Round:
    def __init__(self, given, switches, detectors):
        self.given, self.switches = given, switches
        self.args = given["args"]
        (self.pool,) = self.args["nodePools"]
        self.detectors = detectors
        self.percents = completed(self.pool)
        self.resources = sorted(self.percents[0])
        raw = [msgspec.convert(one, core.Node) for one in given["nodes"]]
        selector = self.pool.get("nodeSelector")
        raw = [n for n in raw if selector is None or selectors.matches(selector, n.metadata.labels)]
        self.size = len(raw)
        reports = {one["node"]: one for one in given["nodeMetrics"]}
        limit = self.args["nodeMetricExpirationSeconds"]
        self.nodes = [
            self.node(one, reports[one.metadata.name])
            for one in raw
            if one.metadata.name in reports and reports[one.metadata.name]["ageSeconds"] < limit
        ]
        self.thresholds()

    def node(self, raw, report):
        used = {
            f"{one['namespace']}/{one['name']}": quantity.amounts(one["podUsage"]["resources"])
            for one in report["podsMetric"]
        }
        pods = []
        free = resources.amounts(raw.status.allocatable)
        for one in self.given["pods"]:
            pod = msgspec.convert(one, core.Pod)
            if pod.spec.node_name != raw.metadata.name:
                continue
            found = Pod(pod, qos.band_of_pod(pod), None)
            found.used = used.get(found.key)
            pods.append(found)
            for key, amount in {**resources.pod_requests(pod), "pods": 1}.items():
                if key in free:
                    free[key] -= amount
        written = raw.metadata.annotations.get("node.koordinator.sh/raw-allocatable")
        capacity = resources.amounts(raw.status.allocatable)
        if written and self.switches.drops_capacity:
            capacity = collections.Counter(quantity.amounts(msgspec.json.decode(written)))
        elif written:
            capacity |= quantity.amounts(msgspec.json.decode(written))
        system = quantity.amounts(report["systemUsage"])
        prod = [pod for pod in pods if pod.band is qos.Band.PROD]
        return Node(
            raw,
            pods,
            capacity,
            self.total([system, *used.values()], len(pods)),
            self.total([pod.used for pod in prod if pod.used], len(prod)),
            free,
        )

    def total(self, parts, pods):
        found = {r: sum(part.get(r, 0) for part in parts) for r in self.resources}
        if "pods" in found:
            found["pods"] = pods
        return found

    def thresholds(self):
        low, high, prod_low, prod_high = self.percents
        for r in self.resources:
            self.bound(r, low[r], high[r], ("usage", "low", "high"))
            self.bound(r, prod_low[r], prod_high[r], ("prod", "prod_low", "prod_high"))

    def bound(self, r, low, high, attributes):
        used, into_low, into_high = attributes
        bounds = [low, high]
        if self.pool.get("useDeviationThresholds"):
            shares = [
                getattr(n, used)[r] / n.capacity[r] * 100.0 for n in self.nodes if n.capacity[r]
            ]
            mean = added(shares) / len(self.nodes) if self.nodes else 0.0
            bounds = [min(max(one, 0.0), FULL) for one in (mean - low, mean + high)]
            if low == 0.0:
                bounds = [FULL, FULL]
        for node in self.nodes:
            for into, percent in zip((into_low, into_high), bounds, strict=True):
                getattr(node, into)[r] = math.trunc(percent * 0.01 * node.capacity[r])

    def under(self, used, bound):
        return all(used[r] <= bound[r] for r in self.resources)

    def classified(self):
        out = {key: [] for key in ("low", "high", "prodLow", "prodHigh", "bothLow")}
        for n in self.nodes:
            low = not n.raw.spec.unschedulable and self.under(n.usage, n.low)
            prod_low = not n.raw.spec.unschedulable and self.under(n.prod, n.prod_low)
            high, prod_high = not self.under(n.usage, n.high), not self.under(n.prod, n.prod_high)
            if low:
                out["prodHigh" if prod_high else "bothLow" if prod_low else "low"].append(n)
            elif high:
                out["high"].append(n)
            elif prod_high or prod_low:
                out["prodHigh" if prod_high else "prodLow"].append(n)
        return out

    def run(self):
        """Return evictions."""
        out = self.classified()
        if not out["high"] and not out["prodHigh"]:
            return []
        high = self.abnormal(out["high"], "node")
        prod_high = self.abnormal(out["prodHigh"], "prod")
        if not high and not prod_high:
            return []
        for kind, nodes in (("node", out["low"] + out["bothLow"]), ("prod", out["prodLow"])):
            self.reset_all(nodes, kind)
        targets = len(out["low"]) + len(out["prodLow"]) + len(out["bothLow"])
        if targets in (0, self.size) or targets <= self.args["numberOfNodes"]:
            return []
        both, prod_both = self.room(out["bothLow"])
        available, _ = self.room(out["low"] + out["bothLow"])
        _, prod_available = self.room(out["prodLow"])
        evicted = []
        for node in sorted(high, key=self.score, reverse=True):
            evicted += self.relieve(node, out["low"] + out["bothLow"], available, prod=False)
        for r in self.resources:
            prod_available[r] += min(prod_both[r], both[r], available[r])
        for node in sorted(prod_high, key=self.score, reverse=True):
            targets = out["prodLow"] + out["bothLow"]
            evicted += self.relieve(node, targets, prod_available, prod=True)
        self.mark_normal(high, "node")
        self.mark_normal(prod_high, "prod")
        return evicted

    def mark_normal(self, nodes, kind):
        for node in nodes:
            self.mark(node, kind, abnormal=False)

    def reset_all(self, nodes, kind):
        for node in nodes:
            self.reset(node, kind)

    def room(self, nodes):
        return (
            {r: sum(n.high[r] - n.usage[r] for n in nodes) for r in self.resources},
            {r: sum(n.prod_high[r] - n.prod[r] for n in nodes) for r in self.resources},
        )

    def score(self, n):
        weights = self.pool["resourceWeights"]
        total = 0
        for r, weight in weights.items():
            size = n.capacity[r]
            total += weight * (min(n.usage.get(r, 0), size) * 1000 // size if size else 0)
        return total // sum(weights.values())

    def bounds(self, node, prod):
        return (node.prod, node.prod_high) if prod else (node.usage, node.high)

    def relieve(self, node, targets, available, *, prod):
        if not targets:
            return []
        pods = [p for p in node.pods if not prod or p.band is qos.Band.PROD]
        removable = [p for p in pods if self.removable(p, targets, prod)]
        evicted = []
        for pod in sorted(removable, key=self.order(node, prod)):
            if self.under(*self.bounds(node, prod)):
                self.reset(node, "prod" if prod else "node")
                break
            if any(available[r] <= 0 for r in self.resources):
                break
            if not self.leaves(pod, targets, prod):
                continue
            reason = self.reason(node, prod)
            evicted.append({"node": node.raw.metadata.name, "pod": pod.key, "reason": reason})
            for r in self.resources if pod.used is not None else ():
                amount = 1 if r == "pods" else pod.used.get(r, 0)
                available[r] -= amount
                node.usage[r] -= amount
                node.prod[r] -= amount if prod else 0
        return evicted

    def leaves(self, pod, targets, prod):
        if not self.switches.evicts_unmeasured and pod.used is None:
            return False
        target = None
        if not self.switches.books_all and self.args["nodeFit"]:
            target = self.fitting(pod, targets, prod)
            if target is None:
                return False
        if "example.com/evict-fails" in pod.raw.metadata.annotations:
            return False
        if target is not None:
            self.book(pod, target, prod)
        return True

    def removable(self, pod, targets, prod):
        if pod.raw.metadata.annotations.get("example.com/evictable") == "false":
            return False
        chosen = self.args.get("podSelectors")
        if chosen and not any(
            selectors.matches(one["selector"], pod.raw.metadata.labels) for one in chosen
        ):
            return False
        if not self.args["nodeFit"]:
            return True
        found = self.fitting(pod, targets, prod)
        if found is not None and self.switches.books_all:
            self.book(pod, found, prod)
        return found is not None

    def book(self, pod, target, prod):
        for used, _ in self.bounds_of_target(pod, target, prod):
            for r in self.resources:
                used[r] += self.amount(pod, r)

    def amount(self, pod, r):
        if r == "pods":
            return 0 if self.switches.books_no_pods else 1
        return pod.used.get(r, 0)

    def bounds_of_target(self, pod, target, prod):
        if self.switches.one_bound:
            return [self.bounds(target, prod)]
        both = [self.bounds(target, prod=False), self.bounds(target, prod=True)]
        return both if pod.band is qos.Band.PROD else both[:1]

    def fitting(self, pod, targets, prod):
        if pod.used is None:
            return None
        return next((one for one in targets if self.fits(pod, one, prod)), None)

    def fits(self, pod, target, prod):
        asked = {**resources.pod_requests(pod.raw), "pods": 1}
        return (
            not target.raw.spec.unschedulable
            and selectors.matches_node(pod.raw.spec, target.raw)
            and selectors.tolerated(target.raw.spec.taints, pod.raw.spec.tolerations)
            and resources.fits(asked, target.free)
            and all(
                used[r] + self.amount(pod, r) <= bound[r]
                for used, bound in self.bounds_of_target(pod, target, prod)
                for r in self.resources
            )
        )

    def order(self, node, prod):
        used, bound = self.bounds(node, prod)
        excess = {r: used[r] - bound[r] for r in self.resources if used[r] > bound[r]}
        weights = self.pool["resourceWeights"]
        whole = sum(weights.get(r, 0) for r in excess)

        def helps(pod):
            if pod.used is None:
                return (1, 0.0)
            ratios = {r: pod.used.get(r, 0) / amount for r, amount in excess.items()}
            total = added(
                weights.get(r, 0) * (ratio if ratio < 1 else 1 + 1 / ratio)
                for r, ratio in ratios.items()
            )
            return (0, -total / whole if whole else 0.0)

        def key(pod):
            kubernetes = qos.kubernetes_qos(pod.raw)
            label = str(qos.qos_of(pod.raw.metadata.labels)) or NATIVE[kubernetes]
            return (
                BANDS.index(pod.band),
                pod.raw.spec.priority or 0,
                list(NATIVE).index(kubernetes),
                CLASSES.index("LSE" if label == "SYSTEM" else label),
                helps(pod),
                -durations.timestamp(pod.raw.metadata.creation_timestamp),
            )

        return key

    def reason(self, node, prod):
        used, bound = self.bounds(node, prod)
        percents, kind = (self.percents[3], "prod") if prod else (self.percents[1], "node")
        parts = [
            f"{kind} {r} usage({self.share(used[r], node.capacity[r]):.2f}%)"
            f">threshold({percents[r]:.2f}%)"
            for r in self.resources
            if used[r] > bound[r]
        ]
        return "node is overutilized, " + ", ".join(parts)

    def share(self, used, size):
        return 100.0 * used / size if size else 0.0

    def abnormal(self, nodes, kind):
        wanted = self.pool.get("anomalyCondition")
        if wanted is None or wanted["consecutiveAbnormalities"] == 1:
            return nodes
        for node in nodes:
            self.mark(node, kind, abnormal=True)
        return [n for n in nodes if self.detectors[n.raw.metadata.name, kind].anomaly]

    def mark(self, node, kind, *, abnormal):
        wanted = self.pool.get("anomalyCondition")
        if wanted is None:
            return
        one = self.detectors.setdefault((node.raw.metadata.name, kind), Detector())
        if abnormal:
            one.abnormal, one.normal = one.abnormal + 1, 0
            if not one.anomaly and one.abnormal > wanted["consecutiveAbnormalities"]:
                one.anomaly, one.abnormal = True, 0
        else:
            one.normal, one.abnormal = one.normal + 1, 0
            if one.anomaly and one.normal > wanted["consecutiveNormalities"]:
                one.anomaly, one.normal = False, 0

    def reset(self, node, kind):
        one = self.detectors.get((node.raw.metadata.name, kind))
        if one is not None and one.anomaly:
            self.detectors[node.raw.metadata.name, kind] = Detector()


REFERENCE = Switches()


def answer(given, switches=REFERENCE):
    first = Round(given, switches, {})
    out = {
        name: sorted(node.raw.metadata.name for node in nodes)
        for name, nodes in first.classified().items()
    }
    out["thresholdsAndUsage"] = {
        n.raw.metadata.name: {
            r: [n.low[r], n.high[r], n.prod_low[r], n.prod_high[r], n.usage[r], n.prod[r]]
            for r in first.resources
        }
        for n in first.nodes
    }
    later = (Round(given, switches, first.detectors) for _ in range(given["rounds"] - 1))
    out["evictions"] = [one.run() for one in (first, *later)]
    return out
