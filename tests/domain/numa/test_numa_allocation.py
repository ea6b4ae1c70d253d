"""What a pod gets of the NUMA nodes of a node."""

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from api.wire import quantity
from domain.cpus import cpu_accumulator, cpu_topology, cpu_usage
from domain.numa import hint_merge, numa_allocation
from tests import processor_time
from tests.domain.numa import legal_allocations
from tests.reference import cases, cpu_topologies

POLICIES = {
    "BestEffort": hint_merge.Policy.BEST_EFFORT,
    "Restricted": hint_merge.Policy.RESTRICTED,
    "SingleNUMANode": hint_merge.Policy.SINGLE_NUMA_NODE,
}


def _zones(found: list[dict[str, Any]]) -> dict[int, dict[str, int]]:
    return {one["node"]: quantity.amounts(one["resources"]) for one in found}


def _nodes(given: dict[str, Any]) -> numa_allocation.NumaNodes:
    holdings = [
        numa_allocation.Holding(
            cpu_topologies.mask(pod.get("cpuset")),
            cpu_usage.exclusive_policy(pod.get("exclusivePolicy", "")),
            tuple(
                (node, tuple(amounts.items()))
                for node, amounts in _zones(pod.get("numaNodeResources", [])).items()
            ),
        )
        for pod in given["pods"]
    ]
    return numa_allocation.count(
        cpu_topologies.described(given["topology"]),
        _zones(given["zones"]),
        holdings,
        reserved=cpu_topologies.mask(given.get("reservedCPUs")),
    )


def _request(given: dict[str, Any]) -> numa_allocation.NumaRequest:
    cpus, required = None, False
    if bind := given.get("bind"):
        strategy = given.get("nodeLabelNumaAllocateStrategy") or given["numaStrategy"]
        cpus = cpu_accumulator.CpuRequest(
            bind["cpus"],
            cpu_accumulator.bind_policy(bind["policy"]),
            cpu_usage.exclusive_policy(bind.get("exclusivePolicy", "")),
            cpu_accumulator.numa_strategy(strategy),
        )
        required = bind["required"]
    requests = tuple(quantity.amounts(given["requests"]).items())
    return numa_allocation.NumaRequest(requests, cpus, required)


def _answer(case: cases.Case) -> Any:
    given = case.given
    nodes, request = _nodes(given), _request(given)
    if given["op"] == "hints":
        scoring = numa_allocation.Scoring(given["numaScoring"] == "MostAllocated")
        found = numa_allocation.hints(nodes, request, POLICIES[given["policy"]], scoring)
        return {"hints": {name: [_shown(hint) for hint in some] for name, some in found.items()}}
    affinity = given.get("affinity")
    mask = None if affinity is None else cpu_topology.mask_of(affinity)
    got = numa_allocation.allocate(nodes, request, mask)
    if isinstance(got, tuple):
        return {"code": "Unschedulable", "error": "; ".join(sorted(got))}
    answer: dict[str, Any] = {}
    if request.cpus is not None:
        answer["cpuset"] = cpu_topologies.text(got.cpus)
    if got.zones:
        answer["numaNodeResources"] = [
            {"node": node, "resources": quantity.texts(amounts)}
            for node, amounts in got.zones.items()
        ]
    return answer


def _shown(hint: hint_merge.NumaHint) -> dict[str, Any]:
    mask = list(cpu_topology.cpus_of(hint.mask))
    return {"mask": mask, "preferred": hint.preferred, "score": hint.score}


def _free(given: dict[str, Any], resource: str) -> list[int]:
    """Return what is free of a resource on each NUMA node of the mask."""
    zones = _zones(given["zones"])
    for pod in given["pods"]:
        for node, amounts in _zones(pod.get("numaNodeResources", [])).items():
            zones[node] = {name: had - amounts.get(name, 0) for name, had in zones[node].items()}
    return [max(0, zones[node].get(resource, 0)) for node in given["affinity"]]


