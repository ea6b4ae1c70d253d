"""Who leaves a node that is short of something: as recorded, with real processes as pods.

The agent evicts through an API server; the test is the kubelet that ends what was evicted.
"""

import asyncio

from agent.decide import catalogue
from tests.planes.host import evicting, kubepods, scenes

FIRST = kubepods.version() == 1
CORES = 0.6 if FIRST else 0.4
BYTES = (160 if FIRST else 48) * kubepods.MIB


async def play(stage, pause):
    """Play a scene to its end; returns how long it took until somebody left."""
    await stage.play()
    node, everybody = stage.node, stage.left()
    node.enforce(resourceUsedThresholdWithBE=stage.scene.given["thresholdStrategy"])
    first = await node.until(lambda: stage.leaving(), 60)
    expected = set(stage.scene.victims)
    await node.until(lambda: stage.leaving() >= expected, 60)
    # They take their time to go, and nobody else has to go for it.
    await node.seconds(2)
    assert stage.leaving() == expected
    await stage.end()
    await node.seconds(pause + 3)
    assert stage.left() == everybody - expected
    # A call that took too long is made again; nobody leaves twice for it. That the API server
    # is slow once cannot be excluded while all scenes play at once; a second time it is not.
    assert stage.told("evicted") == sorted(expected)
    failed = stage.told("failed")
    assert set(failed) <= expected
    assert len(failed) == len(set(failed))
    return first


async def play_one_after_another(stage):
    """Play a scene in which the second victim has to wait; returns for how long it did."""
    await stage.play()
    node, moments = stage.node, {}

    def left(name):
        for one in node.loop.decisions["memory-evict"].evictions:
            moments.setdefault(one.name, node.clock.monotonic())
        return stage.leaving() == {name}

    node.enforce(resourceUsedThresholdWithBE=stage.scene.given["thresholdStrategy"])
    for name in stage.scene.victims:
        await node.until(lambda name=name: left(name), 60)
        await stage.end()
    waited = moments["second"] - moments["first"]
    # What is looked at is as old as the tick took.
    assert waited > catalogue.MEMORY_PAUSE - 1
    await node.until(lambda: well(stage), 30)
    await node.seconds(catalogue.MEMORY_PAUSE + 1)
    assert stage.left() == {"third"}
    assert stage.told("evicted") == ["first", "second"]
    return waited


def well(stage):
    """Tell whether nothing has to be given back any more."""
    decision = stage.node.loop.decisions[f"{stage.scene.resource}-evict"]
    return decision.reason == "nothing has to be given back" and not decision.evictions


async def test_those_leave_who_left_in_the_recorded_cases(tmp_path):
    # An emulated machine plays fewer of them.
    features = ("BEMemoryEvict", "MemoryEvict") if FIRST else ("BEMemoryEvict",)
    chosen = {
        scenes.first(scenes.MEMORY, feature, BYTES, refused=refused): catalogue.MEMORY_PAUSE
        for feature in features
        for refused in (False, True)
    }
    chosen[scenes.first(scenes.CPU, "CPUEvict", CORES)] = catalogue.CPU_PAUSE
    chosen[scenes.starved(CORES / 2)] = catalogue.CPU_PAUSE
    slow = scenes.one_after_another(BYTES)
    async with evicting.staged([*chosen, slow], tmp_path) as (*stages, last):
        plays = map(play, stages, chosen.values())
        *took, pause = await asyncio.gather(*plays, play_one_after_another(last))
        print(f"{pause:.1f} s from one eviction to the next")
        for stage, seconds in zip(stages, took, strict=True):
            scene, refused = stage.scene, stage.told("refused")
            print(f"{scene.name}: {scene.feature} took {scene.victims}, refused {refused}")
            assert set(refused) <= set(scene.guarded)
            if scene.ends:
                assert well(stage)
            if scene.resource == scenes.CPU:
                # An agent that has just come looks for a while before it takes cpu from anybody.
                assert seconds > catalogue.CPU_PAUSE - 2 * kubepods.TICK
        assert any(stage.told("refused") for stage in stages)
