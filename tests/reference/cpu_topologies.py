"""CPU topologies that recorded cases describe by their shape."""

import functools
from collections.abc import Mapping
from typing import Any

from domain.cpus import cpu_topology, cpulists


def described(shape: Mapping[str, Any]) -> cpu_topology.CpuTopology:
    """Return the topology of a shape: sockets, NUMA nodes, cores, threads and their numbering."""
    return _built(
        shape["sockets"],
        shape["numaPerSocket"],
        shape["coresPerNuma"],
        shape["threadsPerCore"],
        shape["layout"],
        shape.get("offline", ""),
    )


@functools.cache
def _built(
    sockets: int, per_socket: int, per_node: int, threads: int, layout: str, offline: str
) -> cpu_topology.CpuTopology:
    nodes = sockets * per_socket
    cores = nodes * per_node
    missing = cpulists.parse(offline)
    cpus = []
    for core in range(cores):
        node = core % nodes if layout == "interleaved" else core // per_node
        for thread in range(threads):
            number = core * threads + thread if layout == "adjacent" else thread * cores + core
            if number not in missing:
                cpus.append(cpu_topology.Cpu(number, core, node // per_socket, node))
    return cpu_topology.build(cpus)


def mask(text: str | None) -> int:
    """Return the mask of a CPU list."""
    return cpu_topology.mask_of(cpulists.parse(text or ""))


def text(cpus: int) -> str:
    """Return the CPU list of a mask."""
    return cpulists.text(cpu_topology.cpus_of(cpus))
