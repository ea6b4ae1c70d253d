"""Where the agent deliberately decides otherwise than the recorded reference, and why.

Per file and question, each difference by a short name, with the answer that it states.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent.model import state
from agent.model.cpus import reserved_cpus
from api.koordinator.metadata import qos
from api.kubernetes import core
from tests.reference import cases, eviction_rounds, suppressed_cpus


def pod_state(raw: Mapping[str, Any], **more: Any) -> state.PodState:
    """Return a recorded pod as a decision sees it."""
    pod = msgspec.convert(raw, core.Pod)
    cpus, _ = reserved_cpus.claimed_cpus(pod)
    return state.PodState(pod, qos.kubernetes_qos(pod), cpus=cpus, **more)


def _exclusive_wins(case: cases.Case, wanted: Any) -> Any:
    """The cpuset where a cpu of an exclusive pod is its own, whoever names it later."""
    if case.expected.get("cpusetPanic"):
        return cases.UNSTATED
    by_theirs, by_ours = (
        suppressed_cpus.cpusets(case.given, case.expected, exclusive_wins=wins)
        for wins in (False, True)
    )
    return by_ours if by_theirs == wanted else cases.UNSTATED


def _in_milli(_case: cases.Case, wanted: Any) -> Any:
    """The tasks with requests of plain cpu in milli-cores."""
    tasks = dict(wanted)
    for feature, task in wanted.items():
        to_release, *rest = task
        if isinstance(to_release, dict):
            tasks[feature] = (eviction_rounds.plain_cpu(feature, to_release), *rest)
    return tasks


def _nobody_in_vain(native: str) -> cases.Difference:
    def stated(case: cases.Case, wanted: Any) -> Any:
        by_theirs, by_ours = (
            eviction_rounds.Round(native, case.given, case.expected["tasks"], ours).played()
            for ours in (False, True)
        )
        return by_ours if by_theirs == wanted else cases.UNSTATED

    return cases.Difference(
        "a pod that takes nothing of what is requested too much would be evicted in vain and "
        "stays; and one that takes plain cpu or memory gives back what it requests, where the "
        "reference counts nothing and goes on evicting",
        stated,
    )


def _no_limit(_case: cases.Case, wanted: Any) -> Any:
    """The values with no memory limit for the pod in place of zero bytes."""
    pod, containers, failed = wanted
    if pod.get("memoryLimitBytes") != 0:
        return cases.UNSTATED
    return {**pod, "memoryLimitBytes": -1}, containers, failed


DIFFERENCES: Mapping[str, Mapping[str, cases.Difference]] = {
    "be_suppress.cpuset": {
        "exclusive and later": cases.Difference(
            "the reference lets the last claim of a cpu win and gives that cpu to best effort; we "
            "never hand out a cpu of an exclusive pod",
            _exclusive_wins,
        ),
    },
    "cpu_evict.tasks": {
        "plain cpu": cases.Difference(
            "the reference counts requests of plain cpu a thousandfold, so that no eviction ever "
            "satisfies them; we count milli-cores",
            _in_milli,
        ),
    },
    "cpu_evict.round": {"in vain": _nobody_in_vain("cpu")},
    "memory_evict.round": {"in vain": _nobody_in_vain("memory")},
    "batch_hook": {
        "no container": cases.Difference(
            "a pod of which no container is known would get a memory limit of zero bytes, which "
            "kills it; it gets no limit",
            _no_limit,
        ),
    },
}


def of(question: str) -> Mapping[str, cases.Difference]:
    """Return the differences of one question about one file."""
    return DIFFERENCES.get(question, {})