def _in_whole_cpus(given: dict[str, Any]) -> bool:
    """Whether CPU can be divided: the pod has none of its own, or every NUMA node whole ones."""
    if "bind" not in given:
        return True
    return not given["bind"]["required"] and all(free % 1000 == 0 for free in _free(given, "cpu"))


def _by_free_amounts(case: cases.Case, due: Any) -> Any:
    """Drop the reasons that only the order of the reference brings about.

    Shares of a resource that can be divided always suffice when the least free NUMA node is first.
    """
    given = case.given
    if "error" not in due or len(given.get("affinity") or ()) < 2:
        return cases.UNSTATED
    requests = quantity.amounts(given["requests"])
    kept = [
        reason
        for reason in due["error"].split("; ")
        if (resource := reason.rpartition(" ")[2]) not in requests
        or (resource == "cpu" and not _in_whole_cpus(given))
        or sum(_free(given, resource)) < requests[resource]
    ]
    return {**due, "error": "; ".join(kept)} if kept else cases.UNSTATED


def _in_order(case: cases.Case, due: Any) -> Any:
    """Return the answer by the order that is meant, which the cases mark and cannot show."""
    del due
    return _answer(case) if case.quirk == "distributionOrder" else cases.UNSTATED


def test_recorded_allocations_and_hints_are_made() -> None:
    differences = {
        "least-free-first": cases.Difference(
            "the NUMA node with the least free amount comes first; the reference compares "
            "positions in the mask and so splits otherwise, or refuses what would fit",
            _in_order,
        ),
        "only-what-is-lacking": cases.Difference(
            "a refusal names what is lacking, not what the order of the reference could not split",
            _by_free_amounts,
        ),
    }
    cases.check("numa_allocate", _answer, lambda case: case.expected, differences)


def _problems(case: cases.Case, answer: Any) -> list[str]:
    machine = legal_allocations.Machine(case.given)
    if case.given["op"] == "hints":
        return list(machine.hint_problems(answer["hints"], case.expected["hints"]))
    return list(machine.problems(answer))


def test_where_the_order_of_the_reference_is_by_chance_the_answer_is_a_legal_one() -> None:
    found = [case for case in cases.read("numa_allocate") if case.quirk == "distributionOrder"]
    wrong = {case.name: text for case in found if (text := _problems(case, _answer(case)))}
    assert (wrong, bool(found)) == ({}, True)


def test_what_is_not_legal_is_noticed() -> None:
    every = [case for case in cases.read("numa_allocate") if case.quirk == "distributionOrder"]
    split = [case for case in every if len(case.expected.get("numaNodeResources", ())) > 1]
    for case in split:
        answer = _answer(case)
        assert _problems(case, {**answer, "numaNodeResources": answer["numaNodeResources"][:1]})
        divided = {name for one in answer["numaNodeResources"] for name in one["resources"]}
        for resource in divided - {"cpu"}:
            assert _problems(case, {"error": f"Insufficient NUMA {resource}"})
    hinted = [case for case in every if any(case.expected.get("hints", {}).values())]
    for case in hinted:
        hints = _answer(case)["hints"]
        assert _problems(case, {"hints": {name: some + some for name, some in hints.items()}})
        wrong = [
            [hint | {"preferred": not hint["preferred"]} for hint in h] for h in hints.values()
        ]
        assert _problems(case, {"hints": dict(zip(hints, wrong, strict=True))})
    assert split
    assert hinted


