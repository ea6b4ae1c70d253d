"""CPU accumulator: which logical CPUs a pod with its own cpuset gets. Pure.

CPUs are taken from as few NUMA nodes and sockets as possible: first from one NUMA node, then from
one socket, then from the whole node. Sets of CPUs are bit masks.
"""

import dataclasses
import enum
import itertools
from collections.abc import Iterable, Iterator, Sequence

from domain.cpus import cpu_topology, cpu_usage

Core = cpu_topology.Core
ExclusivePolicy = cpu_usage.ExclusivePolicy


class BindPolicy(enum.StrEnum):
    """How the CPUs of a pod relate to physical cores."""

    NONE = ""
    FULL_PCPUS = "FullPCPUs"
    """Whole physical cores."""
    SPREAD_BY_PCPUS = "SpreadByPCPUs"
    """One logical CPU of each core first."""
    CONSTRAINED_BURST = "ConstrainedBurst"
    """Known and never bound: the pod runs in the shared pool."""


class NumaStrategy(enum.StrEnum):
    """Which NUMA node or socket is taken first."""

    MOST_ALLOCATED = "MostAllocated"
    """The one with the fewest free CPUs."""
    LEAST_ALLOCATED = "LeastAllocated"
    """The one with the most free CPUs."""


_BIND_POLICIES = {policy.value: policy for policy in BindPolicy}


def bind_policy(name: str) -> BindPolicy:
    """Return the bind policy of a name; an unknown one binds no CPUs."""
    return _BIND_POLICIES.get(name, BindPolicy.NONE)


def numa_strategy(name: str) -> NumaStrategy:
    """Return the strategy of a name; all but MostAllocated mean LeastAllocated."""
    most = NumaStrategy.MOST_ALLOCATED
    return most if name == most else NumaStrategy.LEAST_ALLOCATED


@dataclasses.dataclass(frozen=True, slots=True)
class CpuRequest:
    """CPUs that a pod wants for itself."""

    count: int
    bind: BindPolicy = BindPolicy.NONE
    exclusive: ExclusivePolicy = ExclusivePolicy.NONE
    strategy: NumaStrategy = NumaStrategy.LEAST_ALLOCATED


@dataclasses.dataclass(frozen=True, slots=True)
class Cpus:
    """CPUs of a node and what is known of them."""

    topology: cpu_topology.CpuTopology
    usage: cpu_usage.CpuUsage
    free: int
    """CPUs that may be taken."""
    shared: bool = False
    """Whether several pods may hold one CPU: those with few holders are taken first."""


def take(cpus: Cpus, request: CpuRequest, preferred: int = 0) -> int | None:
    """Return the CPUs that a pod gets, None where there are too few.

    Preferred CPUs, such as those of a reservation, are taken before all others.
    """
    free = cpus.free
    if request.count > free.bit_count():
        return None
    first = preferred & free
    taken = 0
    if first:
        part = dataclasses.replace(request, count=min(request.count, first.bit_count()))
        taken = _Accumulator(cpus, first, part).run()
        request = dataclasses.replace(request, count=request.count - part.count)
        free &= ~first
    return taken | _Accumulator(cpus, free, request).run()


