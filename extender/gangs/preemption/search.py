"""The cheapest set of victims that makes room for a whole gang. Pure: it works on a fork.

Steps that free places are tried, the cheapest first, twice as many each time; then as few of them
as do, and at the end every victim is put back without which the gang still fits. Each try is a
whole plan, so every constraint counts; a bounded number of tries is made.
"""

import dataclasses
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from extender.framework import claim_index, pipeline, views
from extender.framework.eviction import victims
from extender.gangs.planning import planner
from extender.gangs.preemption import candidates
from extender.state import cluster_state, deltas

MOST_TRIES: Final = 40
"""Plans that are made for one gang ..."""
MOST_PLACEMENTS: Final = 16384
"""... and members that are placed in all of them together."""
_HALVINGS: Final = 6
_TOGETHER: Final = 32
"""Changes of the fork that are made in one go."""
_ROUNDS: Final = 3

NEVER: Final = "the preemptionPolicy of a member is Never"
NOBODY: Final = "no pods of lower priority hold what it lacks"
TOO_MANY: Final = f"more than {candidates.MOST_VICTIMS} pods would have to leave"


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A gang group without room."""

    members: tuple[planner.Member, ...]
    needed: int
    terms: candidates.Terms
    now: float


@dataclasses.dataclass(frozen=True, slots=True)
class Victims:
    """Who leaves, and where the members have their places then."""

    placements: tuple[planner.Placement, ...]
    found: victims.Found

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes of the members."""
        return frozenset(one.node for one in self.placements)


@dataclasses.dataclass(frozen=True, slots=True)
class NoVictims:
    """Why no pod is preempted for a gang."""

    reason: str


class Made(Protocol):
    """A plan in the making."""

    result: planner.Found | None

    def steps(self) -> Iterator[None]:
        """Make the plan, in steps."""


Make = Callable[[cluster_state.ClusterState], Made]
"""Plans the gang on a state, which the plan may change."""
Units = tuple[candidates.Unit, ...]


