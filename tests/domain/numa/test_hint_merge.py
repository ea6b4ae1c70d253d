"""NUMA hints of several providers are merged by the topology policy of a node."""

import itertools
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from domain.numa import hint_merge
from domain.numa.hint_merge import Alignment, NumaHint, Occupancy, Policy
from tests import draws
from tests.reference import cases

POLICIES = {
    "BestEffort": Policy.BEST_EFFORT,
    "Restricted": Policy.RESTRICTED,
    "SingleNUMANode": Policy.SINGLE_NUMA_NODE,
}


def _mask(nodes: list[int]) -> int:
    return sum(1 << node for node in nodes)


def _hints(found: list[dict[str, Any]] | None) -> hint_merge.Hints:
    if found is None:
        return None
    return tuple(NumaHint(_mask(one["mask"]), one["preferred"], one["score"]) for one in found)


def _alignment(given: dict[str, Any]) -> Alignment:
    def nodes(status: str) -> int:
        return _mask([node for node, one in enumerate(given["numaStatus"]) if one == status])

    occupancy = Occupancy(nodes("single"), nodes("shared"))
    exclusive = occupancy if given["exclusive"] == "Required" else None
    return Alignment(POLICIES[given["policy"]], (1 << given["numaNodes"]) - 1, exclusive)


def _resources(given: dict[str, Any]) -> dict[str, hint_merge.Hints]:
    return {name: _hints(found) for one in given["providers"] for name, found in one.items()}


def test_recorded_hints_are_merged_alike() -> None:
    def answer(case: cases.Case) -> Any:
        alignment, resources = _alignment(case.given), _resources(case.given)
        merged = hint_merge.merge(alignment, resources.values(), thorough=True)
        found: dict[str, Any] = {
            "admit": merged.admitted,
            "mask": [node for node in range(64) if merged.mask >> node & 1],
            "preferred": merged.preferred,
            "score": merged.score,
            "unsatisfied": not merged.satisfied,
        }
        if alignment.policy is Policy.SINGLE_NUMA_NODE and merged.mask == alignment.everywhere:
            # Nothing of NUMA is recorded where there is nothing to choose.
            found |= {"mask": None, "score": 0}
        if not merged.admitted:
            found["reasons"] = list(hint_merge.reasons(alignment.policy, resources))
        return found

    differences = {
        "best-score-of-masks-as-wide": cases.Difference(
            "of masks as wide the best score counts, in whatever order hints come; the reference "
            "lets a lower mask with a worse score win that comes later",
            _transitive,
        )
    }
    cases.check("numa_hints", answer, lambda case: case.expected, differences)


def _transitive(case: cases.Case, due: Any) -> Any:
    """Return what the best of all combinations is by one order, for refused pods."""
    if due["preferred"] or due["admit"] or case.given["policy"] != "Restricted":
        return cases.UNSTATED
    if due["reasons"][0].startswith("Unsatisfied"):
        return cases.UNSTATED
    alignment, resources = _alignment(case.given), _resources(case.given)
    mask, _, score, satisfied = _best_combination(alignment, list(resources.values()))
    nodes = [node for node in range(64) if mask >> node & 1]
    return {**due, "mask": nodes, "score": score, "unsatisfied": not satisfied}


Candidate = tuple[int, bool, int, bool]


def _combinations(alignment: Alignment, asked: list[hint_merge.Hints]) -> Iterator[Candidate]:
    """Yield mask, preference, score and satisfaction of every combination of hints."""
    lists = [[(None, True, 0)] if one is None else _offered(alignment, one) for one in asked]
    yield alignment.everywhere, False, 0, True
    for combination in itertools.product(*lists):
        masks = [mask for mask, _, _ in combination if mask is not None]
        common = alignment.everywhere
        for mask in masks:
            common &= mask
        if not common:
            continue
        liked = all(like for _, like, _ in combination) and len(set(masks)) <= 1
        if alignment.occupancy is not None and not alignment.occupancy.admits(common):
            liked = False
        wide = any(mask.bit_count() > common.bit_count() for mask in masks)
        lacking = () in asked
        score = sum(value for mask, _, value in combination if mask == common)
        yield common, liked, score, not wide and not lacking


def _offered(alignment: Alignment, hints: tuple[NumaHint, ...]) -> list[tuple[Any, bool, int]]:
    if not hints:
        return [(None, False, 0)]
    single = alignment.policy is Policy.SINGLE_NUMA_NODE
    return [
        (hint.mask, hint.preferred, hint.score)
        for hint in hints
        if not single or (hint.preferred and hint.mask.bit_count() == 1)
    ]


def _best_combination(alignment: Alignment, asked: list[hint_merge.Hints]) -> Candidate:
    def rank(one: Candidate) -> Any:
        return one[1], -one[0].bit_count(), one[2], -one[0], one[3]

    return max(_combinations(alignment, asked), key=rank)


NODES = 3
HINT = st.builds(
    NumaHint, st.integers(1, (1 << NODES) - 1), st.booleans(), st.sampled_from([0, 0, 10, 70])
)
RESOURCE = st.none() | st.lists(HINT, max_size=4, unique_by=lambda hint: hint.mask).map(tuple)
OCCUPANCY = st.none() | st.builds(
    Occupancy, st.integers(0, (1 << NODES) - 1), st.integers(0, (1 << NODES) - 1)
)


@hypothesis.given(
    st.lists(RESOURCE, max_size=4), st.sampled_from(sorted(POLICIES.values(), key=str)), OCCUPANCY
)
@hypothesis.settings(max_examples=draws.at_least(150))
def test_the_merged_hint_is_the_best_of_every_combination(
    asked: list[hint_merge.Hints], policy: Policy, occupancy: Occupancy | None
) -> None:
    alignment = Alignment(policy, (1 << NODES) - 1, occupancy)
    merged = hint_merge.merge(alignment, asked, thorough=True)
    mask, preferred, score, satisfied = _best_combination(alignment, asked)
    refused = () in asked and policy is not Policy.BEST_EFFORT
    if refused or (policy is Policy.BEST_EFFORT and not satisfied):
        mask, preferred, score, satisfied = alignment.everywhere, False, 0, True
    assert merged[:2] == (mask, preferred)
    assert (merged.score, merged.satisfied) == (score, satisfied)
    assert merged.admitted == (preferred or policy is Policy.BEST_EFFORT)
    assert merged.admitted == hint_merge.merge(alignment, asked).admitted
    assert merged == hint_merge.merge(alignment, asked[::-1], thorough=True)


@pytest.mark.parametrize(
    ("mask", "admits"),
    [
        pytest.param(0b001, True, id="alone-beside-pods-of-one-node"),
        pytest.param(0b010, False, id="alone-beside-a-pod-that-spans"),
        pytest.param(0b011, False, id="several-beside-pods-of-one-node"),
        pytest.param(0b110, True, id="several-beside-a-pod-that-spans"),
    ],
)
def test_whole_numa_nodes_for_one_pod(mask: int, admits: bool) -> None:
    assert Occupancy(single=0b001, shared=0b110).admits(mask) is admits


def test_many_resources_on_eight_numa_nodes_are_merged_at_once() -> None:
    every = tuple(NumaHint(mask, mask.bit_count() == 1) for mask in range(1, 1 << 8))
    merged = hint_merge.merge(Alignment(Policy.RESTRICTED, 255), [every] * 6)
    assert (merged.mask, merged.preferred) == (1, True)
