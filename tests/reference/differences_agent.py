"""Where the agent deliberately decides otherwise than the recorded reference, and why.

Per file and question, each difference by a short name; a case is known by what it says.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent import requested, reserved, state
from api import core, names, qos
from tests.reference import cases


def pod_state(raw: Mapping[str, Any], **more: Any) -> state.PodState:
    """Return a recorded pod as a decision sees it."""
    pod = msgspec.convert(raw, core.Pod)
    return state.PodState(pod, qos.kubernetes_qos(pod), cpus=reserved.bound_cpus(pod), **more)


def _exclusive_and_later(case: cases.Case) -> bool:
    """A cpu of an exclusive pod is claimed by a pod further down the list as well."""
    exclusive: frozenset[int] = frozenset()
    for raw in case.given["pods"]:
        pod = pod_state(raw)
        if pod.qos is qos.QoS.LSE:
            exclusive |= pod.cpus
        elif pod.cpus & exclusive:
            return True
    return False


def _by_requests(case: cases.Case) -> Mapping[str, Any]:
    tasks = case.expected["tasks"]
    task: Mapping[str, Any] = next(t for n, t in tasks.items() if n.endswith("AllocatableEvict"))
    return task


def _in_vain(case: cases.Case) -> bool:
    """Too much is requested, and a pod that may leave takes nothing of it."""
    task = _by_requests(case)
    native = names.MEMORY if "MemoryAllocatableEvict" in case.expected["tasks"] else names.CPU
    wanted, victims = task.get("toRelease") or {}, set(task.get("sortedPods") or ())
    return any(
        requested.of_pod(pod_state(raw), native)[0] not in wanted
        for raw in case.given["pods"]
        if raw["metadata"]["name"] in victims
    )


def _native(case: cases.Case) -> bool:
    """Pods that take plain cpu or memory count among those whose requests are too many."""
    wanted = _by_requests(case).get("toRelease") or {}
    return names.CPU in wanted or names.MEMORY in wanted


_IN_VAIN = cases.Difference(
    "a pod that takes nothing of what is requested too much would be evicted in vain and stays; "
    "and one that takes plain cpu or memory gives back what it requests, where the reference "
    "counts nothing and goes on evicting",
    lambda case: _in_vain(case) or _native(case),
)
DIFFERENCES: Mapping[str, Mapping[str, cases.Difference]] = {
    "be_suppress.cpuset": {
        "exclusive and later": cases.Difference(
            "the reference lets the last claim of a cpu win and gives that cpu to best effort; we "
            "never hand out a cpu of an exclusive pod",
            _exclusive_and_later,
        ),
    },
    "cpu_evict.tasks": {
        "plain cpu": cases.Difference(
            "the reference counts requests of plain cpu a thousandfold, so that no eviction ever "
            "satisfies them; we count milli-cores",
            _native,
        ),
    },
    "cpu_evict.round": {"in vain": _IN_VAIN},
    "memory_evict.round": {"in vain": _IN_VAIN},
    "batch_hook": {
        "no container": cases.Difference(
            "a pod of which no container is known would get a memory limit of zero bytes, which "
            "kills it; it gets no limit",
            lambda case: case.expected["pod"].get("memoryLimitBytes") == 0,
        ),
    },
}


def of(question: str) -> Mapping[str, cases.Difference]:
    """Return the differences of one question about one file."""
    return DIFFERENCES.get(question, {})
