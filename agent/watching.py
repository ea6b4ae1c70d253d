"""What the API server says about this node: its Node, NodeSLO and NodeMetric."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from agent import enforced, report, state
from agent import strategies as enforcement
from api import collecting, core, resources, strategies
from domain import node_slo
from kube import caches, reflector
from kube import store as stores

_logger = logging.getLogger(__name__)


class Slo(msgspec.Struct, frozen=True):
    """The part of a NodeSLO that decisions look at."""

    generation: int
    thresholds: state.Thresholds
    host_applications: tuple[strategies.HostApplication, ...] = ()
    enforced: enforcement.Strategies = msgspec.field(default_factory=enforcement.Strategies)


class Watched:
    """The three objects that carry this node's name."""

    def __init__(self, watched: caches.Caches, node_name: str) -> None:
        self._name = node_name
        fields = f"metadata.name={node_name}"
        self._nodes = watched.add(reflector.whole(resources.NODES, core.Node, fields=fields))
        self._slos = watched.add(
            reflector.Projection(resources.NODE_SLOS, dict, read_slo, fields=fields)
        )
        self._metrics = watched.add(
            reflector.Projection(resources.NODE_METRICS, dict, read_policy, fields=fields)
        )
        self._slos.listen(_log_change)
        self._metrics.listen(_log_change)

    @property
    def node(self) -> core.Node | None:
        """The Node, None while it is unknown."""
        return self._nodes.get(self._name)

    @property
    def slo(self) -> Slo | None:
        """What is to be enforced, None while nobody says."""
        return self._slos.get(self._name)

    @property
    def policy(self) -> report.Policy | None:
        """How is to be measured and reported, None without a NodeMetric."""
        return self._metrics.get(self._name)


def read_slo(raw: Mapping[str, Any]) -> Slo:
    """Keep of a NodeSLO what decisions look at; its status is ours and says nothing new."""
    complete = node_slo.read({**raw, "status": {}})
    return Slo(
        (raw.get("metadata") or {}).get("generation") or 0,
        enforced.thresholds(complete),
        complete.host_applications,
        enforced.read(complete),
    )


def read_policy(raw: Mapping[str, Any]) -> report.Policy:
    """Keep of a NodeMetric how it wants to be filled."""
    return report.policy(collecting.read(raw))


def _log_change(change: stores.Change[Any]) -> None:
    _logger.info("seen key=%s now=%s", change.key, change.new)