class Search:
    """One search, on a fork that is as it was afterwards."""

    def __init__(
        self, plugins: pipeline.Pipeline, fork: cluster_state.ClusterState, case: Case, make: Make
    ) -> None:
        self._plugins, self._fork, self._case, self._make = plugins, fork, case, make
        self._index = claim_index.ClaimIndex(fork.all_claims())
        self._tries = 0
        self._placed = 0
        self._free: tuple[views.Claim, ...] = ()
        """Pods that leave anyway."""
        self._refused: frozenset[str] = frozenset()
        self.result: Victims | NoVictims | None = None

    def steps(self) -> Iterator[None]:
        """Search, in steps; `result` is set after the last one."""
        members = self._case.members
        if not all(member.pod.requirements.preempts for member in members):
            self.result = NoVictims(NEVER)
            return
        yield from self._settle()
        for _ in range(_ROUNDS):
            found = yield from self._round()
            if isinstance(found, NoVictims):
                self.result = found
                return
            units, plan = found
            if _pods(units) > candidates.MOST_VICTIMS:
                self.result = NoVictims(TOO_MANY)
                return
            excess = yield from self._excess(units)
            if not excess:
                self.result = self._victims(units, plan)
                return
            self._refused |= excess
        self.result = NoVictims("disruption budgets or quotas do not allow as many evictions")

    # -- one round -------------------------------------------------------------------------

    def _round(self) -> Generator[None, None, tuple[Units, planner.Plan] | NoVictims]:
        asked = self._judge()
        self._free = tuple((yield from candidates.leaving(asked)))
        plan = yield from self._try(())
        units: Units = ()
        while isinstance(plan, planner.Refused):
            steps = yield from self._steps(asked, plan, units)
            if not steps or self._exhausted:
                return NoVictims(NOBODY if not units else f"{NOBODY}: {plan.told}")
            before = plan
            units, plan = yield from self._prefix(units, steps, plan)
            if isinstance(plan, planner.Refused) and plan.plugin == before.plugin:
                return NoVictims(
                    f"it would not help if all pods of lower priority left: {plan.told}"
                )
        nodes = {one.node for one in plan.placements}
        if _pods(unit for unit in units if unit.nodes & nodes) > 2 * candidates.MOST_VICTIMS:
            # So many can hardly be put back that it is worth trying.
            return NoVictims(TOO_MANY)
        return (yield from self._reprieved(units, plan))

    def _judge(self) -> candidates.Judge:
        pod = min(self._case.members, key=lambda one: one.pod.requirements.priority).pod
        terms = self._case.terms
        terms = dataclasses.replace(terms, refused=terms.refused | self._refused)
        return candidates.judge(
            self._plugins, views.PodInfo.of(pod), self._fork.view(), terms, self._case.now
        )

    def _steps(
        self, asked: candidates.Judge, refused: planner.Refused, units: Units
    ) -> Generator[None, None, list[Units]]:
        """Return who could leave for what a plug-in refuses, or whatever refuses most nodes."""
        if refused.plugin in self._plugins.cluster_selectors:
            selector = self._plugins.cluster_selectors[refused.plugin]
            groups: Mapping[Hashable, Mapping[str, views.Claim]] = self._index.groups(selector)
            found = yield from candidates.of_cluster(asked, groups, refused.plugin)
        else:
            found = yield from candidates.by_node(asked, self._fork, self._demand())
        gone = {unit.lead.id for unit in units}
        left = (tuple(unit for unit in step if unit.lead.id not in gone) for step in found)
        return [step for step in left if step]

    def _demand(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for member in self._case.members:
            for name, amount in member.pod.requirements.requests:
                found[name] = max(found.get(name, 0), amount)
        return found

    def _prefix(
        self, base: Units, steps: Sequence[Units], refused: planner.Refused
    ) -> Generator[None, None, tuple[Units, planner.Found]]:
        """Return the shortest beginning of the steps that helps, and the plan without these."""
        count, low = max(1, self._case.needed - refused.placed), 0
        while True:
            count = min(count, len(steps))
            units = _joined(base, steps[:count])
            plan = yield from self._try(units)
            if self._helps(plan, refused) or count == len(steps) or self._exhausted:
                break
            low, count = count, 2 * count
        best, high = (units, plan), count
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            if middle <= low or not self._helps(best[1], refused) or self._exhausted:
                break
            units = _joined(base, steps[:middle])
            plan = yield from self._try(units)
            if self._helps(plan, refused):
                best, high = (units, plan), middle
            else:
                low = middle
        return best

    @staticmethod
    def _helps(plan: planner.Found, before: planner.Refused) -> bool:
        if isinstance(plan, planner.Plan):
            return True
        # Another plug-in refuses it now: what this one lacks is there.
        return plan.plugin != before.plugin and plan.placed >= before.placed

    def _reprieved(
        self, units: Units, plan: planner.Plan
    ) -> Generator[None, None, tuple[Units, planner.Plan]]:
        """Put back every victim without which the gang still fits: the most important first."""
        nodes = {one.node for one in plan.placements}
        touching = tuple(unit for unit in units if unit.nodes & nodes)
        best, left = plan, sorted(units, key=lambda one: victims.importance(one.lead))
        if len(touching) < len(units):
            found = yield from self._try(touching)
            if isinstance(found, planner.Plan):
                best, left = found, sorted(touching, key=lambda one: victims.importance(one.lead))
        size = max(1, len(left) // 2)
        while left:
            place = 0
            while place < len(left) and not self._exhausted:
                fewer = [*left[:place], *left[place + size :]]
                found = yield from self._try(tuple(fewer))
                if isinstance(found, planner.Plan):
                    best, left = found, fewer
                else:
                    place += size
            if size == 1 or self._exhausted:
                break
            size //= 2
        return tuple(left), best

    # -- one try ---------------------------------------------------------------------------

    @property
    def _exhausted(self) -> bool:
        return self._tries >= MOST_TRIES or self._placed >= MOST_PLACEMENTS

    def _try(self, units: Iterable[candidates.Unit]) -> Generator[None, None, planner.Found]:
        """Plan the gang without some pods; afterwards the fork is as it was."""
        self._tries += 1
        self._placed += len(self._case.members)
        gone = {claim.id: claim for unit in units for claim in unit.claims}
        gone |= {claim.id: claim for claim in self._free}
        done: list[deltas.Delta] = []
        self._fork.followers.append(done.append)
        try:
            for number, claim in enumerate(gone.values()):
                self._fork.apply(deltas.ClaimDelta(claim.id, claim, None))
                if number % _TOGETHER == _TOGETHER - 1:
                    yield
            yield from self._settle()
            made = self._make(self._fork)
            yield from made.steps()
        finally:
            self._fork.followers.remove(done.append)
        while done:
            several = [done.pop() for _ in range(min(_TOGETHER, len(done)))]
            for delta in several:
                self._fork.apply(deltas.inverse(delta))
            yield
        yield from self._settle()
        assert made.result is not None
        return made.result

    def _settle(self) -> Iterator[None]:
        """Compute the figures of what has changed, some nodes at a time."""
        while self._fork.refresh(_TOGETHER):
            yield

    # -- the end ---------------------------------------------------------------------------

    def _excess(self, units: Units) -> Generator[None, None, frozenset[str]]:
        """Return the victims that must not leave after all others: budgets and guards count."""
        everyone = [claim for unit in units for claim in unit.claims]
        found = set(self._case.terms.budgets.violating(everyone))
        done: list[deltas.ClaimDelta] = []
        pod = self._judge().pod
        for claim in everyone:
            if victims.spared(self._plugins, pod, self._fork.view(), claim) is not None:
                found.add(claim.id)
            delta = deltas.ClaimDelta(claim.id, claim, None)
            self._fork.apply(delta)
            done.append(delta)
            yield
        for number, delta in enumerate(reversed(done)):
            self._fork.apply(deltas.inverse(delta))
            if number % _TOGETHER == _TOGETHER - 1:
                yield
        yield from self._settle()
        return frozenset(found)

    def _victims(self, units: Units, plan: planner.Plan) -> Victims:
        evicted = sorted((c for unit in units for c in unit.claims), key=victims.importance)
        nodes = {one.node for one in plan.placements}
        waited = tuple(claim for claim in self._free if claim.node in nodes)
        return Victims(plan.placements, victims.Found(tuple(evicted), waited))


def _pods(units: Iterable[candidates.Unit]) -> int:
    return sum(len(unit.claims) for unit in units)


def _joined(base: Units, steps: Sequence[Units]) -> Units:
    found = {unit.lead.id: unit for unit in base}
    found |= {unit.lead.id: unit for step in steps for unit in step}
    return tuple(found.values())


def of(made: Search) -> Victims | NoVictims:
    """Search in one go."""
    for _ in made.steps():
        pass
    assert made.result is not None
    return made.result
