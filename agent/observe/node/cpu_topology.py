"""How this machine is built, from the kernel's own files: cpus, NUMA nodes, caches and models.

Numbers of sockets, cores and caches are counted through the whole machine in the order of the cpus:
those of the hardware repeat from socket to socket, and some platforms give none.
"""

import contextlib
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from agent.host import files
from agent.model import state
from agent.observe.node import meminfo
from api import names
from domain.cpus import cpulists

SECONDS: Final = 60.0
PROCESSORS_SECONDS: Final = 600.0
AGAIN_SECONDS: Final = 5.0
"""After how long a part that could not be read is read again."""
HUGE_PAGES: Final[Mapping[int, str]] = {
    2048: names.HUGE_PAGES_2M,
    1048576: names.HUGE_PAGES_1G,
}
"""Sizes in KiB that are reported, by the name of the resource."""
_MOST_CACHES: Final = 16
_INFO_BYTES: Final = 16 * 1024


class Machine:
    """Reads the machine once a minute, and at once when cpus have come or gone.

    The topology changes only with the cpus, and each cpu has a dozen files about it. Between such
    changes it is read rarely. A part that cannot be read is tried again soon, because reports
    would lack it for a minute.
    """

    def __init__(self, sys: str, proc: str, *, huge_pages: bool = False) -> None:
        self.found = state.Machine()
        self.problem = ""
        """Why a part of it is not known."""
        self._sys = sys
        self._proc = proc
        self._huge_pages = huge_pages
        self._due: float | None = None
        self._processors_due = -math.inf
        self._online = b""

    def look(self, at: float, kept: files.Kept) -> state.Machine:
        """Return the machine as it stands; what cannot be read is empty and named."""
        try:
            online = kept.read(f"{self._sys}/devices/system/cpu/online", 4096)
            if self._due is not None and at < self._due and online == self._online:
                return self.found
            self.problem = ""
            cpus = self.found.processors
            if not cpus or online != self._online or at >= self._processors_due:
                cpus, self._processors_due = processors(self._sys), at + PROCESSORS_SECONDS
            found = self._read(kept, cpus)
        except files.ReadingError as error:
            self.problem = str(error)
        else:
            self._due = at + (AGAIN_SECONDS if self.problem else SECONDS)
            self._online = online
            # The same object while nothing changes, so that what follows from it can be kept.
            self.found = self.found if found == self.found else found
        return self.found

    def _read(self, kept: files.Kept, cpus: tuple[state.Processor, ...]) -> state.Machine:
        nodes: tuple[state.NumaNode, ...] = ()
        try:
            nodes = numa_nodes(self._sys, self._proc, huge_pages=self._huge_pages)
        except files.ReadingError as error:
            self.problem = str(error)
        return state.Machine(cpus, nodes, info(self._sys, self._proc, kept, cpus))


