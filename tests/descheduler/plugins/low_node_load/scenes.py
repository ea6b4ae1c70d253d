"""Clusters by load: nodes of 10 cores and 100 GiB, pods by the cores that they use."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from descheduler.configuration.arguments import load as arguments
from descheduler.framework import protocols
from descheduler.model import nodeinfo, picture
from descheduler.plugins.low_node_load import low_node_load
from tests.descheduler import builders
from tests.descheduler.plugins import driving

AT_ONCE = {"consecutiveAbnormalities": 1}
ARGS = {
    "lowThresholds": {"cpu": 45},
    "highThresholds": {"cpu": 70},
    "anomalyCondition": AT_ONCE,
}


def plugin(**args: Any) -> low_node_load.LowNodeLoad:
    """The plug-in with arguments as they are written; it acts at once unless told otherwise."""
    return low_node_load.LowNodeLoad(arguments.LowNodeLoadArgs.model_validate({**ARGS, **args}))


def node(name: str, **fields: Any) -> nodeinfo.Node:
    """A node of 10 cores."""
    return builders.node(name, **{"cpu": 10, "memory": "100Gi", **fields})


def cluster(
    loads: Mapping[str, Mapping[str, float]],
    *,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
    pods: Mapping[str, Mapping[str, Any]] | None = None,
    usages: Mapping[str, Mapping[str, Any]] | None = None,
    **fields: Any,
) -> picture.Picture:
    """A cluster of nodes with their pods and what these use; the rest are exceptions by name.

    Pods request 100m and 1 MiB, and use 1 MiB.
    """
    made, reports = [], []
    for name, used in loads.items():
        for pod, cores in used.items():
            more = {"cpu": "100m", "memory": "1Mi", **(pods or {}).get(pod, {})}
            made.append(builders.pod(pod, name, **more))
            del cores
        more = dict((usages or {}).get(name, {}))
        amounts = {
            pod: {"cpu": f"{round(cores * 1000)}m", "memory": "1Mi"}
            for pod, cores in used.items()
            if cores is not None
        }
        reports.append(builders.usage(name, more.pop("system", None), amounts, **more))
    return builders.picture_of(
        [node(name, **(nodes or {}).get(name, {})) for name in loads], made, reports, **fields
    )


class Rounds:
    """Several rounds of one plug-in."""

    def __init__(self, balanced: low_node_load.LowNodeLoad, interval: float = 60.0) -> None:
        self._plugin, self._interval = balanced, interval
        self._memory = protocols.NO_MEMORY

    def __call__(
        self,
        seen: picture.Picture,
        answer: driving.Answers = driving.leaves,
        limits: protocols.Limits = protocols.NO_LIMITS,
        **view: Any,
    ) -> list[protocols.Suggestion]:
        """Return what is suggested."""
        shown = dataclasses.replace(driving.view(seen, **view), limits=limits)
        asked = self._plugin.balance(shown, self._memory)
        found, said = [], None
        while True:
            try:
                one = asked.send(said)
            except StopIteration as end:
                self._memory = end.value
                driving.check(found, shown)
                return found
            found.append(one)
            said = answer(one)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the last round said."""
        return self._memory[protocols.NOTES]


def moves(found: list[protocols.Suggestion]) -> list[tuple[str, list[str]]]:
    """Return pods and the nodes that they may move to."""
    return [(one.pod.name, sorted(one.targets or ())) for one in found]
