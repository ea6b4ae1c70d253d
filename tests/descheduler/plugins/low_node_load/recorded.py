"""Recorded cases of the reference as the plug-in is asked about them."""

import msgspec
import numpy as np

from api.kubernetes import core
from api.wire import quantity
from descheduler.configuration.arguments import parts
from descheduler.framework import protocols
from descheduler.framework.nodes import node_fit, node_load
from descheduler.model import node_projection, nodeinfo, pod_object, pod_projection
from descheduler.plugins.low_node_load import classification, low_node_load, pools, thresholds
from tests.descheduler import builders

NOW = 1_900_000_000.0
"""Later than all pods have started, and than all reports."""
_EVICTABLE, _FAILS = "example.com/evictable", "example.com/evict-fails"


class _Filters:
    """The filter of the recorded rounds."""

    def __init__(self, stay):
        self._stay = stay

    def refusal(self, pod):
        return "not evictable" if pod.key in self._stay else ""

    def late_refusal(self, pod):
        raise AssertionError("LowNodeLoad does not ask again")


def _pool(written):
    selector = written.get("nodeSelector")
    condition = written.get("anomalyCondition")
    return pools.Pool(
        name=written["name"],
        low=written.get("lowThresholds") or {},
        high=written.get("highThresholds") or {},
        prod_low=written.get("prodLowThresholds") or {},
        prod_high=written.get("prodHighThresholds") or {},
        weights=written["resourceWeights"],
        deviation=written["useDeviationThresholds"],
        condition=condition
        and pools.Condition(
            condition["timeoutSeconds"],
            condition["consecutiveAbnormalities"],
            condition["consecutiveNormalities"],
        ),
        selector=parts.LabelSelector.model_validate(selector) if selector else None,
    )


def _settings(args):
    chosen = parts.Selection.model_validate(
        {"podSelectors": args["podSelectors"]} if "podSelectors" in args else {}
    )
    return pools.Settings(
        pools=tuple(_pool(one) for one in args["nodePools"]),
        number_of_nodes=args["numberOfNodes"],
        expiration_seconds=args["nodeMetricExpirationSeconds"],
        node_fit=args["nodeFit"],
        covers=chosen.covers,
    )


def _usage(written):
    return nodeinfo.Usage(
        node=written["node"],
        updated_at=NOW - written["ageSeconds"],
        system=quantity.amounts(written["systemUsage"]),
        by_pod={
            f"{one['namespace']}/{one['name']}": quantity.amounts(one["podUsage"]["resources"])
            for one in written["podsMetric"]
        },
    )


class Case:
    """One recorded case."""

    def __init__(self, given):
        projector = pod_projection.Projector()
        pods = [msgspec.convert(one, pod_object.Pod) for one in given["pods"]]
        self.rounds = given["rounds"]
        self.settings = _settings(given["args"])
        self.notes = {
            f"{one.metadata.namespace}/{one.metadata.name}": one.metadata.annotations
            for one in pods
        }
        named = [
            msgspec.structs.replace(projector.pod(one), uid=f"{number}")
            for number, one in enumerate(pods)
        ]
        nodes = [node_projection.node(msgspec.convert(one, core.Node)) for one in given["nodes"]]
        usages = [_usage(one) for one in given["nodeMetrics"]]
        self.seen = builders.picture_of(nodes, named, usages, now=NOW)
        stay = {key for key, notes in self.notes.items() if notes.get(_EVICTABLE) == "false"}
        self.view = protocols.View(
            self.seen, nodes, _Filters(stay), node_fit.Table(self.seen), interval_seconds=60.0
        )

    def answer(self):
        """What the reference answers, as the plug-in does."""
        memory, evictions = protocols.NO_MEMORY, []
        for _ in range(self.rounds):
            evicted, memory = self._round(memory)
            evictions.append(evicted)
        return {**self._measured(), "evictions": evictions}

    def _round(self, memory):
        asked = low_node_load.balance(self.settings, self.view, memory)
        evicted, answer = [], None
        while True:
            try:
                one = asked.send(answer)
            except StopIteration as end:
                return evicted, end.value
            answer = _FAILS not in self.notes[one.pod.key]
            if answer:
                evicted.append({"node": one.pod.node, "pod": one.pod.key, "reason": one.reason})

    def _measured(self):
        (pool,) = self.settings.pools
        levels = pools.completed(pool)
        nodes = [node for node in self.view.nodes if pool.selects(node)]
        load = node_load.read(self.seen, nodes, levels.resources, self.settings.expiration_seconds)
        rows = np.arange(len(load.nodes))
        bounds = thresholds.bounds(levels, load, rows, deviation=pool.deviation)
        found = classification.classify(load, rows, load.columns(levels.resources), bounds)
        columns = (bounds.node.low, bounds.node.high, bounds.prod.low, bounds.prod.high)
        return {
            **{
                name: sorted(load.nodes[row].name for row in rows)
                for name, rows in (
                    ("low", found.low),
                    ("high", found.high),
                    ("prodLow", found.prod_low),
                    ("prodHigh", found.prod_high),
                    ("bothLow", found.both_low),
                )
            },
            "thresholdsAndUsage": {
                node.name: {
                    name: [int(part[row, place]) for part in (*columns, load.usage, load.prod)]
                    for place, name in enumerate(levels.resources)
                }
                for row, node in enumerate(load.nodes)
            },
        }
