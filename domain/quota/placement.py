"""What a pod requires of nodes, as far as labels and taints say whether it may run there. Pure.

Volumes, ports, topology spread and affinity to pods are not looked at: a node that is eligible here
may still be refused by the scheduler.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from api.kubernetes import core, selectors
from domain.scoring import terms

OfNodes = tuple[terms.NodeRequirements | None, tuple[core.Toleration, ...]]


_MOST: Final = 256
"""Tolerations of a pod, and terms and requirements of its node affinity."""
_MOST_VALUES: Final = 8192
"""Values of all these requirements."""


class TooLongError(ValueError):
    """A pod lists more than can be compared with every node; the API server lets it pass."""


class Requirements(msgspec.Struct, frozen=True, gc=False):
    """Node selector, required node affinity and tolerations; hashable, equal for equal pods."""

    nodes: terms.NodeRequirements | None = None
    tolerations: tuple[core.Toleration, ...] = ()
    other: str = ""
    """A digest of its affinity and anti-affinity to pods, or of what is too long to be compared
    with nodes; empty where it has neither."""

    @property
    def of_nodes(self) -> OfNodes:
        """Return what decides whether a node is eligible, which pods of many workloads share."""
        return self.nodes, self.tolerations


NONE: Final = Requirements()


def requirements(spec: core.PodSpec) -> Requirements:
    """Read what a pod requires of nodes; a TooLongError where that is too much to compare."""
    affinity = spec.affinity or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    if len(spec.tolerations) > _MOST or (of_nodes and terms.exceeds(of_nodes, _MOST, _MOST_VALUES)):
        raise TooLongError("tolerations and node affinity are too long to be compared with nodes")
    nodes = terms.node_requirements(spec.node_selector, of_nodes)
    others = {key: value for key, value in affinity.items() if key != "nodeAffinity" and value}
    if nodes is None and not others and not spec.tolerations:
        return NONE
    return Requirements(nodes, spec.tolerations, _digest(others) if others else "")


def unknown(spec: core.PodSpec) -> Requirements:
    """Return what stands for requirements that are too long: equal for equal pods alone."""
    return Requirements(other=_digest([spec.node_selector, spec.affinity, spec.tolerations]))


def eligible(
    wanted: Requirements, name: str, labels: Mapping[str, str], taints: Sequence[core.Taint]
) -> bool:
    """Tell whether labels and taints of a node let a pod run there."""
    if wanted.nodes is not None and not wanted.nodes.matches(name, labels):
        return False
    return not taints or selectors.tolerated(taints, wanted.tolerations)


def _digest(written: Any) -> str:
    text = orjson.dumps(written, option=orjson.OPT_SORT_KEYS, default=msgspec.to_builtins)
    return hashlib.blake2b(text, digest_size=8).hexdigest()
