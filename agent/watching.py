"""What the API server says about this node: its Node, NodeSLO and NodeMetric."""

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

from agent import report, state
from api import core, resources, slo, strategies
from kube import caches, reflector
from kube import store as stores

_logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Slo:
    """The part of a NodeSLO that decisions look at."""

    generation: int
    thresholds: state.Thresholds
    host_applications: tuple[strategies.HostApplication, ...] = ()


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
    read = slo.read_node_slo({**raw, "status": {}})
    written = read.spec.resource_used_threshold_with_be
    default = state.Thresholds(enable=False)
    if written is None:
        return Slo(read.metadata.generation or 0, default, read.spec.host_applications)
    percent = written.cpu_suppress_threshold_percent
    return Slo(
        read.metadata.generation or 0,
        state.Thresholds(
            enable=bool(written.enable),
            cpu_suppress_percent=default.cpu_suppress_percent if percent is None else percent,
            cpu_suppress_min_percent=written.cpu_suppress_min_percent,
            cpu_suppress_policy=written.cpu_suppress_policy or default.cpu_suppress_policy,
        ),
        read.spec.host_applications,
    )


def read_policy(raw: Mapping[str, Any]) -> report.Policy:
    """Keep of a NodeMetric how it wants to be filled."""
    return report.policy(slo.read_node_metric({**raw, "status": {}}).spec)


def _log_change(change: stores.Change[Any]) -> None:
    _logger.info("seen key=%s now=%s", change.key, change.new)
