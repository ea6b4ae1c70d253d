"""Restarts of gangs under way, and what is forgotten of them."""

from manager.gangs import restart_plan, restarts
from process.runtime import metrics
from tests.manager.gangs import ganged

GANG = "default/g"


class Writer:
    """Evicts at once; `evicted` is called after each pod."""

    def __init__(self, evicted=lambda: None):
        self.pods, self._evicted = [], evicted

    async def carry_out(self, plan):
        self.pods += [step.name for step in plan.steps]
        self._evicted()


def begun(clock, count=3):
    made = restarts.Restarts(restarts.Pace(), clock, metrics.Registry())
    pods = tuple(ganged.pod(f"g-{number}") for number in range(count))
    made.start(GANG, restart_plan.Restart(pods, (GANG,)))
    return made


async def test_a_term_that_ends_within_a_restart_ends_the_restart(clock):
    made = begun(clock)
    writer = Writer(made.drop)
    assert await made.go_on(writer, GANG) == restarts.Progress()
    assert (writer.pods, made.is_under_way(GANG)) == (["g-0"], False)


async def test_a_gang_that_is_gone_is_no_longer_under_way(clock):
    made = begun(clock)
    made.forget(GANG)
    assert not made.is_under_way(GANG)
    assert made.last(GANG) is not None
