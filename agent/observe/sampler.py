"""Readings become samples: cpu in cores, memory in bytes, under the key of what they are about."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from agent.host import files
from agent.model import cgroup_layout, state
from agent.observe.cgroups import cgroup_files
from agent.observe.cold_memory import cold_memory
from agent.observe.node import procfs
from agent.store import time_series

MOST_PROBLEMS: Final = 20
Key = tuple[str, ...]


class SeriesKeys(NamedTuple):
    """The keys of the series of one pod, container, process or node."""

    cpu: Key
    memory: Key

    @classmethod
    def of(cls, *subject: str) -> Self:
        """Return the keys of what the words name."""
        return cls((*subject, "cpu"), (*subject, "memory"))

    @property
    def subject(self) -> Key:
        """What the words name."""
        return self.cpu[:-1]

    @property
    def memory_with_cache(self) -> Key:
        """Made anew each time, since few nodes ask for it."""
        return *self.subject, "memory+cache"

    @property
    def hot_memory(self) -> Key:
        """Made anew each time, since few nodes ask for it."""
        return *self.subject, "memory+hot"


NODE: Final = SeriesKeys.of("node")
SYSTEM: Final = SeriesKeys.of("system")


class Sampler:
    """Samples of the node and of groups, and what could not be read of them in this tick."""

    def __init__(
        self,
        kept: files.Kept,
        longest_gap: float,
        fresh: float,
        samples: time_series.Histories | None = None,
    ) -> None:
        self.samples = time_series.Histories() if samples is None else samples
        self.counters = time_series.Counters(longest_gap)
        self.keep_seconds = 1800.0
        """How long figures of the node are kept."""
        self.pod_keep_seconds = 300.0
        """How long figures of pods are kept."""
        self.with_cache = True
        """Whether memory with page cache is sampled as well."""
        self.with_hot = False
        """Whether memory with page cache that is in use is sampled as well."""
        self.layout: cgroup_layout.Layout | None = None
        self.problems: dict[str, str] = {}
        self.settled = False
        """Whether everything that was looked at in this tick has a figure of cpu by now."""
        self._kept = kept
        self._fresh = fresh
        self._cold = cold_memory.Reader()

    def begin(self, *, settled: bool) -> None:
        """Begin a tick."""
        self.problems, self.settled = {}, settled

    def problem(self, source: str, reason: str) -> None:
        """Name what could not be read; beyond a few they are only counted."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems[source] = reason

    def latest(self, keys: SeriesKeys, at: float) -> state.Usage:
        """Return what something uses now, nothing where the last sample is too old."""
        since = at - self._fresh
        memory = self.samples.newest(keys.memory, since)
        cpu = self.samples.newest(keys.cpu, since)
        return state.Usage(cpu, None if memory is None else int(memory))

    def node(self, proc: procfs.Proc, at: float) -> None:
        """Sample the node as a whole."""
        try:
            rate = self.counters.rate(NODE, at, proc.cpu_seconds())
            if rate is not None:
                self.samples.add(NODE.cpu, at, rate, self.keep_seconds)
            memory = proc.memory()
        except files.ReadingError as error:
            self.problem("proc", str(error))
            return
        use = cgroup_files.MemoryUse(memory.used, memory.used_with_page_cache)
        self._memory(NODE, at, use, self.keep_seconds)
        try:
            self._hot(NODE, "", at, use.with_cache, self.keep_seconds)
        except files.ReadingError as error:
            self.problem("cold pages", str(error))

    def system(self, others: Sequence[state.Usage], at: float) -> None:
        """Sample what neither a pod nor anything else accounts for."""
        rest = unaccounted(self.latest(NODE, at), others)
        for key, value in ((SYSTEM.cpu, rest.cpu), (SYSTEM.memory, rest.memory)):
            if value is not None:
                self.samples.add(key, at, value, self.keep_seconds)

    def group(
        self, keys: SeriesKeys, group: str, cgroups: cgroup_files.Cgroups, at: float
    ) -> state.Usage:
        """Sample one group and return what it uses, as `latest` does.

        One that is gone says nothing, any other failure is a problem.
        """
        cpu, memory = None, None
        try:
            # The counter belongs to the group: a restarted container begins at zero in another.
            rate = self.counters.rate(group, at, cgroups.cpu_seconds(group))
            if rate is None:
                # One more look and it has a figure; until then it would pass for system load.
                self.settled = False
            else:
                cpu = self.samples.add(keys.cpu, at, rate, self.pod_keep_seconds)
            use = cgroups.memory(group)
            memory = self._memory(keys, at, use, self.pod_keep_seconds)
            if self.with_hot:
                self._hot(keys, group, at, use.with_cache, self.pod_keep_seconds)
        except files.VanishedError:
            pass
        except files.ReadingError as error:
            self.problem(" ".join(keys.subject), str(error))
        if cpu is None or memory is None:
            return self.latest(keys, at)
        return state.Usage(cpu, int(memory))

    def prune(self, at: float) -> None:
        """Drop what is too old."""
        self.counters.prune(at)
        self.samples.prune(at)

    def _memory(
        self, keys: SeriesKeys, at: float, use: cgroup_files.MemoryUse, keep: float
    ) -> float | None:
        if self.with_cache:
            self.samples.add(keys.memory_with_cache, at, use.with_cache, keep)
        return self.samples.add(keys.memory, at, use.without_cache, keep)

    def _hot(self, keys: SeriesKeys, group: str, at: float, size: int, keep: float) -> None:
        """Leave out what was not touched for long, where that is asked for and counted."""
        if self.layout is not None and self.with_hot:
            cold = self._cold.cold(self.layout, self._kept, group, at)
            if cold is None and not group:
                self.problem("cold pages", f"they are not counted: {'; '.join(self._cold.reasons)}")
            if cold is not None:
                self.samples.add(keys.hot_memory, at, max(0, size - cold), keep)


def unaccounted(node: state.Usage, others: Sequence[state.Usage]) -> state.Usage:
    """Return what of the usage of a node belongs to no pod."""
    cpu = None if node.cpu is None else max(0.0, node.cpu - sum(o.cpu or 0.0 for o in others))
    held = sum(other.memory or 0 for other in others)
    return state.Usage(cpu, None if node.memory is None else max(0, node.memory - held))
