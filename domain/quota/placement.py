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


class Requirements(msgspec.Struct, frozen=True, gc=False):
    """Node selector, required node affinity and tolerations; hashable, equal for equal pods."""

    nodes: terms.NodeRequirements | None = None
    tolerations: tuple[core.Toleration, ...] = ()
    other: str = ""
    """A digest of its affinity and anti-affinity to pods; empty where it has none."""

    @property
    def of_nodes(self) -> OfNodes:
        """Return what decides whether a node is eligible, which pods of many workloads share."""
        return self.nodes, self.tolerations


NONE: Final = Requirements()


def requirements(spec: core.PodSpec) -> Requirements:
    """Read what a pod requires of nodes."""
    affinity = spec.affinity or {}
    nodes = terms.node_requirements(spec.node_selector, affinity.get("nodeAffinity") or {})
    others = {key: value for key, value in affinity.items() if key != "nodeAffinity" and value}
    if nodes is None and not others and not spec.tolerations:
        return NONE
    return Requirements(nodes, spec.tolerations, _digest(others) if others else "")


def eligible(
    wanted: Requirements, name: str, labels: Mapping[str, str], taints: Sequence[core.Taint]
) -> bool:
    """Tell whether labels and taints of a node let a pod run there."""
    if wanted.nodes is not None and not wanted.nodes.matches(name, labels):
        return False
    return not taints or selectors.tolerated(taints, wanted.tolerations)


def _digest(written: Mapping[str, Any]) -> str:
    text = orjson.dumps(written, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=8).hexdigest()
