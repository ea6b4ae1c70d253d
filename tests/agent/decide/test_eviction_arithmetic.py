"""How much has to be given back, to the byte, and in which order pods that are alike leave."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import eviction, requested
from agent.decide.strategies import memory_evict
from agent.model import state, strategy_settings
from api import names
from api.kubernetes import core

GI = 1 << 30
# Requested, allocatable and the lower bound in percent. In whole numbers, the three of memory
# would come to a byte more.
TO_THE_BYTE = {
    "memory": (names.MEMORY, 123385312947, 68718428160, 90, 61538727602),
    "memory of 100 GiB": (names.MEMORY, 154207310960, 107374120960, 90, 57570602095),
    "memory, requested less": (names.MEMORY, 94574358450, 68718428160, 90, 32727773105),
    "gibibytes": (names.MEMORY, 34368657127, 8589934592, 60, 29214696371),
    "all of what nobody lends": (names.MEMORY, 5, 0, 90, 5),
    "milli-cores": (names.CPU, 6600, 8000, 40, 3400),
    "milli-cores of one": (names.CPU, 8421, 1000, 40, 8021),
}


@pytest.mark.parametrize(
    ("native", "total", "allocatable", "lower", "due"), TO_THE_BYTE.values(), ids=TO_THE_BYTE
)
def test_what_is_requested_too_much(native, total, allocatable, lower, due):
    bounds = strategy_settings.Bounds(lower + 1, lower)
    assert requested.excess(native, total, allocatable, bounds) == due


def rounded(exact):
    """The nearest number of double precision, which is what each operation gives."""
    return Fraction(float(exact))


amounts = st.integers(1, 1 << 42)


@given(total=amounts, allocatable=amounts, lower=st.integers(0, 120), more=st.integers(1, 40))
def test_every_operation_rounds_once(total, allocatable, lower, more):
    """Worked out in fractions, rounded after each operation as IEEE 754 does."""
    bounds = strategy_settings.Bounds(lower + more, lower)
    share = rounded(Fraction(total, allocatable))
    part = rounded(Fraction(lower, 100))
    above = share > rounded(Fraction(lower + more, 100))
    memory = rounded(rounded(share - part) * allocatable)
    cpu = rounded(total - rounded(part * allocatable))
    for native, due in ((names.MEMORY, memory), (names.CPU, cpu)):
        got = requested.excess(native, total, allocatable, bounds)
        assert got == (int(due) if above else None)
        if got is not None:
            exact = total - Fraction(lower * allocatable, 100)
            assert abs(got - exact) <= 1 + exact / 2**40 + Fraction(allocatable, 2**50)


def pod(name, used, priority=5000):
    body = core.Pod(
        metadata=core.ObjectMeta(
            name=name, namespace="ns", uid=name, labels={names.LABEL_QOS: "BE"}
        ),
        spec=core.PodSpec(priority=priority),
        status=core.PodStatus(phase="Running"),
    )
    return state.PodState(body, "BestEffort", usage=state.Usage(memory=used))


def order(*pods):
    node = core.Node(status=core.NodeStatus(capacity={"memory": "100Gi"}))
    picture = state.NodeState(at=0, node=node, usage=state.Usage(memory=99 * GI), pods=pods)
    settings = strategy_settings.MemoryEviction(used=strategy_settings.Bounds(70, 60))
    task = memory_evict.tasks(picture, settings)[memory_evict.BE_MEMORY_EVICT]
    assert isinstance(task, eviction.Task)
    return "".join(one.pod.metadata.name for one in task.victims)


@pytest.mark.parametrize(
    ("pods", "due"),
    [
        pytest.param((pod("a", GI), pod("b", GI)), "ab", id="alike"),
        pytest.param((pod("b", GI), pod("a", GI)), "ba", id="alike, the other way"),
        pytest.param((pod("a", GI), pod("b", 2 * GI)), "ba", id="larger first"),
        pytest.param((pod("a", 0), pod("b", 0)), "ba", id="nothing used: by name"),
        pytest.param((pod("a", 0), pod("b", None)), "ba", id="nothing and unknown are alike"),
        pytest.param((pod("b", None), pod("a", 0)), "ba", id="nothing and unknown, the other way"),
        pytest.param((pod("b", None), pod("a", 1)), "ab", id="unknown last"),
        pytest.param((pod("a", GI, None), pod("b", GI, 5000)), "ab", id="no priority"),
        pytest.param((pod("a", GI, 5500), pod("b", GI, 5000)), "ba", id="lower priority first"),
        pytest.param((pod("a", 5), pod("b", 7), pod("c", 5), pod("d", 7)), "bdac", id="stable"),
    ],
)
def test_pods_that_are_alike_leave_in_the_order_in_which_they_are_known(pods, due):
    assert order(*pods) == due
