"""Every strategy of a node: what it is called, which gate switches it on, how often it decides.

Pure: a strategy takes a look and returns a decision; what it has to remember from one look to the
next it keeps itself.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

import msgspec

from agent.decide import burst_limiter, eviction, windows
from agent.decide.strategies import (
    cpu_burst,
    cpu_evict,
    cpu_suppress,
    memory_evict,
    pressure,
    sysctls,
)
from agent.hooks import batch_resources, cold_pages
from agent.hooks.cpu import cpu_normalization, cpuset, group_identity
from agent.model import edits, state, strategy_settings
from agent.store import time_series
from api.koordinator.metadata import qos

EVERY_TICK: Final = 0.0
SELDOM: Final = 10.0
"""Seconds between two decisions that only follow pods and settings; changes count at once."""


class Look(msgspec.Struct, frozen=True):
    """What a strategy may look at."""

    picture: state.NodeState
    strategies: strategy_settings.Strategies
    samples: time_series.Histories
    now: float
    """Monotonic seconds."""
    enabled: Collection[str] = ()
    """The feature gates that are on."""
    leaving: Collection[str] = ()
    """Pods that were evicted and will have left soon, by uid."""
    refused: Collection[str] = ()
    """Pods that could not be evicted a moment ago, or that take long to stop, by uid."""
    spared: Collection[str] = ()
    """Pods for which nothing more than observing is done, by uid; groups as well."""


class Decider(Protocol):
    """One strategy."""

    def __call__(self, look: Look) -> edits.Decision:
        """Decide once."""


def _nothing(_role: edits.Role, _group: str) -> bool:
    return False


class Strategy(msgspec.Struct, frozen=True):
    """An entry of the catalogue."""

    name: str
    gates: tuple[str, ...]
    """Any of these switches it on; none means always."""
    decide: Decider
    seconds: float = EVERY_TICK
    """Time between two decisions while nothing that it looks at has changed."""
    defended: bool = False
    """Whether what it set is looked at in every tick, since it has to hold within one."""
    may_hold: Callable[[edits.Role, str], bool] = _nothing
    """Whether a property that an earlier agent set may be its own; then it stands for as long as
    this strategy does not come to a decision."""


class Suppress:
    """Suppression of cpu, under pressure even below its threshold."""

    def __init__(self, settings: strategy_settings.Pressure) -> None:
        self.last = cpu_suppress.Decision(None, "no tick has run yet")
        self._settings = settings
        self._cut = 0

    def __call__(self, look: Look) -> edits.Decision:
        """Decide once."""
        asked = pressure.judge(look.picture, self._settings, self._cut)
        self._cut = asked.cut_percent
        lowered = pressure.lowered(look.picture.thresholds, self._settings, self._cut)
        managed = "BECPUManager" in look.enabled
        picture = msgspec.structs.replace(look.picture, thresholds=lowered)
        self.last = cpu_suppress.decide(picture, managed=managed)
        reason = self.last.reason if not self._cut else f"{self.last.reason}; {asked.reason}"
        off = lowered is not None and not lowered.enable
        figures = {"cut-percent": float(self._cut)}
        if self.last.allowed_milli is not None:
            figures["allowed-milli"] = float(self.last.allowed_milli)
        return edits.Decision(
            reason,
            self.last.wanted,
            figures=figures,
            decided=off or managed or self.last.allowed_milli is not None,
        )


class Burst:
    """Bursting, with the bucket of every container."""

    def __init__(self, seen: windows.Windows) -> None:
        self._seen = seen
        self._buckets: Mapping[str, burst_limiter.Bucket] = {}

    def __call__(self, look: Look) -> edits.Decision:
        """Decide once."""
        averages = self._seen.of_bursts(look.picture, look.samples, look.now)
        decision, self._buckets = cpu_burst.decide(
            look.picture, burst_settings(look), averages, self._buckets, look.now
        )
        return decision


class Evict:
    """Evictions for lack of one resource, with a pause after each that was asked for."""

    def __init__(
        self,
        tasks: Callable[[Look], tuple[eviction.Task, ...]],
        pause_seconds: float,
        *,
        first_pause: bool,
    ) -> None:
        self._tasks = tasks
        self._pause = pause_seconds
        self._quiet_until: float | None = None
        self._first_pause = first_pause
        self._asked: tuple[edits.Eviction, ...] = ()
        self._spared: tuple[edits.Eviction, ...] = ()

    def __call__(self, look: Look) -> edits.Decision:
        """Decide once; what was asked for stays asked for as long as it is needed.

        A pod that is spared is named where its turn would have come, and the next one goes.
        """
        if self._quiet_until is None:
            self._quiet_until = look.now + (self._pause if self._first_pause else 0.0)
        tasks = self._tasks(look)
        if not tasks:
            self._asked = self._spared = ()
            on = look.strategies.evicting
            return edits.Decision(
                "nothing has to be given back" if on else "eviction is switched off"
            )
        present = {pod.pod.metadata.uid for pod in look.picture.pods}
        still = present - set(look.leaving) - set(look.refused)
        self._asked = tuple(one for one in self._asked if one.uid in still)
        self._spared = tuple(one for one in self._spared if one.uid in still)
        if look.now >= self._quiet_until and not self._asked:
            picked = eviction.pick(tasks, look.leaving, look.refused)
            self._spared = tuple(one for one in picked if one.uid in look.spared)
            if self._spared:
                picked = eviction.pick(tasks, look.leaving, {*look.refused, *look.spared})
            self._asked = picked
            if self._asked or self._spared:
                self._quiet_until = look.now + self._pause
        reason = "; ".join(f"{task.feature}: {task.reason}" for task in tasks)
        return edits.Decision(reason, evictions=(*self._asked, *self._spared))


CPU_PAUSE, MEMORY_PAUSE = 20.0, 4.0
EVICTING: Final = frozenset({"cpu-evict", "memory-evict"})
"""The strategies that do nothing but evict."""


def catalogue(seen: windows.Windows, settings: strategy_settings.Pressure) -> tuple[Strategy, ...]:
    """Return all strategies; of two that want different things, the first one gets it."""

    def cpu_tasks(look: Look) -> tuple[eviction.Task, ...]:
        if not look.strategies.evicting:
            return ()
        wanted = look.strategies.cpu_eviction
        window = seen.of_evictions(look.samples, wanted.window_seconds, look.now)
        return cpu_evict.evict(cpu_evict.tasks(look.picture, wanted, window), look.enabled)

    def memory_tasks(look: Look) -> tuple[eviction.Task, ...]:
        found: tuple[eviction.Task, ...] = ()
        if look.strategies.evicting:
            answers = memory_evict.tasks(look.picture, look.strategies.memory_eviction)
            found = memory_evict.evict(answers, look.enabled)
        own = pressure.judge(look.picture, settings, 0).task
        return found if own is None else (*found, own)

    of_cpu = Evict(cpu_tasks, CPU_PAUSE, first_pause=True)
    of_memory = Evict(memory_tasks, MEMORY_PAUSE, first_pause=False)
    return (
        Strategy(
            "cpu-suppress",
            ("BECPUSuppress",),
            Suppress(settings),
            defended=True,
            may_hold=cpu_suppress.may_hold,
        ),
        Strategy("cpuset", ("CPUSetAllocator",), _cpuset, SELDOM),
        Strategy("core-sched", ("CoreSched",), _core_sched, SELDOM),
        Strategy("group-identity", ("GroupIdentity",), _group_identity, SELDOM),
        Strategy("batch-resources", ("BatchResource",), _batch_resources, SELDOM),
        Strategy("cpu-burst", ("CPUBurst",), Burst(seen)),
        Strategy("cpu-normalization", ("CPUNormalization",), _cpu_normalization, SELDOM),
        Strategy("memory-qos", ("CgroupReconcile",), _memory_qos, SELDOM),
        Strategy("block-io", ("BlkIOReconcile",), _blkio, SELDOM),
        Strategy("cache", ("RdtResctrl", "Resctrl"), _resctrl, SELDOM),
        Strategy("system", ("SystemConfig",), _sysctls, SELDOM),
        Strategy("oom-score", ("OOMScoreAdj",), _oom_score, SELDOM),
        Strategy("network-qos", ("TCNetworkQoS",), _network_qos, SELDOM),
        Strategy("terway-qos", ("TerwayQoS",), _terway_qos, SELDOM),
        Strategy("cold-pages", ("ColdPageCollector",), _cold_pages, SELDOM),
        Strategy("cpu-evict", cpu_evict.FEATURES, of_cpu),
        Strategy("memory-evict", (*memory_evict.FEATURES, pressure.FEATURE), of_memory),
    )


def _cpuset(look: Look) -> edits.Decision:
    return cpuset.reconcile(look.picture, managed="BECPUManager" in look.enabled)


def _core_sched(look: Look) -> edits.Decision:
    from agent.hooks.cpu import core_sched  # noqa: PLC0415 - 13 KiB

    return core_sched.reconcile(look.picture, look.strategies.classes)


def _group_identity(look: Look) -> edits.Decision:
    highest = highest_identity(look)
    return group_identity.reconcile(look.picture, look.strategies.classes, highest)


def highest_identity(look: Look) -> int:
    """Return the most that a pod may ask for, beside what its class has."""
    most = look.strategies.overrides
    if not most.bounded:
        return group_identity.HIGHEST
    return group_identity.LOWEST if most.identity is None else most.identity


def _batch_resources(look: Look) -> edits.Decision:
    return batch_resources.reconcile(look.picture, batch_rule(look))


def batch_rule(look: Look) -> batch_resources.Rule:
    """Return what the node says about quotas of batch pods."""
    thresholds = look.picture.thresholds
    by_quota = (
        thresholds is not None
        and thresholds.enable
        and thresholds.cpu_suppress_policy == cpu_suppress.QUOTA_POLICY
    )
    return batch_resources.Rule(by_quota, cpu_ratio(look.picture))


def burst_settings(look: Look) -> strategy_settings.NodeBurst:
    """Return the settings of bursting, less on CPUs that are faster than the standard."""
    settings = look.strategies.burst
    if "CPUNormalization" not in look.enabled:
        return settings
    return msgspec.structs.replace(settings, ratio=cpu_ratio(look.picture))


def _cpu_normalization(look: Look) -> edits.Decision:
    return cpu_normalization.reconcile(look.picture, cpu_ratio(look.picture))


def cpu_ratio(picture: state.NodeState) -> float | None:
    """Return how fast the cpus are; what cannot be read counts as not said."""
    if picture.node is None:
        return None
    try:
        return cpu_normalization.ratio(picture.node.metadata.annotations)
    except cpu_normalization.RatioError:
        return None


def _memory_qos(look: Look) -> edits.Decision:
    from agent.decide.strategies import memory_qos  # noqa: PLC0415 - 48 KiB

    classes, most = look.strategies.classes.memory, look.strategies.overrides
    return memory_qos.decide(look.picture, classes, most)


def _blkio(look: Look) -> edits.Decision:
    from agent.hooks import blkio  # noqa: PLC0415 - 44 KiB, few nodes limit disks

    return blkio.decide(look.picture, look.strategies.classes)


def _resctrl(look: Look) -> edits.Decision:
    from agent.hooks import resctrl  # noqa: PLC0415 - 64 KiB, few processors divide their caches

    classes = cache_classes(look)
    of_pods, most = "Resctrl" in look.enabled, look.strategies.overrides
    return resctrl.decide(look.picture, classes, of_pods=of_pods, most=most)


def cache_classes(look: Look) -> Mapping[qos.QoS, strategy_settings.Cache]:
    """Return the shares of classes of the cache, none while their gate is off."""
    return look.strategies.classes.cache if "RdtResctrl" in look.enabled else {}


def _sysctls(look: Look) -> edits.Decision:
    return sysctls.decide(look.picture, look.strategies.system)


def _oom_score(look: Look) -> edits.Decision:
    from agent.hooks import oom_score  # noqa: PLC0415 - 14 KiB

    return oom_score.reconcile(look.picture, look.strategies.overrides)


def _cold_pages(look: Look) -> edits.Decision:
    return cold_pages.decide(look.picture)


def _network_qos(look: Look) -> edits.Decision:
    from agent.hooks.network import network_qos  # noqa: PLC0415 - 89 KiB

    return network_qos.decide(look.picture, look.strategies)


def _terway_qos(look: Look) -> edits.Decision:
    from agent.hooks.network import terway_qos  # noqa: PLC0415 - 37 KiB, few nodes have Terway

    return terway_qos.decide(look.picture, look.strategies)
