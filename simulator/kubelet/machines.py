"""How generated machines are built: the files below /sys and /proc that tell of it."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

_ALL_LEVELS: Final = ((0, 1, "Data"), (1, 1, "Instruction"), (2, 2, "Unified"), (3, 3, "Unified"))
_HUGE_SIZES: Final = (2048, 1048576)
PAGE_BYTES: Final = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where one cpu sits, in the numbers that its vendor uses: cores repeat in every socket."""

    core: int
    socket: int = 0
    node: int = 0
    cache: int = 0
    """Which of the machine's last-level caches it shares."""


def grid(
    sockets: int,
    nodes: int,
    cores: int,
    threads: int = 1,
    *,
    adjacent: bool = False,
    cores_per_cache: int | None = None,
) -> tuple[Place, ...]:
    """Return the places of a regular machine: NUMA nodes per socket, cores per NUMA node.

    The second threads come after all first ones, or with `adjacent` beside them.
    """
    per_cache = cores_per_cache or nodes * cores
    firsts = [
        Place(
            core=node * cores + core,
            socket=socket,
            node=socket * nodes + node,
            cache=((socket * nodes + node) * cores + core) // per_cache,
        )
        for socket in range(sockets)
        for node in range(nodes)
        for core in range(cores)
    ]
    if adjacent:
        return tuple(place for place in firsts for _ in range(threads))
    return tuple(firsts * threads)


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """Everything that its files tell."""

    places: tuple[Place, ...]
    model: str = "Simulated CPU @ 2.00GHz"
    """Empty where the kernel does not name one, as on arm64."""
    vendor: str = "GenuineIntel"
    offline: frozenset[int] = frozenset()
    caches: bool = True
    siblings: bool = True
    """Whether the kernel lists who shares a core and a socket."""
    node_mib: int = 1024
    """Memory of each NUMA node."""
    huge: Mapping[int, Mapping[int, int]] = dataclasses.field(default_factory=dict)
    """Huge pages of NUMA nodes, by their size in KiB."""
    initiators: frozenset[int] = frozenset()
    """NUMA nodes that are devices."""
    memory_only: frozenset[int] = frozenset()
    """NUMA nodes without cpus."""
    turbo: bool | None = None
    cache_mask: str = ""


def online(machine: Machine) -> list[int]:
    """Return the cpus that work."""
    return [cpu for cpu in range(len(machine.places)) if cpu not in machine.offline]


def memory_nodes(machine: Machine) -> list[int]:
    """Return the NUMA nodes that have memory of their own."""
    return sorted({place.node for place in machine.places} | machine.memory_only)


def write(sys: Path, proc: Path, machine: Machine) -> None:
    """Write the files of a machine."""
    base = sys / "devices/system"
    there = online(machine)
    _write(base / "cpu/online", cpus(there))
    _write(base / "cpu/offline", cpus(machine.offline))
    _write(base / "cpu/present", cpus(range(len(machine.places))))
    for cpu in range(len(machine.places)):
        (base / f"cpu/cpu{cpu}").mkdir(parents=True, exist_ok=True)
    for cpu in there:
        _write_cpu(base / f"cpu/cpu{cpu}", cpu, machine, there)
    _write_nodes(base / "node", machine, there)
    threads = {(place.socket, place.core) for place in machine.places}
    active = len(machine.places) > len(threads)
    _write(base / "cpu/smt/active", str(int(active)))
    if machine.turbo is not None:
        _write(base / "cpu/intel_pstate/no_turbo", str(int(not machine.turbo)))
    if machine.cache_mask:
        _write(sys / "fs/resctrl/info/L3/cbm_mask", machine.cache_mask)
    _write(proc / "cpuinfo", _info(machine, there))


def _write_cpu(folder: Path, cpu: int, machine: Machine, there: Sequence[int]) -> None:
    place = machine.places[cpu]
    topology = folder / "topology"
    _write(topology / "core_id", str(place.core))
    _write(topology / "physical_package_id", str(place.socket))
    same_socket = [c for c in there if machine.places[c].socket == place.socket]
    same_core = [c for c in same_socket if machine.places[c].core == place.core]
    if machine.siblings:
        _write(topology / "core_cpus_list", cpus(same_core))
        _write(topology / "package_cpus_list", cpus(same_socket))
    if not machine.caches:
        return
    shared = {3: [c for c in there if machine.places[c].cache == place.cache]}
    for index, level, kind in _ALL_LEVELS:
        cache = folder / f"cache/index{index}"
        _write(cache / "level", str(level))
        _write(cache / "type", kind)
        _write(cache / "shared_cpu_list", cpus(shared.get(level, same_core)))


def _write_nodes(folder: Path, machine: Machine, there: Sequence[int]) -> None:
    numbers = {*memory_nodes(machine), *machine.initiators}
    _write(folder / "online", cpus(numbers))
    if machine.initiators:
        _write(folder / "has_generic_initiator", cpus(machine.initiators))
    for number in sorted(numbers):
        own = folder / f"node{number}"
        _write(own / "cpulist", cpus(c for c in there if machine.places[c].node == number))
        write_memory(folder.parents[2], number, machine.node_mib * 1024, 0)
        for size in _HUGE_SIZES:
            pages = machine.huge.get(number, {}).get(size, 0)
            _write(own / f"hugepages/hugepages-{size}kB/nr_hugepages", str(pages))


def write_memory(sys: Path, number: int, total_kib: int, used_kib: int) -> None:
    """Write what a NUMA node says about its memory."""
    figures = {
        "MemTotal": total_kib,
        "MemFree": total_kib - used_kib,
        "MemUsed": used_kib,
        "Active(file)": 0,
        "Inactive(file)": 0,
        "SReclaimable": 0,
    }
    lines = [f"Node {number} {name + ':':<16} {value:>8} kB" for name, value in figures.items()]
    path = sys / f"devices/system/node/node{number}/meminfo"
    if path.exists():
        # As the kernel does, show no reader a part of it.
        beside = path.with_name("meminfo.new")
        _write(beside, "\n".join(lines))
        beside.replace(path)
    else:
        _write(path, "\n".join(lines))


def numa_stat(version: int, memory: int, node: int = 0) -> str:
    """Return what a group says about its memory by NUMA node, all of it on one: anonymous."""
    if version == 2:
        figures = {"anon": memory, "file": 0, "inactive_anon": 0, "active_anon": memory}
        figures["unevictable"] = 0
        return "".join(f"{name} N{node}={value}\n" for name, value in figures.items())
    pages = memory // PAGE_BYTES
    figures = {"total": pages, "file": 0, "anon": pages, "unevictable": 0}
    figures |= {f"hierarchical_{name}": value for name, value in figures.items()}
    return "".join(f"{name}={value} N{node}={value}\n" for name, value in figures.items())


def _info(machine: Machine, there: Iterable[int]) -> str:
    blocks = []
    for cpu in there:
        lines = [f"processor\t: {cpu}"]
        if machine.model:
            lines += [f"vendor_id\t: {machine.vendor}", f"model name\t: {machine.model}"]
        else:
            lines += ["BogoMIPS\t: 243.75", "CPU implementer\t: 0x41"]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def cpus(numbers: Iterable[int]) -> str:
    """Write numbers as the kernel does."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