class _Accumulator:
    """The state of one selection: what is still free, what was taken, how many are missing."""

    __slots__ = ("_cpus", "_free", "_most", "_need", "_request", "_taken", "_topology", "_usage")

    def __init__(self, cpus: Cpus, free: int, request: CpuRequest) -> None:
        self._cpus, self._topology, self._usage = cpus, cpus.topology, cpus.usage
        self._request, self._free, self._need = request, free, request.count
        self._taken = 0
        self._most = request.strategy is NumaStrategy.MOST_ALLOCATED

    def run(self) -> int:
        """Return the CPUs taken; there are enough free ones."""
        topology = self._topology
        full = self._request.bind is BindPolicy.FULL_PCPUS
        if self._need < 1:
            return 0
        if full or topology.cpus_per_core == 1:
            self._take_whole_cores()
        if self._need > 0 and not full:
            self._take_spread()
        if self._need > 0:
            self._take_anywhere()
        return self._taken

    # -- whole cores -------------------------------------------------------------------------

    def _take_whole_cores(self) -> None:
        topology, need = self._topology, self._need
        if need <= topology.cpus_per_node and self._one_node():
            return
        free = self._free
        sockets = {s: self._full_cores(cores, free) for s, cores in topology.socket_cores.items()}
        if need <= topology.cpus_per_socket:
            order = self._preferred({s: _size(found) for s, found in sockets.items()})
            if self._first_enough(order, sockets):
                return
        self._several_sockets(sockets)

    def _one_node(self) -> bool:
        """Take all CPUs from whole cores of one NUMA node."""
        topology = self._topology
        for usable in self._passes(node_level=True):
            found = {n: self._full_cores(cores, usable) for n, cores in topology.node_cores.items()}
            order = self._node_order({n: _size(cores) for n, cores in found.items()}, usable)
            if self._first_enough(order, found):
                return True
        return False

    def _several_sockets(self, sockets: dict[int, list[int]]) -> None:
        """Take whole sockets of free cores, then cores of the fullest sockets that are left."""
        aside: list[list[int]] = []
        for _, cores in sorted(sockets.items(), key=lambda item: (-_size(item[1]), item[0])):
            if _size(cores) <= self._need:
                self._take_mask(sum(cores))
            else:
                aside.append(cores)
        per_core = self._topology.cpus_per_core
        # The sort is stable: of equal ones, that with the lower id comes first.
        for core in itertools.chain.from_iterable(sorted(aside, key=_size)):
            if self._need < per_core:
                return
            self._take_list(cpu_topology.cpus_of(core))

    def _full_cores(self, cores: Sequence[Core], usable: int) -> list[int]:
        """Return the free CPUs of cores that have as many as a whole core, the emptiest first."""
        per_core = self._topology.cpus_per_core
        found = [part for core in cores if (part := core.mask & usable).bit_count() >= per_core]
        if self._cpus.shared:
            found.sort(key=self._usage.count)
        # Only where cores differ in size does this change anything; equal ones keep their order.
        found.sort(key=int.bit_count, reverse=True)
        return found

    def _first_enough(self, order: Iterable[int], found: dict[int, list[int]]) -> bool:
        for place in order:
            if _size(found[place]) >= self._need:
                self._take_list(cpu for core in found[place] for cpu in cpu_topology.cpus_of(core))
                return True
        return False

    # -- one CPU of each core first ----------------------------------------------------------

    def _take_spread(self) -> None:
        topology = self._topology
        if self._need <= topology.cpus_per_node:
            for usable, exclusive in self._passes_marked(node_level=True):
                free = {n: mask & usable for n, mask in topology.nodes.items()}
                order = self._node_order({n: m.bit_count() for n, m in free.items()}, usable)
                if self._spread_from(order, free, exclusive=exclusive):
                    return
        if self._need <= topology.cpus_per_socket:
            for usable, exclusive in self._passes_marked(node_level=False):
                free = {s: mask & usable for s, mask in topology.sockets.items()}
                count = topology.touched_cores if exclusive else int.bit_count
                order = self._preferred({s: count(mask) for s, mask in free.items()})
                if self._spread_from(order, free, exclusive=exclusive):
                    return

    def _spread_from(self, order: Iterable[int], free: dict[int, int], *, exclusive: bool) -> bool:
        for place in order:
            if free[place].bit_count() < self._need:
                continue
            found = self._ascending(free[place])
            rounds = self._rounds(found)
            if exclusive:
                found, rounds = rounds[0], rounds[:1]
            if len(found) >= self._need:
                few = len(found) <= self._topology.cpus_per_core
                self._take_list(found if few else itertools.chain.from_iterable(rounds))
                return True
        return False

    # -- wherever there are some -------------------------------------------------------------

    def _take_anywhere(self) -> None:
        for usable in self._passes(node_level=True, core_level=True):
            ordered = [
                cpu for core in self._core_order(usable) for cpu in self._ascending(core & usable)
            ]
            self._take_list(self._spread(ordered))
            if not self._need:
                return

    def _core_order(self, usable: int) -> list[int]:
        """Return the masks of cores: beside what was taken, then where the strategy wants it."""
        topology = self._topology
        socket_keys = {
            s: (-(mask & self._taken).bit_count(), self._key((mask & usable).bit_count()))
            for s, mask in topology.sockets.items()
        }
        node_keys = {
            n: self._key((mask & usable).bit_count()) for n, mask in topology.nodes.items()
        }
        ranked = [
            (
                *socket_keys[core.socket],
                node_keys[core.node],
                free.bit_count(),
                core.socket,
                self._usage.count(free) if self._cpus.shared else 0,
                core.id,
                core.mask,
            )
            for core in topology.cores
            if (free := core.mask & usable)
        ]
        ranked.sort()
        return [key[-1] for key in ranked]

    # -- exclusive policies ------------------------------------------------------------------

    def _passes(self, *, node_level: bool, core_level: bool = False) -> Iterator[int]:
        """Return the free CPUs without those that a policy keeps away from, then all of them."""
        for usable, _ in self._passes_marked(node_level=node_level, core_level=core_level):
            yield usable

    def _passes_marked(
        self, *, node_level: bool, core_level: bool = True
    ) -> Iterator[tuple[int, bool]]:
        yield self._free & ~self._marked(node_level=node_level, core_level=core_level), True
        yield self._free, False

    def _marked(self, *, node_level: bool, core_level: bool) -> int:
        """Return the CPUs of cores or NUMA nodes that are taken with the policy of the pod."""
        topology, policy = self._topology, self._request.exclusive
        if policy is ExclusivePolicy.PCPU_LEVEL and core_level:
            held = self._usage.core_exclusive | self._taken
            return _mask(core for core in topology.cores if core.mask & held)
        if policy is ExclusivePolicy.NUMA_NODE_LEVEL and node_level:
            held = self._usage.node_exclusive | self._taken
            return sum(mask for mask in topology.nodes.values() if mask & held)
        return 0

    # -- order -------------------------------------------------------------------------------

    def _key(self, free: int) -> int:
        return free if self._most else -free

    def _preferred(self, counts: dict[int, int]) -> list[int]:
        """Order NUMA nodes or sockets by free CPUs as the strategy wants it, then by id."""
        return sorted(counts, key=lambda place: (self._key(counts[place]), place))

    def _node_order(self, counts: dict[int, int], usable: int) -> list[int]:
        """Order NUMA nodes by their free CPUs, then by those of their sockets, then by id."""
        topology = self._topology
        sockets = {s: (mask & usable).bit_count() for s, mask in topology.sockets.items()}

        def key(node: int) -> tuple[int, int, int]:
            socket = topology.socket_of_node[node]
            return self._key(counts[node]), self._key(sockets[socket]), node

        return sorted(counts, key=key)

    def _ascending(self, mask: int) -> list[int]:
        """Return CPUs in ascending order; where they are shared, by reference count first."""
        found = list(cpu_topology.cpus_of(mask))
        if self._cpus.shared:
            found.sort(key=lambda cpu: (self._usage.count(1 << cpu), cpu))
        return found

    def _spread(self, cpus: list[int]) -> list[int]:
        """Return the first CPU of each core in order of first appearance, then the second ones."""
        if len(cpus) <= self._topology.cpus_per_core:
            return cpus
        return [cpu for part in self._rounds(cpus) for cpu in part]

    def _rounds(self, cpus: Iterable[int]) -> list[list[int]]:
        """Return the first CPU of every core in order of first appearance, then the second CPUs."""
        core_of = self._topology.core_of
        rounds: list[list[int]] = []
        seen: dict[int, int] = {}
        for cpu in cpus:
            core = core_of[cpu].id
            turn = seen.get(core, 0)
            seen[core] = turn + 1
            if turn == len(rounds):
                rounds.append([])
            rounds[turn].append(cpu)
        return rounds

    # -- taking ------------------------------------------------------------------------------

    def _take_list(self, cpus: Iterable[int]) -> None:
        """Take CPUs one after the other until there are enough."""
        for cpu in cpus:
            if not self._need:
                return
            self._take_mask(1 << cpu)

    def _take_mask(self, mask: int) -> None:
        self._taken |= mask
        self._free &= ~mask
        self._need -= mask.bit_count()


def _size(cores: Iterable[int]) -> int:
    """Return how many CPUs some cores have together."""
    return sum(map(int.bit_count, cores))


def _mask(cores: Iterable[Core]) -> int:
    mask = 0
    for core in cores:
        mask |= core.mask
    return mask
