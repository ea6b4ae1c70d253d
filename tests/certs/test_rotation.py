"""Over years of virtual time nobody ever meets a certificate that their bundle does not trust."""

import dataclasses
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from certs import rotation
from tests.certs import years

DAY = 24 * 3600.0
SLACK = 3600.0
NAMES = ("webhook", "extender")


@dataclasses.dataclass
class World:
    """The cluster as clients see it: what was published and served, and until when."""

    policy: rotation.Policy
    now: float = 1_000_000_000.0
    state: rotation.State = dataclasses.field(default_factory=rotation.State)
    ids: Iterator[int] = dataclasses.field(default_factory=itertools.count)
    # Each view with the instant at which a newer one took its place.
    bundles: list[tuple[float, frozenset[str]]] = dataclasses.field(default_factory=list)
    served: list[tuple[float, rotation.Leaf]] = dataclasses.field(default_factory=list)
    lives: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    publications: int = 0

    def look(self) -> None:
        """Do everything that is due, as a shell would, and note what changed for clients."""
        for _ in range(100):
            step = rotation.plan(self.state, NAMES, self.now, self.policy)
            if step is None:
                return
            before = self.state
            self.do(step)
            if before.authorities:
                old = frozenset(one.id for one in before.authorities)
                if old != frozenset(one.id for one in self.state.authorities):
                    self.bundles.append((self.now, old))
            for leaf in before.leaves:
                if leaf not in self.state.leaves:
                    self.served.append((self.now, leaf))
        raise AssertionError(f"the plan never comes to rest: {step}")

    def do(self, step: rotation.Step) -> None:
        begins = self.now - SLACK
        match step:
            case rotation.Publish():
                self.publications += 1
                name = f"a{next(self.ids)}"
                ends = self.now + self.policy.authority_seconds
                self.lives[name] = (begins, ends)
                authority = rotation.Authority(name, begins, ends, self.now)
                self.state = rotation.published(self.state, authority)
            case rotation.Sign(name, authority_id):
                ends = min(self.now + self.policy.leaf_seconds, self.lives[authority_id][1])
                leaf = rotation.Leaf(name, authority_id, begins, ends)
                self.state = rotation.signed(self.state, leaf)
            case rotation.Withdraw(authority_id):
                self.state = rotation.withdrawn(self.state, authority_id)

    def check(self) -> None:
        """Every leaf that may be served is trusted through every bundle that may be held."""
        since = self.now - self.policy.overlap_seconds
        bundles = [held for until, held in self.bundles if until > since]
        bundles.append(frozenset(one.id for one in self.state.authorities))
        leaves = [leaf for until, leaf in self.served if until > since]
        assert {leaf.name for leaf in self.state.leaves} == set(NAMES)
        for leaf in (*leaves, *self.state.leaves):
            assert leaf.begins <= self.now < leaf.ends, f"{leaf} is served but not valid"
            begins, ends = self.lives[leaf.authority]
            assert begins <= self.now < ends, f"{leaf} is served but its authority is not valid"
            for bundle in bundles:
                assert leaf.authority in bundle, f"{leaf} meets a client that holds {set(bundle)}"

    def forget(self) -> None:
        """Drop views that nobody can hold any more."""
        since = self.now - self.policy.overlap_seconds
        self.bundles = [entry for entry in self.bundles if entry[0] > since]
        self.served = [entry for entry in self.served if entry[0] > since]


def policies() -> st.SearchStrategy[rotation.Policy]:
    return st.builds(
        lambda leaf, overlap, factor: rotation.Policy(
            authority_seconds=6 * (leaf + leaf * overlap) * factor,
            leaf_seconds=leaf,
            overlap_seconds=leaf * overlap,
        ),
        leaf=st.floats(2 * DAY, 400 * DAY),
        overlap=st.floats(0.01, 0.249),
        factor=st.floats(1.001, 4.0),
    )


@given(policies(), st.lists(st.floats(0, 1), min_size=1, max_size=8))
@example(rotation.Policy(), [0.0])
def test_every_served_leaf_is_trusted_by_every_bundle_in_use(
    policy: rotation.Policy, delays: list[float]
) -> None:
    world = World(policy)
    world.look()
    end = world.now + 3 * policy.authority_seconds
    cut = itertools.cycle(delays)
    while world.now < end:
        # The shell may be late, by up to what the margins allow for.
        late = next(cut) * policy.leaf_seconds / 12.1
        due = years.next_look(world.state, NAMES, world.now, policy)
        assert due > world.now
        world.now = due - 0.5
        world.check()
        world.now = due + late
        world.check()
        world.look()
        world.check()
        world.forget()
        assert len(world.state.authorities) <= 3
    assert world.publications >= 3


@given(policies(), st.floats(0.0, 4.0))
def test_after_any_outage_one_look_serves_valid_leaves_again(
    policy: rotation.Policy, outage: float
) -> None:
    world = World(policy)
    world.look()
    world.now += outage * policy.authority_seconds
    world.look()
    for leaf in world.state.leaves:
        assert leaf.ends > world.now
        assert leaf.authority in {one.id for one in world.state.authorities}
        assert world.lives[leaf.authority][1] > world.now


def test_nothing_is_signed_by_an_authority_before_the_overlap_is_over() -> None:
    policy = rotation.Policy()
    world = World(policy)
    world.look()
    world.now += policy.authority_seconds * 2 / 3
    world.look()
    first, second = world.state.authorities
    assert {leaf.authority for leaf in world.state.leaves} == {first.id}
    world.now += policy.overlap_seconds - 1
    world.look()
    assert {leaf.authority for leaf in world.state.leaves} == {first.id}
    world.now += policy.leaf_seconds
    world.look()
    assert {leaf.authority for leaf in world.state.leaves} == {second.id}
    assert [one.id for one in world.state.authorities] == [first.id, second.id]
    world.now = first.ends + policy.overlap_seconds
    world.look()
    assert first.id not in {one.id for one in world.state.authorities}


@pytest.mark.parametrize(
    ("begins", "ends", "now", "expected"),
    [
        pytest.param(0.0, 90.0, 59.9, False, id="just before two thirds"),
        pytest.param(0.0, 90.0, 60.0, True, id="at two thirds"),
        pytest.param(0.0, 90.0, 900.0, True, id="long over"),
        pytest.param(100.0, 190.0, 50.0, False, id="not begun"),
    ],
)
def test_due_at_two_thirds_of_life(begins: float, ends: float, now: float, expected: bool) -> None:
    assert rotation.due(begins, ends, now) is expected


def test_clock_that_went_back_gets_a_leaf_that_is_valid_now() -> None:
    world = World(rotation.Policy())
    world.look()
    world.now -= 2 * DAY
    step = rotation.plan(world.state, NAMES, world.now, world.policy)
    assert isinstance(step, rotation.Sign)
    assert "clock went back" in step.reason


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param(
            {"authority_seconds": 200 * DAY, "leaf_seconds": 90 * DAY},
            "six times",
            id="authority",
        ),
        pytest.param({"leaf_seconds": 2 * DAY, "overlap_seconds": DAY}, "a quarter", id="overlap"),
    ],
)
def test_policy_without_room_for_an_overlap_is_refused(
    policy: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rotation.Policy(**policy)
