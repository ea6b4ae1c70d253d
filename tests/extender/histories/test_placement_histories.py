"""Whatever happens, in whatever order: no CPU and no part of a device is held twice."""

import os
import random

import pytest

from api import names
from api.kubernetes import extender as wire
from tests.extender.histories import histories, placement_kit

STEPS = int(os.environ.get("KOORD_HISTORY_STEPS", "400"))
SEEDS = 2


def history(seed, *, shared):
    kit = placement_kit.Placement()
    return histories.History(random.Random(seed), shared=shared, kit=kit)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_one_extender_never_gives_a_cpu_or_a_part_of_a_device_twice(seed):
    """Bindings fail, arrive late, are not answered; devices fail and come back meanwhile."""
    found = history(seed, shared=False)
    await found.run(STEPS // SEEDS)
    await found.settle()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_what_two_extenders_give_twice_is_found_and_the_earlier_pod_keeps_it(seed):
    """Processes are killed, replaced and work side by side; each sees the others' pods late."""
    found = history(1000 + seed, shared=True)
    await found.run(STEPS // SEEDS)
    await found.settle()


class Shares(placement_kit.Placement):
    """Every pod wants the same part of a GPU."""

    def body(self, chance):
        del chance
        return {}, {"name": "main", "resources": {"requests": {names.GPU: "40"}}}


async def test_three_pods_that_hold_more_than_a_gpu_together_are_found():
    """No two of them do, and each extender by itself gave away less than the whole."""
    found = histories.History(random.Random(0), shared=True, kit=Shares())
    found.server.fault = lambda **_: ""
    one, two = found.processes[0], found.fresh()
    found.processes.append(two)
    keys = ("default/a", "default/b", "default/c")
    while len(found.server.pods) < len(placement_kit.Placement.pods):
        found.create()
    for process, key in ((one, keys[0]), (one, keys[1]), (two, keys[2])):
        one.catch_up()
        if key != keys[2]:
            two.catch_up()
        known = process.store.get(key)
        asked = wire.BindingArgs(known.name, "default", known.uid, "n1")
        assert await process.binder.bind(asked) == ""
    beyond = placement_kit.recount(found.server.pods)
    assert f"n1: 120 of ('device', 'gpu', 0, '{names.GPU_CORE}')" in beyond
    (overlap,) = found.overlaps()
    assert len(overlap.others) == 1
    await found.settle()
