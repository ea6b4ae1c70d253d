"""CPU topology of a node: which logical CPUs share a core, a NUMA node and a socket. Pure.

Sets of CPUs are bit masks: bit i stands for logical CPU i.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

MOST_CPUS: Final = 4097
"""Logical CPUs above the largest number that a CPU list may name are no part of a topology."""


class Cpu(NamedTuple):
    """One logical CPU, as an entry of the annotation `node.koordinator.sh/cpu-topology`."""

    id: int
    core: int
    socket: int
    node: int


@dataclasses.dataclass(frozen=True, slots=True)
class Core:
    """One physical core."""

    id: int
    """Unique in the node: the socket in the high bits, the number of the core in the low 16."""
    mask: int
    cpus: tuple[int, ...]
    """Its logical CPUs in ascending order."""
    node: int
    socket: int


@dataclasses.dataclass(frozen=True, slots=True)
class CpuTopology:
    """The CPUs of a node, by core, NUMA node and socket. Cores and ids are in ascending order."""

    mask: int = 0
    """All logical CPUs."""
    cores: tuple[Core, ...] = ()
    nodes: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """CPUs by NUMA node id."""
    sockets: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """CPUs by socket id."""
    node_cores: Mapping[int, tuple[Core, ...]] = dataclasses.field(default_factory=dict)
    socket_cores: Mapping[int, tuple[Core, ...]] = dataclasses.field(default_factory=dict)
    socket_of_node: Mapping[int, int] = dataclasses.field(default_factory=dict)
    core_of: Mapping[int, Core] = dataclasses.field(default_factory=dict)
    """The core of each logical CPU."""

    @property
    def valid(self) -> bool:
        """Whether CPUs can be allocated by this topology."""
        return bool(self.mask)

    @property
    def cpus_per_core(self) -> int:
        """Return logical CPUs per core, rounded down."""
        return self.mask.bit_count() // len(self.cores) if self.cores else 0

    @property
    def cpus_per_node(self) -> int:
        """Return logical CPUs per NUMA node, rounded down."""
        return self.mask.bit_count() // len(self.nodes) if self.nodes else 0

    @property
    def cpus_per_socket(self) -> int:
        """Return logical CPUs per socket, rounded down."""
        return self.mask.bit_count() // len(self.sockets) if self.sockets else 0

    def whole_cores(self, mask: int) -> int:
        """Return the CPUs of those cores that lie in a mask with all their CPUs."""
        return functools.reduce(
            lambda whole, core: whole | core.mask if core.mask & mask == core.mask else whole,
            self.cores,
            0,
        )

    def one_per_core(self, mask: int) -> int:
        """Return the lowest CPU of a mask in each core."""
        lowest = 0
        for core in self.cores:
            part = core.mask & mask
            lowest |= part & -part
        return lowest

    def touched_cores(self, mask: int) -> int:
        """Return of how many cores a mask has a CPU."""
        return sum(1 for core in self.cores if core.mask & mask)


def build(cpus: Iterable[Cpu]) -> CpuTopology:
    """Build the topology from logical CPUs; the first entry of an id counts.

    Entries with a negative number, or with an id above every CPU list, are left out. CPUs of one
    core that claim different NUMA nodes keep theirs; the core counts to that of its lowest CPU.
    """
    known: dict[int, Cpu] = {}
    for cpu in cpus:
        if min(cpu) >= 0 and cpu.id < MOST_CPUS:
            known.setdefault(cpu.id, cpu)
    by_core: dict[int, list[Cpu]] = {}
    nodes: dict[int, int] = {}
    sockets: dict[int, int] = {}
    for _, cpu in sorted(known.items()):
        by_core.setdefault(cpu.socket << 16 | cpu.core, []).append(cpu)
        nodes[cpu.node] = nodes.get(cpu.node, 0) | 1 << cpu.id
        sockets[cpu.socket] = sockets.get(cpu.socket, 0) | 1 << cpu.id
    cores = tuple(
        Core(
            id=ident,
            mask=mask_of(cpu.id for cpu in members),
            cpus=tuple(cpu.id for cpu in members),
            node=members[0].node,
            socket=members[0].socket,
        )
        for ident, members in sorted(by_core.items())
    )
    return CpuTopology(
        mask=mask_of(known),
        cores=cores,
        nodes=dict(sorted(nodes.items())),
        sockets=dict(sorted(sockets.items())),
        node_cores={n: tuple(c for c in cores if c.node == n) for n in sorted(nodes)},
        socket_cores={s: tuple(c for c in cores if c.socket == s) for s in sorted(sockets)},
        socket_of_node={cpu.node: cpu.socket for cpu in reversed(known.values())},
        core_of={number: core for core in cores for number in core.cpus},
    )


def mask_of(cpus: Iterable[int]) -> int:
    """Return the bit mask of some CPUs, without those that are no part of a topology.

    A list may name the CPU 2,147,483,647, and a mask with it takes 256 MiB.
    """
    mask = 0
    for cpu in cpus:
        if cpu < MOST_CPUS:
            mask |= 1 << cpu
    return mask


def cpus_of(mask: int) -> Iterator[int]:
    """Return the CPUs of a bit mask in ascending order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
