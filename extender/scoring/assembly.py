"""Put together what decides in filter, from the settings and the scheduler's configuration."""

import dataclasses
import functools
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from domain.scoring import releases
from extender.scoring import decider, informers, profiles, state, traits
from extender.settings import SchedulerSettings
from kube.client import client as clients
from kube.informers import informer_set
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

logger = logging.getLogger(__name__)

CHANGED: Final = "the configuration of kube-scheduler has changed since the extender started"
_LOOK_SECONDS: Final = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Scoring:
    """What decides, and what keeps it current."""

    projector: traits.Projector
    state: state.ScoringState
    decider: decider.Decider
    members: informer_set.InformerSet
    file: Path
    text: bytes
    clock: clocks.Clock

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start the watches, and to look whether the scheduler's configuration changes."""
        self.members.start(supervisor)
        supervisor.start("scheduler-config", self.run)

    async def run(self) -> None:
        """Decide nothing any more once the file is another one, for ever.

        The scheduler reads it when it starts, which may be sooner or later than we do.
        """
        while True:
            await self.clock.sleep(_LOOK_SECONDS)
            try:
                same = self.file.read_bytes() == self.text
            except OSError:
                same = False
            if not same and not self.decider.halted:
                logger.warning("nothing is decided any more reason=%s", CHANGED)
                self.decider.halted = CHANGED


def problem(chosen: SchedulerSettings) -> str:
    """Return why nothing can be decided; empty where something can, or where it is not wanted."""
    if chosen.decide == "never" or chosen.config_file is None:
        return ""
    try:
        text = chosen.config_file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return f"{chosen.config_file} cannot be read: {error}"
    return profiles.read(_scheduler(chosen, text)).unsupported()


def warning(chosen: SchedulerSettings, scoring: Scoring | None) -> Callable[[], str | None]:
    """Return what tells why nothing is decided although that is wanted."""
    told = problem(chosen)
    return lambda: told or (scoring.decider.halted if scoring is not None else "") or None


_ALL: Final = 100
"""Percent of all nodes; and up to so many nodes kube-scheduler looks at all of them."""
_MOST_PERCENT: Final = 50
_LEAST_PERCENT: Final = 5
_NODES_PER_PERCENT: Final = 125
"""By default kube-scheduler looks at half of all nodes, and at less the more nodes there are."""


def looks_at(scoring: Scoring | None, nodes: int) -> int | None:
    """Return how many of so many nodes kube-scheduler samples at least, None where all.

    It stops once it has found so many that fit. What is not known of it counts as its default.
    """
    if nodes <= _ALL:
        return None
    profiles_known = scoring.decider.profiles.values() if scoring is not None else ()
    found = [one.percentage_of_nodes_to_score for one in profiles_known] or [0]
    usual = max(_LEAST_PERCENT, _MOST_PERCENT - nodes // _NODES_PER_PERCENT)
    least = min(percent or usual for percent in found)
    return None if least >= _ALL else max(least * nodes // _ALL, _ALL)


def build(
    chosen: SchedulerSettings,
    api: clients.Client,
    clock: clocks.Clock,
    registry: metrics.Registry,
    *,
    stale_seconds: float,
) -> Scoring | None:
    """Return what decides; None where nothing ever is, so that nothing is watched for it."""
    told = problem(chosen)
    if told:
        logger.warning("filter leaves nodes to kube-scheduler reason=%s", told)
    if chosen.decide == "never" or chosen.config_file is None:
        return None
    try:
        text = chosen.config_file.read_bytes()
        found = profiles.read(_scheduler(chosen, text.decode()))
    except (OSError, ValueError):
        return None
    usable = {name: one for name, one in found.by_name.items() if not one.unsupported}
    if not usable:
        return None
    release: releases.Release = next(iter(usable.values())).release
    known = state.ScoringState(found.resources)
    members = informer_set.InformerSet(api, clock, stale_seconds=stale_seconds)
    caches = informers.connect(informers.add(members), members, known.terms, clock)
    rng = random.Random()
    counted = registry.counter(
        "koord_extender_decisions_total",
        "Filter calls with several nodes, by why the choice was left to kube-scheduler; empty: one"
        " node was answered.",
        ("left_because",),
    )
    # Looking labels up takes longer than counting, and reasons are few constants.
    labelled = functools.cache(counted.labels)
    chooser = decider.Decider(
        found.by_name,
        known,
        caches,
        monotonic=clock.monotonic,
        draw=lambda: rng.getrandbits(32),
        count=lambda reason: labelled(reason).inc(),
    )
    projector = traits.Projector(found.resources, release)
    return Scoring(projector, known, chooser, members, chosen.config_file, text, clock)


def _scheduler(chosen: SchedulerSettings, text: str) -> profiles.Scheduler:
    return profiles.Scheduler(text, chosen.version, chosen.arguments, chosen.extender_url)
