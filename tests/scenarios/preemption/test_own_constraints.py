"""Pods leave for CPUs, GPUs and quota of others: as few as help, and nobody takes their place."""

import pytest

from tests.planes import raw
from tests.scenarios.preemption import foreseen

FULL, SPREAD = "FullPCPUs", "SpreadByPCPUs"
TOO_FEW = "not enough cpus available to satisfy request"


async def fragmented(arena):
    """Eight cores of which every one has lost one CPU: half of the CPUs are free, and no core."""
    node = await arena.machine("pair")
    await arena.hold("kept", cpus=1, bind=SPREAD, kept=True)
    for number in range(7):
        await arena.hold(f"low-{number}", cpus=1, bind=SPREAD)
    return node


async def test_one_pod_leaves_for_a_whole_core_and_its_replacement_waits(arena):
    node = await fragmented(arena)
    before = await foreseen.state(arena.kube)
    await arena.high(cpus=2, bind=FULL)
    (victim,) = await arena.victims()
    assert victim != "kept"
    assert await arena.simulated(before) == {victim}
    # Made by the controller of the victim: it neither takes the core nor preempts back.
    await arena.pod("again", cpus=2, bind=FULL)
    await arena.here.refused("again", TOO_FEW)
    # An attempt that preempts nobody ends the nomination that kube-scheduler counts.
    await arena.attempts()
    await arena.pod("plain", cpus=8)
    await arena.here.refused("plain")
    await arena.here.remove(victim)
    await arena.on(node, "high")
    await arena.here.refused("again", TOO_FEW)
    await arena.here.refused("plain")
    assert await arena.leaving() == {victim}
    await arena.here.told("high", "Preempting", "evicts 1 of lower priority")
    await arena.here.told(victim, "Preempted", f"evicted for {arena.here.namespace}/high")
    await arena.agree()


async def test_kube_scheduler_evicts_nobody_beside(arena):
    """On another node its own preemption could help, since CPU itself is short there."""
    node = await fragmented(arena)
    plain = await arena.machine("plain")
    await arena.hold("innocent", cpus=8, nodeSelector={"kubernetes.io/hostname": plain})
    await arena.high(cpus=2, bind=FULL)
    (victim,) = await arena.victims()
    await arena.attempts()
    assert await arena.leaving() == {victim}
    await arena.here.remove(victim)
    high = await arena.placed("high")
    assert await arena.leaving() == {victim}
    assert (high["spec"]["nodeName"] == node) is (victim != "innocent")
    await arena.agree()


async def shared(arena):
    """Two GPUs of which each has lost a part: more than one GPU is free, and none as a whole."""
    node = await arena.machine("pair")
    more = {"gpu": 40, "cpus": 2, "bind": FULL, "team": True}
    await arena.quota("5")
    await arena.hold("a", terminationGracePeriodSeconds=1800, **more)
    await arena.pod("filler", gpu=60)
    await arena.placed("filler")
    await arena.hold("b", terminationGracePeriodSeconds=1800, **more)
    await arena.forget("filler")
    return node


async def test_a_mixture_waits_for_a_long_grace_period_and_for_a_victim_that_ends(arena):
    node = await shared(arena)
    before = await foreseen.state(arena.kube)
    await arena.high(gpu=100, cpus=2, bind=FULL, team=True)
    (victim,) = await arena.victims()
    assert await arena.simulated(before) == {victim}
    claim = await arena.claim()
    lasts = claim["until"] - claim["at"]
    assert lasts == 1800 + 30, "the place is kept until the grace period has ended"
    await arena.pod("thief", gpu=100)
    await arena.here.refused("thief")
    await arena.status(victim, "Succeeded")
    await arena.on(node, "high")
    await arena.here.refused("thief")
    assert await arena.leaving() == {victim}
    await arena.agree()


async def test_a_budget_forbids_and_what_it_kept_apart_starts_without_it(arena):
    node = await shared(arena)
    async with arena.budget(2):
        await arena.high(gpu=100, cpus=2, bind=FULL, team=True)
        await arena.here.told("high", "PreemptionFailed", "may not be evicted now")
        assert await arena.leaving() == set()

    async def one():
        await arena.here.annotate("high", budget="gone")
        return await arena.leaving()

    (victim,) = await raw.eventually(one, 60.0)
    await arena.here.remove(victim)
    await arena.on(node, "high")
    assert await arena.leaving() == {victim}
    await arena.agree()


async def test_a_preemptor_that_is_deleted_leaves_its_place_to_others(arena):
    node = await shared(arena)
    await arena.high(gpu=100, cpus=2, bind=FULL, team=True)
    (victim,) = await arena.victims()
    await arena.here.remove("high")
    await arena.pod("next", gpu=100, cpus=2, bind=FULL, team=True)
    await arena.here.refused("next")
    await arena.here.remove(victim)
    await arena.on(node, "next")
    assert await arena.leaving() == {victim}
    assert arena.app.registry.value("koord_extender_preemptors", {}) == 0
    await arena.agree()


@pytest.mark.parametrize("arena", [{"mode": "observe"}], indirect=True)
async def test_whom_it_would_evict_is_only_said(arena):
    node = await fragmented(arena)
    await arena.high(cpus=2, bind=FULL)
    await arena.here.told("high", "WouldPreempt", "evicts 1 of lower priority")
    shown = await arena.preview()
    (victim,) = shown["victims"]
    assert shown["planned"]
    assert victim.partition("/")[2] in set(arena.held) - {"kept"}
    story = await arena.explained()
    assert f"The extender would evict {victim} (priority 0) for it, for node {node}." in story
    await arena.attempts()
    assert await arena.leaving() == set()
    assert await arena.claim() == {}
