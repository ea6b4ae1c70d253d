"""One pod, or one strategy, that fails leaves the others as they are."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import catalogue, isolation, planner
from agent.model import edits, state, strategy_settings
from agent.store import time_series
from api.kubernetes import core
from tests.agent import conftest

QUOTA = edits.Role.CPU_QUOTA
PODS = 250


class Counts:
    """Wants one edit for each pod; some make it fail."""

    def __init__(self, poison=()):
        self.poison, self.calls, self.seen = set(poison), 0, 0

    def __call__(self, look):
        self.calls += 1
        wanted = []
        for pod in look.picture.pods:
            uid = pod.pod.metadata.uid
            if uid in self.poison and pod.pod.metadata.annotations:
                raise RecursionError(f"poisoned by {uid}")
            wanted.append(edits.Edit(QUOTA, pod.group, str(len(uid)), "because"))
        self.seen = len(wanted)
        return edits.Decision("counted", tuple(wanted))


def a_look(pods, now=0.0):
    picture = state.NodeState(at=0, thresholds=state.Thresholds(True), pods=tuple(pods))
    return catalogue.Look(picture, strategy_settings.Strategies(), time_series.Histories(), now)


def pods(count=PODS):
    placed = conftest.Placed(annotations={"a": "b"})
    return [placed(f"p{number:03}") for number in range(count)]


MANY = pods()


def planned(*deciders):
    entries = [catalogue.Strategy(f"s{n}", (), one) for n, one in enumerate(deciders)]
    return planner.Planner(entries, (), {}, planner.Mode.ENFORCE)


def released(found):
    """What is put back."""
    return [one.group for one in found.wanted if one.value is None]


def values(wanted):
    return {(one.role, one.group): one.value for one in wanted}


@pytest.mark.parametrize(
    "poison", [{0}, {249}, {100}, {3, 4}, {0, 125, 249}], ids=lambda poison: str(sorted(poison))
)
def test_one_poisoned_pod_among_many_changes_nothing_for_the_others(poison):
    uids = {f"uid-p{number:03}" for number in poison}
    healthy = values(planned(Counts()).step(a_look(MANY)).wanted)
    sick = Counts(uids)
    found = planned(sick, Counts()).step(a_look(MANY))
    assert set(found.skipped["s0"]) == {f"default/p{number:03}" for number in poison}
    assert not found.failed
    assert sick.calls <= 1 + isolation.MOST_PROBES + 1
    # The second strategy wants the same of all pods, the poisoned ones included.
    assert values(found.wanted) == healthy
    alone = values(planned(Counts(uids)).step(a_look(MANY)).wanted)
    groups = {f"p{number:03}" for number in poison}
    assert alone == {key: value for key, value in healthy.items() if key[1] not in groups}


def test_what_stood_for_a_pod_stands_while_it_is_left_out():
    counts = Counts()
    made = planned(counts)
    made.step(a_look(MANY))
    counts.poison = {"uid-p007"}
    found = made.step(a_look(MANY, 1.0))
    assert released(found) == []
    assert len(found.decisions["s0"].wanted) == PODS
    assert "1 pod left out: default/p007: RecursionError" in found.decisions["s0"].reason
    # It is not searched for again before its time, nor is anything of it put back.
    calls = counts.calls
    assert released(made.step(a_look(MANY, 2.0))) == []
    assert counts.calls == calls + 1
    assert found.decisions["s0"].figures == {}


@pytest.mark.parametrize("how", ["changed", "later"])
def test_a_pod_is_tried_again(how):
    counts = Counts({"uid-p007"})
    made = planned(counts)
    made.step(a_look(MANY))
    counts.poison = set()
    now, present = 1.0, list(MANY)
    if how == "changed":
        meta = msgspec.structs.replace(MANY[7].pod.metadata, annotations={"a": "c"})
        changed = msgspec.structs.replace(MANY[7].pod, metadata=meta)
        present[7] = msgspec.structs.replace(MANY[7], pod=changed)
    else:
        now = isolation.AGAIN_SECONDS + 1
    found = made.step(a_look(present, now))
    assert not found.skipped
    assert (QUOTA, "p007") in values(found.wanted)


def test_a_strategy_that_fails_by_itself_keeps_what_it_set_and_stops_no_other():
    def fails(look):
        raise KeyError("no such thing")

    counts = Counts()
    made = planned(fails, counts)
    found = made.step(a_look(MANY))
    assert found.failed == {"s0": "KeyError: 'no such thing'"}
    assert not found.skipped
    assert len(found.wanted) == PODS
    assert found.decisions["s0"].reason.startswith("failed, what it set stands: KeyError")


def test_what_a_failing_strategy_had_set_stands():
    class Sometimes(Counts):
        broken = False

        def __call__(self, look):
            if self.broken:
                raise OverflowError("huge")
            return super().__call__(look)

    counts = Sometimes()
    made = planned(counts)
    made.step(a_look(MANY))
    counts.broken = True
    found = made.step(a_look(MANY, 1.0))
    assert released(found) == []
    assert len(found.decisions["s0"].wanted) == PODS
    assert found.failed == {"s0": "OverflowError: huge"}
    counts.broken = False
    found = made.step(a_look(MANY, 2.0))
    assert (released(found), found.failed) == ([], {})


def test_a_pod_that_is_left_out_keeps_its_cpus_and_class():
    seen = []

    def looks(look):
        if any(pod.pod.metadata.annotations for pod in look.picture.pods if pod.group == "p1"):
            raise ValueError("annotation")
        seen.append(look.picture.pods)
        return edits.Decision("looked")

    placed = conftest.Placed(annotations={"a": "b"}, requests={"cpu": "1"})
    alone = placed("p1", quality="LSE", cpus=frozenset({2, 3}))
    made = planned(looks)
    made.step(a_look([placed("p0"), alone]))
    other, plain = seen[-1]
    assert other == placed("p0")
    assert (plain.cpus, plain.qos, plain.group) == (alone.cpus, alone.qos, alone.group)
    assert plain.pod.metadata.annotations == {}
    assert plain.containers[0].container == core.Container("app")


def test_evictions_of_pods_that_are_left_out_wait():
    def evicts(look):
        for pod in look.picture.pods:
            if pod.group == "p001" and pod.pod.metadata.annotations:
                raise ValueError("annotation")
        leaving = tuple(
            edits.Eviction("default", pod.group, pod.pod.metadata.uid, "why")
            for pod in look.picture.pods
        )
        return edits.Decision("evicts", evictions=leaving)

    found = planned(evicts).step(a_look(pods(3)))
    assert [one.name for one in found.evictions] == ["p000", "p002"]


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 59), max_size=4), st.integers(1, 60))
def test_whoever_is_poisoned_all_others_are_decided(poison, count):
    present = MANY[:count]
    uids = {f"uid-p{number:03}" for number in poison}
    found = planned(Counts(uids)).step(a_look(present))
    there = {pod.pod.metadata.uid for pod in present}
    assert {key.removeprefix("default/") for key in found.skipped.get("s0", ())} == {
        uid.removeprefix("uid-") for uid in uids & there
    }
    assert len(found.wanted) == len(there - uids)
