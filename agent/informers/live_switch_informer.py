"""Follows the live switches: one ConfigMap that every node watches by its name."""

import functools
import logging
from collections.abc import Callable, Collection, Mapping

from agent.model import live_switches
from agent.store import last_enforced
from api import names
from api.kubernetes import core
from kube.informers import informer_set, reflector
from kube.informers import store as stores
from process.runtime import metrics

_logger = logging.getLogger(__name__)
_NUMBERS = {
    live_switches.Mode.OFF: 0.0,
    live_switches.Mode.OBSERVE: 1.0,
    live_switches.Mode.ENFORCE: 2.0,
}


class Switchboard:
    """What the switches say to this node at the moment.

    While the API server is away the last state stands, over a restart of the agent as well: a node
    that was switched off stays off. Where it was never read nothing may be enforced.
    """

    def __init__(
        self,
        watched: informer_set.InformerSet,
        namespace: str,
        strategies: Collection[str],
        memory: last_enforced.Remembered | None = None,
    ) -> None:
        self.changed: Callable[[], object] = lambda: None
        """Called as soon as something was switched."""
        self._live = live_switches.Live()
        self._memory, self._kept = memory, False
        self._strategies = strategies
        self._labels: Mapping[str, str] | None = None
        self._here: live_switches.Here | None = None
        self._store = watched.add(reflector.config_map(names.CONFIG_MAP_SWITCHES, namespace))
        self._store.listen(self._take)
        if memory is not None and memory.switches is not None:
            self._live = live_switches.read(memory.switches, self._live, strategies)

    @property
    def problem(self) -> str | None:
        """What of the switches makes no sense, None when all of it does."""
        return "; ".join(self._live.problems) or None

    def here(self, labels: Mapping[str, str] | None) -> live_switches.Here | None:
        """Return what holds on a node with these labels, None while unknown."""
        remembered_ = self._memory is not None and self._memory.switches is not None
        if not (self._store.synced or remembered_) or (labels is None and self._live.nodes):
            return None
        if self._store.synced and not self._kept:
            self._heard()
        if self._here is None or labels is not self._labels:
            self._labels, self._here = labels, self._live.of_node(labels or {})
        return self._here

    def show(self, figures: metrics.Registry, mode: Callable[[str], live_switches.Mode]) -> None:
        """Offer how far every strategy goes as figures."""
        gauge = figures.gauge(
            "koord_agent_strategy_mode",
            "How far a strategy goes: 0 off, 1 observes, 2 enforces.",
            ["strategy"],
        )
        for name in self._strategies:
            gauge.labels(name).set_function(functools.partial(_figure, mode, name))

    def _heard(self) -> None:
        """Take a complete list for the truth; where there is no ConfigMap, nothing is switched."""
        self._kept = True
        if not len(self._store) and self._live.accepted:
            self._live, self._here = live_switches.Live(), None
            self.changed()
        if self._memory is not None:
            self._memory.keep_switches(self._live.accepted)

    def _take(self, change: stores.Change[core.ConfigMap]) -> None:
        before = self._live
        data = change.new.data if change.new else None
        self._live, self._here = live_switches.read(data, before, self._strategies), None
        if self._memory is not None:
            self._memory.keep_switches(self._live.accepted)
        for problem in self._live.problems:
            if problem not in before.problems:
                _logger.warning("switch is unreadable and changes nothing: %s", problem)
        if self._live.accepted != before.accepted:
            _logger.info("switched now=%s", dict(self._live.accepted) or "nothing")
            self.changed()


def _figure(mode: Callable[[str], live_switches.Mode], name: str) -> float:
    return _NUMBERS[mode(name)]
