"""Requests out of balance, devices and zones become whole again where that gains."""

import dataclasses

import pytest

from api.koordinator.metadata import qos
from descheduler.framework import objective, protocols
from descheduler.gain import gain_per_eviction
from descheduler.gain.options import Options
from descheduler.model import fragments
from tests.descheduler import builders
from tests.descheduler.gain import roomy_targets
from tests.descheduler.gain.judged import NOW, judge, of, suggested


def imbalanced(pods):
    """Nodes of 10 cores and 10 GiB whose pods request `name: (node, cpu, memory in Gi)`."""
    found = [
        builders.pod(
            name, node, cpu=str(cpu), memory=f"{memory}Gi", band=qos.Band.BATCH, started=NOW
        )
        for name, (node, cpu, memory) in pods.items()
    ]
    names = sorted({node for node, _, _ in pods.values()} | {"c"})
    nodes = [builders.node(name, cpu="10", memory="10Gi") for name in names]
    return builders.picture_of(nodes, found)


BOTH = Options()
DEFRAGMENT = protocols.Purpose.DEFRAGMENT


def test_requests_out_of_balance_are_healed_where_the_target_gains_as_well():
    seen = imbalanced({"p": ("a", 6, 1), "m": ("a", 2, 1), "q": ("b", 1, 6)})
    found = judge(seen, "p", DEFRAGMENT, options=BOTH)
    assert found.target.node == "b"
    assert found.figures == pytest.approx({"stuckBefore": 30 + 25, "stuckAfter": 5 + 0})
    assert found.gain == pytest.approx(50)


def test_a_fragment_that_only_moves_is_no_gain():
    seen = imbalanced({"p": ("a", 6, 1)})
    assert judge(seen, "p", DEFRAGMENT, options=BOTH).reason == gain_per_eviction.NOT_HEALED


def test_other_targets_are_tried_in_the_order_of_the_scheduler():
    seen = imbalanced({"p": ("a", 6, 1), "m": ("a", 2, 1), "x": ("b", 3, 0), "q": ("d", 1, 6)})
    targets = roomy_targets.RoomyTargets(seen)
    found = judge(seen, "p", DEFRAGMENT, options=BOTH, targets=targets)
    assert found.target.node == "d"
    once = dataclasses.replace(BOTH, tries=1)
    assert judge(seen, "p", DEFRAGMENT, options=once).reason == gain_per_eviction.NOT_HEALED


def device_world(source, target, held):
    pods = [builders.pod("p", "a", cpu="1", band=qos.Band.BATCH, started=NOW)]
    nodes = [builders.node(name) for name in "ab"]
    here = fragments.Fragments({"gpu": source}, held={"uid-p": held})
    there = fragments.Fragments({"gpu": target})
    return builders.picture_of(nodes, pods, fragments={"a": here, "b": there})


def test_a_device_becomes_whole_again_beside_one_that_was_in_use():
    held = fragments.Held({"gpu": {0: 30}})
    seen = device_world({0: 70, 1: 100}, {0: 40, 1: 100}, held)
    fits = roomy_targets.RoomyTargets(seen, fragments.Held({"gpu": {0: 30}}))
    found = judge(seen, "p", DEFRAGMENT, options=BOTH, targets=fits)
    assert found.figures["stuckBefore"] - found.figures["stuckAfter"] == pytest.approx(7 + 3)
    opens = roomy_targets.RoomyTargets(seen, fragments.Held({"gpu": {1: 30}}))
    found = judge(seen, "p", DEFRAGMENT, options=BOTH, targets=opens)
    assert found.reason == gain_per_eviction.NOT_HEALED


def test_cpus_of_a_zone_become_whole_again():
    zones = {0: 8, 1: 8}
    pods = [builders.pod("p", "a", cpu="4", band=qos.Band.BATCH, started=NOW)]
    here = fragments.Fragments({}, {0: 8, 1: 4}, zones, {"uid-p": fragments.Held({}, {1: 4})})
    there = fragments.Fragments({}, {0: 0, 1: 4}, zones)
    nodes = [builders.node(name) for name in "ab"]
    seen = builders.picture_of(nodes, pods, fragments={"a": here, "b": there})
    targets = roomy_targets.RoomyTargets(seen, fragments.Held({}, {1: 4}))
    found = judge(seen, "p", DEFRAGMENT, options=BOTH, targets=targets)
    assert isinstance(found, objective.Declined), "the other zone has as many free CPUs then"
    there = fragments.Fragments({}, {0: 4, 1: 4}, zones)
    here = fragments.Fragments({}, {0: 0, 1: 4}, zones, {"uid-p": fragments.Held({}, {1: 4})})
    seen = dataclasses.replace(seen, fragments={"a": here, "b": there})
    found = judge(seen, "p", DEFRAGMENT, options=BOTH, targets=targets)
    assert found.gain == pytest.approx(4.0)


def test_moves_that_were_accepted_count_for_fragments():
    held = fragments.Held({"gpu": {0: 30}})
    seen = device_world({0: 70, 1: 100}, {0: 40, 1: 100}, held)
    targets = roomy_targets.RoomyTargets(seen, held)
    judging = of(seen, BOTH)
    asked = suggested(seen, "p", DEFRAGMENT)
    judging.accept(asked, judging.judge(asked, targets))
    assert judging._fragments._fragments("a").devices == {"gpu": {0: 100, 1: 100}}
    assert judging._fragments._fragments("b").devices == {"gpu": {0: 10, 1: 100}}
    assert judging.spread() is None
