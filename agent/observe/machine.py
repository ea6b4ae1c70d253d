"""Which cpus this machine has and where they sit."""

from agent import files, state
from domain import cpulists


def processors(sys_root: str) -> tuple[state.Processor, ...]:
    """Return every online cpu; parts of the topology that the kernel does not tell are zero."""
    base = f"{sys_root}/devices/system"
    zones = _zones(base)
    found = []
    for cpu in sorted(_cpus(f"{base}/cpu/online")):
        topology = f"{base}/cpu/cpu{cpu}/topology"
        core = _number(f"{topology}/core_id", cpu)
        socket = _number(f"{topology}/physical_package_id", 0)
        found.append(state.Processor(cpu, core, socket, zones.get(cpu, 0)))
    return tuple(found)


def boot_id(proc_root: str) -> str:
    """Return what tells one boot of this machine from another, empty where the kernel does not."""
    try:
        return files.read(f"{proc_root}/sys/kernel/random/boot_id", 64).decode("ascii").strip()
    except (files.ReadingError, UnicodeDecodeError):
        return ""


def _zones(base: str) -> dict[int, int]:
    """Map cpus to their NUMA node; empty on kernels without NUMA."""
    try:
        nodes = _cpus(f"{base}/node/online")
        return {cpu: node for node in nodes for cpu in _cpus(f"{base}/node/node{node}/cpulist")}
    except files.VanishedError:
        return {}


def _cpus(path: str) -> frozenset[int]:
    try:
        return cpulists.parse(files.read(path, 4096).decode("ascii").strip())
    except (UnicodeDecodeError, cpulists.CpuListError) as error:
        raise files.ReadingError(f"{path}: {error}") from error


def _number(path: str, fallback: int) -> int:
    try:
        word = files.read(path, 64).strip()
    except files.VanishedError:
        return fallback
    # Some platforms answer -1 where they do not know.
    return int(word) if word.isdigit() else fallback