class _Counted:
    """Numbers for things in the order in which they are seen first."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __call__(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def processors(sys: str) -> tuple[state.Processor, ...]:
    """Return every cpu that is online; what the kernel does not tell of them tells none apart."""
    base = f"{sys}/devices/system"
    nodes = {cpu: node for node, cpus in _nodes(base).items() for cpu in cpus}
    sockets, cores = _Counted(), _Counted()
    caches: dict[int, _Counted] = defaultdict(_Counted)
    found = []
    for cpu in sorted(_cpus(f"{base}/cpu/online")):
        folder = f"{base}/cpu/cpu{cpu}"
        socket = _package(folder)
        found.append(
            state.Processor(
                cpu,
                cores(_core(folder, socket, cpu)),
                sockets(socket),
                nodes.get(cpu, 0),
                tuple(caches[level](key) for level, key in sorted(_caches(folder).items())),
            )
        )
    return tuple(found)


def numa_nodes(sys: str, proc: str, *, huge_pages: bool) -> tuple[state.NumaNode, ...]:
    """Return the NUMA nodes with their memory; a kernel without NUMA has one."""
    base = f"{sys}/devices/system"
    numbers = sorted(_nodes(base))
    if not numbers:
        return (state.NumaNode(0, _figures(f"{proc}/meminfo").get("MemTotal", 0)),)
    found = []
    for number in numbers:
        folder = f"{base}/node/node{number}"
        total = _figures(f"{folder}/meminfo", meminfo.of_node(number)).get("MemTotal")
        if total is None:
            raise files.ReadingError(f"{folder}/meminfo has no number for MemTotal")
        huge = _huge(folder) if huge_pages else {}
        found.append(state.NumaNode(number, total, huge))
    return tuple(found)


def info(
    sys: str, proc: str, kept: files.Kept, cpus: Sequence[state.Processor]
) -> state.ProcessorInfo:
    """Return what the processors are; what the kernel does not tell stays open."""
    told: dict[str, str] = {}
    with contextlib.suppress(files.ReadingError):
        text = kept.read(f"{proc}/cpuinfo", _INFO_BYTES, head=True)
        for line in text.decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            told.setdefault(name.strip().lower(), value.strip())
    threads = _text(f"{sys}/devices/system/cpu/smt/active")
    several = len({cpu.core for cpu in cpus}) < len(cpus)
    return state.ProcessorInfo(
        model=told.get("model name") or "unknown",
        vendor=told.get("vendor_id", ""),
        hyper_threads=several if threads is None else threads == "1",
        turbo=_text(f"{sys}/devices/system/cpu/intel_pstate/no_turbo") == "0",
        cache_mask=_text(f"{sys}/fs/resctrl/info/L3/cbm_mask") or "",
    )


def _nodes(base: str) -> dict[int, frozenset[int]]:
    """Return the cpus of each NUMA node, devices that are one left out; empty without NUMA."""
    try:
        numbers = _cpus(f"{base}/node/online")
    except files.VanishedError:
        return {}
    with contextlib.suppress(files.VanishedError):
        numbers -= _cpus(f"{base}/node/has_generic_initiator")
    return {number: _cpus(f"{base}/node/node{number}/cpulist") for number in sorted(numbers)}


def _package(folder: str) -> Hashable:
    topology = f"{folder}/topology"
    listed = _text(f"{topology}/package_cpus_list") or _text(f"{topology}/core_siblings_list")
    number = _text(f"{topology}/physical_package_id")
    # Some platforms answer -1 where they do not know.
    return listed or (number if number is not None and number.isdigit() else "")


def _core(folder: str, socket: Hashable, cpu: int) -> Hashable:
    topology = f"{folder}/topology"
    listed = _text(f"{topology}/core_cpus_list") or _text(f"{topology}/thread_siblings_list")
    if listed:
        return listed
    number = _text(f"{topology}/core_id")
    # What does not say whose thread it is, is a core.
    return (socket, number) if number is not None and number.isdigit() else cpu


def _caches(folder: str) -> dict[int, str]:
    """Return who shares the caches of one cpu, by level, those for code alone left out."""
    found: dict[int, str] = {}
    for index in range(_MOST_CACHES):
        cache = f"{folder}/cache/index{index}"
        level, kind = _text(f"{cache}/level"), _text(f"{cache}/type")
        if level is None:
            break
        listed = _text(f"{cache}/shared_cpu_list")
        if listed and level.isdigit() and kind != "Instruction":
            found[int(level)] = listed
    return found


def _huge(folder: str) -> dict[str, int]:
    """Return the bytes of a NUMA node that are kept as huge pages."""
    found = {}
    for size, name in HUGE_PAGES.items():
        pages = _text(f"{folder}/hugepages/hugepages-{size}kB/nr_hugepages")
        found[name] = int(pages) * size * 1024 if pages and pages.isdigit() else 0
    return found


def _figures(path: str, prefix: str = "") -> dict[str, int]:
    return meminfo.figures(files.read(path), prefix)


def _cpus(path: str) -> frozenset[int]:
    try:
        return cpulists.parse(files.read(path, 4096).decode("ascii").strip())
    except (UnicodeDecodeError, cpulists.CpuListError) as error:
        raise files.ReadingError(f"{path}: {error}") from error


def _text(path: str) -> str | None:
    """Return a short word of the kernel, None where it has none to say."""
    try:
        word = files.read(path, 4096).decode("ascii").strip()
    except (files.ReadingError, UnicodeDecodeError):
        return None
    return word or None
