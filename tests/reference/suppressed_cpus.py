"""The cpuset of best effort worked out once more, by either rule of who owns a cpu.

Nothing of the agent's own choice is used. With the reference's rule the answers have to come out
as recorded; with ours, they are what we answer where the two differ on purpose.
"""

import collections
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

_RESERVATION: Final = "node.koordinator.sh/reservation"
_SYSTEM: Final = "node.koordinator.sh/system-qos-resource"
_POLICY: Final = "kubelet.koordinator.sh/cpu-manager-policy"
_STATUS: Final = "scheduling.koordinator.sh/resource-status"
_QOS: Final = "koordinator.sh/qosClass"


def cpusets(
    given: Mapping[str, Any], expected: Mapping[str, Any], *, exclusive_wins: bool
) -> dict[str, str]:
    """Return the cpuset by level.

    The reference lets the last pod that names a cpu own it; where `exclusive_wins`, a cpu that an
    LSE pod names is kept from best effort whoever else names it.
    """
    old = parse(given["oldBECPUSet"])
    cores = {cpu: (core, socket, node) for cpu, core, socket, node in given["processors"]}
    owners = _owners(given["pods"], exclusive_wins)
    free = set(cores) - _kept(given)
    shared = {cpu for cpu in free if owners.get(cpu) not in ("LSR", "LSE")}
    reserved = {cpu for cpu in free if owners.get(cpu) == "LSR"}
    wanted = max(-(-expected["suppressMilliCPU"] // 1000), 2)
    step = -(-len(cores) // 10)
    if wanted - len(old) > step:
        wanted = len(old) + step
    together = len(shared) + len(reserved)
    of_reserved = wanted * len(reserved) // together if together else 0
    chosen = [
        *_selected(reserved, of_reserved, cores),
        *_selected(shared, wanted - of_reserved, cores),
    ]
    container = text(chosen or old)
    above = container
    if _annotation(given, _POLICY).get("policy") == "static":
        above = expected["recoverCPUSet"]
    return {"root": above, "pod": above, "container": container}


def _owners(pods: Iterable[Mapping[str, Any]], exclusive_wins: bool) -> dict[int, str]:
    owners: dict[int, str] = {}
    for pod in pods:
        metadata = pod["metadata"]
        qos = (metadata.get("labels") or {}).get(_QOS, "")
        for cpu in _bound(metadata.get("annotations") or {}):
            if not (exclusive_wins and owners.get(cpu) == "LSE"):
                owners[cpu] = qos
    return owners


def _bound(annotations: Mapping[str, str]) -> set[int]:
    try:
        return parse(json.loads(annotations.get(_STATUS) or "{}").get("cpuset") or "")
    except ValueError:
        return set()


def _kept(given: Mapping[str, Any]) -> set[int]:
    """Return the cpus that the node reserves, and those of system work of its own."""
    system = _annotation(given, _SYSTEM)
    kept = parse(_annotation(given, _RESERVATION).get("reservedCPUs") or "")
    if system.get("cpusetExclusive", True):
        kept |= parse(system.get("cpuset") or "")
    return kept


def _annotation(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    try:
        found = json.loads((given["nodeTopologyAnnotations"] or {}).get(name) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _selected(
    cpus: Iterable[int], count: int, cores: Mapping[int, tuple[int, int, int]]
) -> list[int]:
    """Take whole cores round robin over sockets and NUMA nodes, then single cpus."""
    places: dict[tuple[int, int], list[int]] = collections.defaultdict(list)
    for cpu in sorted(cpus, key=lambda cpu: (cores[cpu][0], cpu)):
        _, socket, node = cores[cpu]
        places[node, socket].append(cpu)
    buckets = sorted(places.values(), key=lambda found: (-len(found), found[0]))
    if sum(map(len, buckets)) < count:
        return []
    chosen: list[int] = []
    turn, idle = 0, 0
    while count - len(chosen) >= 2 and idle < len(buckets):
        bucket = buckets[turn % len(buckets)]
        pair = next((p for p in itertools.pairwise(bucket) if cores[p[0]][0] == cores[p[1]][0]), ())
        chosen += pair
        for cpu in pair:
            bucket.remove(cpu)
        turn, idle = turn + 1, 0 if pair else idle + 1
    while len(chosen) < count:
        bucket = buckets[turn % len(buckets)]
        if bucket:
            chosen.append(bucket.pop(0))
        turn += 1
    return chosen


def parse(written: str) -> set[int]:
    """Read a list of cpus such as `0-3,8`."""
    found: set[int] = set()
    for part in filter(None, written.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def text(cpus: Iterable[int]) -> str:
    """Write a list of cpus as the kernel does."""
    parts = []
    for _, run in itertools.groupby(enumerate(sorted(set(cpus))), lambda at: at[1] - at[0]):
        numbers = [cpu for _, cpu in run]
        first, last = numbers[0], numbers[-1]
        parts.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(parts)
