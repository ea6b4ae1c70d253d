"""Gangs in random histories: bound whole or not at all, no place kept in vain, none left waiting.

Members come late, go, and are more than needed; nodes come and go; writes are lost, late and not
answered; watches lag; PodGroups are deleted and changed; the scheduler and the extender die, and a
second extender stands by, plans as well and takes over.
"""

import asyncio

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from process.runtime import clock as clocks
from tests.extender.clusters import slots
from tests.extender.gangs.stage import gang_life, gang_server, gang_teams
from tests.extender.gangs.stage.gang_teams import FORMS, GANGS, POLICIES

NOW = 1782907200.0
REST_SECONDS = 400.0
QUIET_TURNS = 4
EXAMPLES = hypothesis.settings.default.max_examples
"""Few by default: an example takes as long as some dozens of other ones."""
LOOKS_AT = st.sampled_from((0, 100, 100))
"""Nodes at which kube-scheduler is thought to look: 0 is all, and members keep their places."""
SOME = hypothesis.settings(
    max_examples=6 if EXAMPLES <= 50 else EXAMPLES, stateful_step_count=25, deadline=None
)


class Histories(gang_teams.Teams):
    """One extender after another, one scheduler, and everything that goes wrong between."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = clocks.ManualClock(now=NOW, turns=400)
        self.scheduler = gang_life.Scheduler(self.server, self.clock)
        self.life = gang_life.Life(self.server, self.clock, self.loop)
        self.standby = None

    @property
    def lives(self):
        """Those that are alive: the one that the scheduler calls first."""
        return [self.life] if self.standby is None else [self.life, self.standby]

    def teardown(self):
        try:
            self.run(self.settle())
        finally:
            for life in self.lives:
                self.run(life.kill())
            self.loop.close()

    def run(self, work):
        return self.loop.run_until_complete(work)

    # -- what goes wrong -----------------------------------------------------------------------

    @stateful.rule(faults=st.lists(st.sampled_from(gang_server.WRITES), min_size=1, max_size=3))
    def break_writes(self, faults):
        self.server.faults[:] = faults

    @stateful.rule()
    def deliver_late(self):
        self.server.deliver()

    @stateful.rule()
    def restart_extender(self):
        self.run(self.restart())

    async def restart(self, *, takes_over=False):
        await self.life.kill()
        self.scheduler.crash()
        if takes_over:
            self.life, self.standby = self.standby, None
        else:
            self.life = gang_life.Life(self.server, self.clock, self.loop)

    @stateful.rule(
        name=st.sampled_from(GANGS),
        wanted=gang_teams.SMALL,
        gated=st.booleans(),
        bindings=st.integers(1, 3),
        is_crowded=st.booleans(),
        heard=st.just(0) | st.integers(1, 8),
        survives=st.booleans(),
    )
    def die_in_the_middle(self, name, wanted, gated, bindings, is_crowded, heard, survives):
        """The extender dies after some Bindings, and there may be no room for the others then.

        Before its death a second one may hear of the members, plan them as well and write its
        records; it takes over if it `survives`.
        """
        self.let_in(gated)
        if heard:
            self.start_standby()
        self.declare(name, wanted["least"], **wanted)
        self.run(self.interrupted(bindings, is_crowded, heard, survives))

    async def interrupted(self, bindings, is_crowded, heard, survives):
        hearing = self.lives[:1] if heard else None
        self.catch_up(hearing)
        await self.clock.advance(0.1)
        self.server.bindings_left, turns = bindings, 12
        while self.server.bindings_left and turns:
            await self.turn(0.25, hearing)
            turns -= 1
        if not self.server.bindings_left:
            if heard:
                self.standby.hear("pods", heard)
                await self.clock.advance(0.5)
            await self.restart(takes_over=survives and heard > 0)
            for name in tuple(self.server.nodes) if is_crowded else ():
                self.take_pods(name, False)
        self.server.bindings_left = None

    @stateful.rule()
    def start_standby(self):
        async def work():
            if self.standby is None:
                self.standby = gang_life.Life(self.server, self.clock, self.loop)

        self.run(work())

    @stateful.rule(dies=st.booleans())
    def take_over(self, dies):
        """The scheduler of the second extender leads from now on."""

        async def work():
            if self.standby is None:
                return
            self.scheduler.crash()
            self.life, self.standby = self.standby, self.life
            if dies:
                await self.standby.kill()
                self.standby = None

        self.run(work())

    @stateful.initialize(
        samples=st.booleans(), looks_at=LOOKS_AT, gated=st.booleans(), admits=st.booleans()
    )
    def begin(self, samples, looks_at, gated, admits):
        self.sample_nodes(samples, looks_at)
        self.server.admits = admits
        self.let_in(gated)

    @stateful.rule(samples=st.booleans(), looks_at=LOOKS_AT)
    def sample_nodes(self, samples, looks_at):
        self.scheduler.samples = samples
        self.server.looks_at = looks_at

    @stateful.rule()
    def restart_scheduler(self):
        self.scheduler.crash()

    # -- time --------------------------------------------------------------------------------

    @stateful.rule(
        kind=st.sampled_from(gang_life.KINDS), count=st.integers(1, 4), which=st.integers(0, 1)
    )
    def hear(self, kind, count, which):
        async def work():
            self.lives[which % len(self.lives)].hear(kind, count)

        self.run(work())

    @stateful.rule(seconds=st.sampled_from((0.02, 0.3, 1.0, 5.0, 30.0)))
    def pass_time(self, seconds):
        self.run(self.clock.advance(seconds))

    @stateful.rule(most=st.integers(1, 4), hears=st.booleans())
    def schedule(self, most, hears):
        """The scheduler tries some pods."""

        async def work():
            for key in list(self.scheduler.due())[:most]:
                self.scheduler.attempt(self.life, key)
                await self.clock.advance(0.01)
                if hears:
                    self.life.catch_up()

        self.run(work())

    @stateful.rule(turns=st.integers(1, 8))
    def work_on(self, turns):
        """Everything goes its way for a while."""

        async def work():
            for _ in range(turns):
                await self.turn(0.25)

        self.run(work())

    async def turn(self, seconds, hearing=None):
        self.catch_up(hearing)
        for key in list(self.scheduler.due()):
            self.scheduler.attempt(self.life, key)
        await self.clock.advance(seconds)
        self.catch_up(hearing)

    def catch_up(self, hearing=None):
        for life in hearing or self.lives:
            life.catch_up()

    # -- what has to hold ----------------------------------------------------------------------

    @stateful.invariant()
    def the_state_is_what_the_watches_tell(self):
        assert [life.problems() for life in self.lives] == [[]] * len(self.lives)

    async def settle(self):
        """Let everything arrive; then nothing is left to be done within some minutes."""
        self.server.faults.clear()
        while self.server.late:
            self.server.deliver()
        self.collect()
        await self.rest()
        # Whatever terminated until now kept its place.
        if any(map(gang_server.leaving, self.server.pods.values())):
            self.end_terminating()
            await self.rest()

    async def rest(self):
        end, quiet = self.clock.monotonic() + REST_SECONDS, 0
        while quiet < QUIET_TURNS:
            await self.turn(1.0)
            found = self.restless()
            quiet = 0 if found else quiet + 1
            assert not found or self.clock.monotonic() < end, (found, self.told())
            assert [life.failed for life in self.lives] == [[]] * len(self.lives)
        self.the_state_is_what_the_watches_tell()

    def told(self):
        said = {
            key: [(one["type"], one.get("message")) for one in pod["status"].get("conditions", [])]
            for key, pod in self.server.pods.items()
        }
        return said, self.declared, list(self.life.gangs.plans.by_group)

    def restless(self):
        found = [f"{key} is being bound" for key in self.scheduler.flights]
        for life in self.lives:
            found += [f"{uid} is assumed" for uid in life.books.assumptions]
            found += [f"{uid} is kept" for uid in life.books.nominations]
            found += [f"{group} has a plan" for group in life.gangs.plans.by_group]
        for group in self.groups():
            found += self.partial(group) + self.waits(group)
        return found

    def groups(self):
        """Gangs that start together."""
        alone = [(name,) for name in GANGS if not self.declared.get(name, {}).get("grouped")]
        together = tuple(n for n in GANGS if self.declared.get(n, {}).get("grouped"))
        return [*alone, together] if together else alone

    def counts(self, gang):
        """How many members there are, and how many of them are bound."""
        found = self.members(gang)
        return len(found), sum(bool(pod["spec"]["nodeName"]) for pod in found)

    def partial(self, group):
        """Name the gangs that run in part, though nothing has disturbed them."""
        if not self.excused.isdisjoint(group):
            return []
        found = [
            (name, *self.counts(name), self.declared[name])
            for name in group
            if name in self.declared
        ]
        some = any(bound for _, _, bound, _ in found)
        return [
            f"{bound} of {wanted['least']} members of {name} are bound"
            for name, _, bound, wanted in found
            if some and bound < wanted["least"] and wanted["strict"]
        ]

    def waits(self, group):
        """Say that a group waits, is complete, and would fit."""
        grouped = self.declared.get(group[0], {}).get("grouped")
        if not all(map(self.ready, GANGS[:2] if grouped else group)):
            return []
        if grouped and any(self.declared[name]["form"] == "native" for name in GANGS[:2]):
            # Such a gang has another id than the one that is listed.
            return []
        if grouped and not all(self.is_placed(name) for name in GANGS[:2] if name not in group):
            return []
        counts = {name: self.counts(name) for name in group}
        ever = any(bound for _, bound in counts.values())
        pending = {name: count - bound for name, (count, bound) in counts.items()}
        need = {name: self.need(name, counts[name][1], ever) for name in group}
        if not any(pending.values()) or any(need[name] > pending[name] for name in group):
            return []
        wanted = max(sum(need.values()), 1)
        room = self.room(self.declared[group[0]])
        return (
            [f"{group} waits, and there is room for {room} of {wanted}"] if room >= wanted else []
        )

    def is_placed(self, name):
        """Whether a gang that starts without a group does not keep it from starting."""
        wanted, (_, bound) = self.declared[name], self.counts(name)
        return bound >= wanted["least"] or (wanted["policy"] == POLICIES[2] and bound > 0)

    def ready(self, name):
        wanted = self.declared.get(name)
        if wanted is None:
            return False
        has_object = wanted["form"] in FORMS[:2] or f"team/{name}" in self.server.pod_groups
        return has_object and self.counts(name)[0] >= wanted["least"]

    def need(self, name, bound, ever):
        wanted = self.declared[name]
        once = wanted["least"] if ever else 0
        held = {"only-waiting": 0, "waiting-and-running": bound}.get(wanted["policy"], once)
        return max(0, wanted["least"] - held)

    def room(self, wanted):
        taken = [
            pod["spec"]["nodeName"]
            for pod in self.server.pods.values()
            if slots.RESOURCE in pod["spec"]["containers"][0]["resources"]["requests"]
        ]
        found = 0
        for name, free in self.server.free({}).items():
            if free is not None:
                count = max(0, free // wanted["cpu"])
                found += min(count, 2 - taken.count(name)) if wanted["slotted"] else count
        return found


Histories.TestCase.settings = SOME
TestGangs = pytest.mark.timeout(30 * EXAMPLES)(Histories.TestCase)
