"""How many members of a gang fit on each node, as an upper bound that a plan then checks. Pure.

A node takes as many members of a sort as its free resources allow, where its filters let pass the
first of that sort. What several members need together of one plug-in is not looked at.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Final

import numpy as np

from domain.quota import placement as node_requirements
from extender.framework import verdicts, views
from extender.gangs.planning import in_tree, member_class
from extender.state import cluster_state, records

_SCALE: Final = 1000
Requests = Mapping[str, int]
_Nodes = node_requirements.Requirements


class Sort:
    """Members that are alike, and the nodes that take them."""

    def __init__(self, pods: list[records.PodRecord]) -> None:
        self.pods = pods
        self.requests: Requests = dict(pods[0].requirements.requests)
        self.counts: dict[str, int] = {}
        """By node: how many of them fit."""
        self.scores: dict[str, int] = {}
        """By node: how good it is; more is better."""


class Slots:
    """What the nodes of one state offer the members of one group."""

    def __init__(self, cluster: cluster_state.ClusterState, sorts: list[Sort]) -> None:
        self._cluster = cluster
        self.sorts = sorts
        """Those with the fewest places first."""

    def of_any(self) -> dict[str, int]:
        """Return by node how many members fit whichever they are."""
        if len(self.sorts) == 1:
            return dict(self.sorts[0].counts)
        largest: dict[str, int] = {}
        for sort in self.sorts:
            for name, value in sort.requests.items():
                largest[name] = max(value, largest.get(name, 0))
        common = set.intersection(*(set(sort.counts) for sort in self.sorts))
        return self.room(largest, sum(len(sort.pods) for sort in self.sorts), sorted(common))

    def room(
        self,
        requests: Requests,
        most: int,
        nodes: Sequence[str],
        used: Mapping[str, Sequence[Requests]] | None = None,
    ) -> dict[str, int]:
        """Return for how many equal requests nodes have resources beside others that use some."""
        view = self._cluster.view()
        rows = np.array([view.rows[node] for node in nodes], dtype=np.intp)
        found = np.full(rows.size, most, dtype=np.int64)
        for name, value in {**requests, in_tree.PODS: 1}.items():
            if not value:
                continue
            free = self._free(view, rows, nodes, name)
            for place, node in enumerate(nodes) if used else ():
                for one in (used or {}).get(node, ()):
                    free[place] -= 1 if name == in_tree.PODS else one.get(name, 0)
            found = np.minimum(found, np.maximum(free, 0) // value)
        counted = zip(nodes, found.tolist(), strict=True)
        return {node: count for node, count in counted if count}

    def _free(
        self, view: views.View, rows: verdicts.Rows, nodes: Sequence[str], name: str
    ) -> verdicts.Column:
        column = view.resources.get(name)
        if column is None:
            return np.array([in_tree.free(self._cluster, node, name) for node in nodes], np.int64)
        left: verdicts.Column = view.allocatable[column].take(rows) - view.requested[column].take(
            rows
        )
        return left

    def alike(self) -> dict[str, bytes]:
        """Return by node a digest of everything that numbers say of it."""
        view = self._cluster.view()
        free = view.allocatable - view.requested
        figures = np.vstack((free, *(view.figures[name] for name in sorted(view.figures))))
        return {name: figures[:, row].tobytes() for name, row in view.rows.items()}


def judged(
    context: member_class.Context,
    cluster: cluster_state.ClusterState,
    pods: Sequence[records.PodRecord],
    avoided: Mapping[str, Sequence[str]],
) -> Generator[None, None, Slots]:
    """Judge every node for every sort of members, in steps of a few milliseconds."""
    sorts: dict[tuple[records.PodRequirements, _Nodes, tuple[str, ...]], Sort] = {}
    for pod in pods:
        facts = pod.gang.placement if pod.gang is not None else node_requirements.NONE
        key = (pod.requirements, facts, tuple(avoided.get(pod.uid, ())))
        if key in sorts:
            sorts[key].pods.append(pod)
        else:
            sorts[key] = Sort([pod])
    found, view = Slots(cluster, list(sorts.values())), cluster.view()
    for (_, facts, keeps_off), sort in sorts.items():
        pod = sort.pods[0]
        required = in_tree.Requirement(cluster, pod.requirements, facts)
        judge = member_class.MemberClass(context, required, views.PodInfo.of(pod))
        yield from judge.judge(view, keeps_off)
        nodes = [view.names[row] for row in judge.rows.tolist()]
        scores = zip(nodes, judge.scores.tolist(), strict=True)
        sort.scores = {node: int(score * _SCALE) for node, score in scores}
        sort.counts = found.room(sort.requests, len(sort.pods), nodes)
        yield
    found.sorts.sort(key=lambda sort: sum(sort.counts.values()) / len(sort.pods))
    return found
