"""What each NUMA node uses: cpu of all its cpus, memory, and how much of both belongs to no pod."""

import os
from collections.abc import Iterable, Mapping
from typing import Final

from agent.host import files
from agent.model import cgroup_layout as layouts
from agent.model import state
from agent.observe import collectors
from agent.observe.node import meminfo
from agent.store import time_series

SECONDS: Final = 5.0
KEY: Final = ("node", "numa")
_LONGEST_GAP: Final = 60.0
_STAT_BYTES: Final = 1024 * 1024


class Numa:
    """A collector: figures of NUMA nodes, under their numbers."""

    name = "numa"
    seconds = SECONDS

    def __init__(self, proc: str, sys: str) -> None:
        self._proc = proc
        self._sys = sys
        self._counters = time_series.Counters(_LONGEST_GAP)
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def collect(self, sight: collectors.Sight) -> None:
        """Look once."""
        nodes = {one.node for one in sight.processors}
        if not nodes:
            return
        busy = self._busy(sight)
        used = {node: self._used(node) for node in nodes}
        pods = self._pods(sight, nodes)
        for node in nodes:
            key = (*KEY, str(node))
            if node in busy:
                sight.add(key, "cpu", busy[node])
            if (memory := used[node]) is not None:
                sight.add(key, "memory", memory)
                if pods is not None:
                    sight.add((*key, "system"), "memory", max(0, memory - pods.get(node, 0)))
        self._system(sight, busy)

    def close(self) -> None:
        """Nothing stays open."""

    def _busy(self, sight: collectors.Sight) -> dict[int, float]:
        """Return the cores in use by NUMA node; a cpu without an earlier figure is left out."""
        where = {one.cpu: one.node for one in sight.processors}
        total: dict[int, float] = {}
        for cpu, ticks in ticks_of_cpus(files.read(f"{self._proc}/stat", _STAT_BYTES)).items():
            seconds = ticks / self._ticks_per_second
            rate = self._counters.rate(cpu, sight.at, seconds)
            if rate is not None and cpu in where:
                total[where[cpu]] = total.get(where[cpu], 0.0) + rate
        self._counters.prune(sight.at)
        return total

    def _used(self, node: int) -> int | None:
        try:
            text = files.read(f"{self._sys}/devices/system/node/node{node}/meminfo")
        except files.VanishedError:
            # A kernel without NUMA has one node.
            return meminfo.used(meminfo.figures(files.read(f"{self._proc}/meminfo")))
        return meminfo.used(meminfo.figures(text, meminfo.of_node(node)))

    def _pods(self, sight: collectors.Sight, nodes: Iterable[int]) -> Mapping[int, int] | None:
        """Return what pods hold by NUMA node, None where unknown."""
        if len(set(nodes)) == 1:
            (node,) = nodes
            return {node: sum(pod.usage.memory or 0 for pod in sight.pods)}
        total: dict[int, int] = {}
        for pod in sight.pods:
            found = self._held(sight, pod)
            if found is None:
                return None
            for node, amount in found.items():
                total[node] = total.get(node, 0) + amount
        return total

    def _held(self, sight: collectors.Sight, pod: state.PodState) -> Mapping[int, int] | None:
        if not pod.group:
            return {}
        path = sight.layout.path(layouts.File.MEMORY_NUMA_STAT, pod.group)
        try:
            return meminfo.held(files.read(path), sight.layout.version, self._page_bytes)
        except files.VanishedError:
            # Its group is gone, or the kernel does not count: nothing is reported of the system
            # then.
            return {} if pod.usage.memory is None else None

    def _system(self, sight: collectors.Sight, busy: Mapping[int, float]) -> None:
        """Divide unused cpu time by what the NUMA nodes used."""
        total = sum(busy.values())
        cpu = sight.samples.newest(("system", "cpu"), sight.at - SECONDS)
        if cpu is None:
            return
        for node, cores in busy.items():
            share = cores / total if total else 0.0
            sight.add((*KEY, str(node), "system"), "cpu", cpu * share)


def ticks_of_cpus(text: bytes) -> dict[int, int]:
    """Return the working time of every cpu since boot; waiting and stolen time is no work."""
    found = {}
    for line in text.splitlines():
        name, *words = line.split()
        if not name.startswith(b"cpu"):
            # What follows counts interrupts and grows with the machine.
            break
        number = name.removeprefix(b"cpu")
        columns = [words[column] for column in (0, 1, 2, 5, 6) if column < len(words)]
        if number.isdigit() and len(columns) == 5 and all(word.isdigit() for word in columns):
            found[int(number)] = sum(map(int, columns))
    return found
