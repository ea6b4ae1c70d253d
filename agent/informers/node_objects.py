"""What the API server says about this node: its Node, NodeSLO and NodeMetric."""

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from agent.model import collect_policy, slo_settings, state
from agent.model import strategy_settings as enforcement
from agent.store import last_enforced
from api import resources
from api.koordinator.metrics import metric_collection
from api.koordinator.settings import strategies
from api.kubernetes import core
from domain.cluster_settings import node_slo
from kube.client import wire
from kube.informers import informer_set, reflector
from kube.informers import store as stores

_logger = logging.getLogger(__name__)


class Slo(msgspec.Struct, frozen=True):
    """The part of a NodeSLO that decisions look at."""

    generation: int
    thresholds: state.Thresholds
    host_applications: tuple[strategies.HostApplication, ...] = ()
    enforced: enforcement.Strategies = msgspec.field(default_factory=enforcement.Strategies)
    uid: str = ""
    """Tells one that was deleted and made anew apart, whose generations begin anew as well."""


class Stated(msgspec.Struct, frozen=True):
    """The NodeSLO as the API server has it, readable or not."""

    uid: str
    generation: int
    version: str
    conditions: Any = ()
    """What its status says, of whatever shape."""
    problem: str | None = None
    """Why it cannot be read, so that what was enforced before stands."""


class _NodeMetric(core.Wire, frozen=True, gc=False):
    """How a NodeMetric asks to be filled; what it is filled with is ours, and long."""

    metadata: core.ObjectMeta = core.ObjectMeta()
    spec: Any = None


_UNREADABLE: Final = Slo(-1, state.Thresholds(enable=False))
"""Stands for a NodeSLO that makes no sense where nothing was known before."""


class Watched:
    """The three objects that carry this node's name."""

    def __init__(
        self,
        watched: informer_set.InformerSet,
        node_name: str,
        memory: last_enforced.Remembered,
    ) -> None:
        self._name = node_name
        self.memory = memory
        self._before = _slo_before(memory)
        self._raw: Mapping[str, Any] | None = memory.slo
        """The NodeSLO that could be read last."""
        self._parsed: dict[int, Stated] = {}
        """By version. Only the store decides which versions count: stale events do not, and the
        lower versions of a restored backup do."""
        fields = f"metadata.name={node_name}"
        self._nodes = watched.add(reflector.whole(resources.NODES, core.Node, fields=fields))
        self._slos = watched.add(
            reflector.Projection(resources.NODE_SLOS, dict, self._read_slo, fields=fields)
        )
        self._metrics = watched.add(
            reflector.Projection(resources.NODE_METRICS, _NodeMetric, _read_policy, fields=fields)
        )
        self._nodes.listen(lambda change: memory.keep_node(change.new))
        self._slos.listen(self._keep_slo)
        self._slos.listen(_log_change)
        self._metrics.listen(_log_change)

    @property
    def node(self) -> core.Node | None:
        """The Node, None while it is unknown."""
        found = self._nodes.get(self._name)
        if found is None and not self._nodes.synced:
            return self.memory.node
        return found

    @property
    def stated(self) -> Stated | None:
        """The present NodeSLO, None where there is none or nothing was heard yet."""
        if self._name not in self._slos:
            return None
        return self._parsed.get(self._slos.version_of(self._name))

    @property
    def problem(self) -> str | None:
        """Why the present NodeSLO cannot be read, so that what it said before stands."""
        return None if (stated := self.stated) is None else stated.problem

    @property
    def slo(self) -> Slo | None:
        """What is to be enforced, None for nothing; until that is heard, what was last known."""
        found = self._slos.get(self._name)
        if found is not None:
            return None if found is _UNREADABLE else found
        if not self._slos.synced:
            return self._before
        if self._before is not None:
            # It was deleted while no agent was here.
            self._before = None
            self.memory.keep_slo(None)
        return None

    @property
    def heard(self) -> bool:
        """Whether the API server has said what is to be enforced, nothing included."""
        return self._slos.synced and self._slos.get(self._name) is not _UNREADABLE

    @property
    def policy(self) -> collect_policy.Policy | None:
        """How is to be measured and reported, None without a NodeMetric."""
        return self._metrics.get(self._name)

    def _read_slo(self, raw: Mapping[str, Any]) -> Slo:
        """Read a NodeSLO; where it makes no sense, what it said before stands."""
        try:
            found = read_slo(raw)
        except stores.UNREADABLE as error:
            problem = f"{error}; what was enforced before stands"
            _logger.warning("%s", problem)
            self._keep_stated(_stated(raw, problem))
            return self.slo or _UNREADABLE
        self._raw = raw
        self._keep_stated(_stated(raw))
        return found

    def _keep_stated(self, stated: Stated) -> None:
        present = self._slos.version_of(self._name)
        kept = {present: self._parsed[present]} if present in self._parsed else {}
        self._parsed = {**kept, wire.number(stated.version): stated}

    def _keep_slo(self, change: stores.Change[Slo]) -> None:
        if change.new is _UNREADABLE:
            return
        self.memory.keep_slo(None if change.new is None else self._raw)
        self._before = change.new


def _stated(raw: Mapping[str, Any], problem: str | None = None) -> Stated:
    metadata, status = raw.get("metadata") or {}, raw.get("status")
    return Stated(
        metadata.get("uid") or "",
        metadata.get("generation") or 0,
        metadata.get("resourceVersion") or "",
        status.get("conditions") if isinstance(status, Mapping) else (),
        problem,
    )


def _slo_before(memory: last_enforced.Remembered) -> Slo | None:
    """Return what an earlier agent enforced; a note that makes no sense is put aside."""
    if memory.slo is None:
        return None
    try:
        return read_slo(memory.slo)
    except stores.UNREADABLE as error:
        memory.keep_slo(None)
        _logger.warning("the last known NodeSLO makes no sense and is forgotten reason=%s", error)
        return None


def read_slo(raw: Mapping[str, Any]) -> Slo:
    """Keep of a NodeSLO what decisions look at; its status is ours and says nothing new."""
    complete = node_slo.read({**raw, "status": {}})
    metadata = raw.get("metadata") or {}
    return Slo(
        metadata.get("generation") or 0,
        slo_settings.thresholds(complete),
        complete.host_applications,
        slo_settings.read(complete),
        metadata.get("uid") or "",
    )


def _read_policy(found: _NodeMetric) -> collect_policy.Policy:
    """Keep of a NodeMetric how it wants to be filled."""
    raw = {"metadata": {"name": found.metadata.name}, "spec": found.spec}
    return collect_policy.of(metric_collection.read(raw))


def _log_change(change: stores.Change[Any]) -> None:
    _logger.info("seen key=%s now=%s", change.key, change.new)