CAPACITY = 8000
ZONES = {0: {"cpu": CAPACITY, "memory": 64}, 4: {"cpu": CAPACITY, "memory": 32}}
TOPOLOGY = cpu_topology.build(
    cpu_topology.Cpu(number, number % 8, number % 8 // 4, number % 8 // 4 * 4)
    for number in range(16)
)
REQUESTS = st.builds(
    lambda cpus, memory, bind, required: numa_allocation.NumaRequest(
        (("cpu", cpus * 1000), ("memory", memory)),
        cpu_accumulator.CpuRequest(cpus, bind) if bind else None,
        required,
    ),
    st.integers(1, 6),
    st.integers(0, 40),
    st.sampled_from([None, *cpu_accumulator.BindPolicy]),
    st.booleans(),
)


@hypothesis.given(st.lists(st.tuples(REQUESTS, st.sampled_from([None, 1, 16, 17])), max_size=8))
def test_nothing_is_given_twice_and_release_restores_everything(steps: list[Any]) -> None:
    held: list[numa_allocation.Holding] = []
    for request, mask in steps:
        before = numa_allocation.count(TOPOLOGY, ZONES, held)
        found = numa_allocation.allocate(before, request, mask)
        assert found == numa_allocation.allocate(before, request, mask)
        if mask is not None:
            succeeds = isinstance(found, numa_allocation.Allocated)
            trial = numa_allocation.Trial(before, request)
            assert numa_allocation.allocates(trial, mask) is succeeds
        if isinstance(found, tuple):
            continue
        assert not found.cpus & ~before.available
        for node, amounts in found.zones.items():
            assert mask is not None
            assert mask >> node & 1
            assert all(value <= before.free(node, name) for name, value in amounts.items())
        if mask is not None:
            for name, value in request.requests:
                assert sum(one.get(name, 0) for one in found.zones.values()) == value
        zones = tuple((node, tuple(amounts.items())) for node, amounts in found.zones.items())
        held.append(numa_allocation.Holding(found.cpus, zones=zones))
        assert numa_allocation.count(TOPOLOGY, ZONES, held[:-1]) == before
    after = numa_allocation.count(TOPOLOGY, ZONES, held)
    assert len(after.usage.levels) <= 1


def test_zones_are_known_by_their_ids() -> None:
    nodes = numa_allocation.count(TOPOLOGY, ZONES, [])
    request = numa_allocation.NumaRequest(
        (("cpu", 4000), ("memory", 1)), cpu_accumulator.CpuRequest(4), required=False
    )
    found = numa_allocation.allocate(nodes, request, 1 << 4)
    assert isinstance(found, numa_allocation.Allocated)
    assert found.zones == {4: {"cpu": 4000, "memory": 1}}
    assert found.cpus & ~TOPOLOGY.nodes[4] == 0
    hints = numa_allocation.hints(
        nodes, request, hint_merge.Policy.SINGLE_NUMA_NODE, numa_allocation.Scoring()
    )
    assert [hint.mask for hint in hints["cpu"]] == [1, 1 << 4, 1 | 1 << 4]


def test_held_cpus_cost_more_of_an_amplified_numa_node() -> None:
    holding = numa_allocation.Holding(cpus=0b11, zones=((0, (("cpu", 2000),)),))
    nodes = numa_allocation.count(TOPOLOGY, ZONES, [holding], cpu_ratio=150)
    assert nodes.free(0, "cpu") == CAPACITY - 3000


@pytest.mark.parametrize("bind", ["FullPCPUs", "SpreadByPCPUs"])
def test_hints_of_the_largest_topology_take_no_longer(bind):
    most = cpu_topology.MOST_CPUS
    cpus = [cpu_topology.Cpu(number, 0, number, number % 8) for number in range(most)]
    amounts = {"cpu": most // 8 * 1000}
    nodes = numa_allocation.count(cpu_topology.build(cpus), dict.fromkeys(range(8), amounts), ())
    found = []
    with processor_time.below(2.0):
        for count in (1, 1024, 2048):
            wanted = cpu_accumulator.CpuRequest(count, cpu_accumulator.bind_policy(bind))
            request = numa_allocation.NumaRequest((("cpu", count * 1000),), wanted, required=True)
            policy, scoring = hint_merge.Policy.RESTRICTED, numa_allocation.Scoring()
            found.append(numa_allocation.hints(nodes, request, policy, scoring))
    assert all(len(one["cpu"]) > 1 for one in found)
