"""The store keeps the newest truth whatever order it is told in."""

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.informers import store
from tests import draws


@dataclasses.dataclass(frozen=True)
class Told:
    """One event of a history."""

    key: str
    uid: str
    version: int
    value: str | None
    deleted: bool = False


def tell(target: store.Store[str], event: Told) -> bool:
    if event.deleted:
        return target.remove(event.key, event.version)
    return target.put(store.Meta(event.key, event.uid, event.version), event.value)


class Mirror:
    """Follows changes alone, as whoever derives figures from a store does."""

    def __init__(self, followed: store.Store[str]) -> None:
        self.values: dict[str, str] = {}
        self.changes: list[store.Change[str]] = []
        followed.listen(self._follow)

    def _follow(self, change: store.Change[str]) -> None:
        assert change.old != change.new
        assert self.values.get(change.key) == change.old, "a change must start from what was told"
        if change.new is None:
            del self.values[change.key]
        else:
            self.values[change.key] = change.new
        self.changes.append(change)


@pytest.fixture
def target() -> store.Store[str]:
    return store.Store()


@pytest.fixture
def mirror(target: store.Store[str]) -> Mirror:
    return Mirror(target)


A1 = Told("a", "u1", 5, "one")
A2 = Told("a", "u1", 7, "two")
GONE = Told("a", "u1", 9, None, deleted=True)
AGAIN = Told("a", "u2", 11, "three")


@pytest.mark.parametrize(
    ("events", "expected", "changes"),
    [
        pytest.param([A1], {"a": "one"}, 1, id="added"),
        pytest.param([A1, A1], {"a": "one"}, 1, id="duplicate emits nothing"),
        pytest.param([A1, A2], {"a": "two"}, 2, id="modified"),
        pytest.param([A2, A1], {"a": "two"}, 1, id="stale event is ignored"),
        pytest.param([A1, GONE], {}, 2, id="deleted"),
        pytest.param([A1, GONE, A2], {}, 2, id="late modification after the deletion"),
        pytest.param([A1, GONE, GONE], {}, 2, id="deleted twice"),
        pytest.param([GONE, A1], {}, 0, id="deletion first"),
        pytest.param([A2, AGAIN], {"a": "three"}, 3, id="name reused: delete, then add"),
        pytest.param([A2, AGAIN, GONE], {"a": "three"}, 3, id="deletion of the first one late"),
        pytest.param(
            [A1, Told("a", "u1", 6, "one"), Told("a", "u1", 6, "two")],
            {"a": "one"},
            1,
            id="equal projection is no change but its version counts",
        ),
        pytest.param([A1, Told("a", "u1", 8, None)], {}, 2, id="no longer of interest"),
        pytest.param([Told("a", "u1", 8, None), A2], {}, 0, id="older state of uninteresting"),
        pytest.param([A1, Told("a", "u1", 0, "x")], {"a": "x"}, 2, id="unknown version counts"),
        pytest.param(
            [A2, Told("a", "u1", 7, None, deleted=True)],
            {},
            2,
            id="deletion at the version of the last state",
        ),
    ],
)
def test_events(
    target: store.Store[str],
    mirror: Mirror,
    events: list[Told],
    expected: dict[str, str],
    changes: int,
) -> None:
    for event in events:
        tell(target, event)
    assert dict(target.items()) == expected == mirror.values
    assert len(mirror.changes) == changes


def listed(target: store.Store[str], version: int, *objects: Told) -> int:
    for told in objects:
        target.accept(store.Meta(told.key, told.uid, told.version), told.value)
    return target.finish({told.key for told in objects}, version)


def test_list_emits_the_deletions_of_the_gap(target: store.Store[str], mirror: Mirror) -> None:
    other = Told("b", "u9", 4, "stays")
    listed(target, 8, A2, other)
    assert target.synced
    assert listed(target, 20, other) == 1
    assert mirror.values == {"b": "stays"}
    assert mirror.changes[-1] == store.Change("a", "two", None)
    # Whatever is older than the list is old news, even for a name that is not there.
    assert not tell(target, A2)
    assert target.version == 20


def test_a_list_may_be_ended_in_parts(target: store.Store[str], mirror: Mirror) -> None:
    listed(target, 8, *(Told(key, f"u-{key}", 3, key) for key in "abcde"))
    target.accept(store.Meta("f", "u-f", 9), "f")
    parts = []
    for part in target.absent({"b", "f"}, 2):
        parts.append(part)
        for key in part:
            target.forget(key, 20)
    target.finished(20)
    assert parts == [["a"], ["c", "d"], ["e"]]
    assert mirror.values == {"b": "b", "f": "f"}
    assert (target.version, target.synced) == (20, True)


def test_list_of_a_restored_cluster_counts_although_its_versions_are_lower(
    target: store.Store[str], mirror: Mirror
) -> None:
    listed(target, 900, Told("a", "u1", 800, "before"), Told("b", "u2", 850, "lost"))
    listed(target, 40, Told("a", "u1", 30, "restored"))
    assert mirror.values == {"a": "restored"}
    assert tell(target, Told("a", "u1", 41, "after"))
    assert mirror.values == {"a": "after"}


def test_list_notices_a_reused_name(target: store.Store[str], mirror: Mirror) -> None:
    listed(target, 8, A2)
    listed(target, 20, AGAIN)
    assert [change.new for change in mirror.changes] == ["two", None, "three"]


def test_bookmark_forgets_what_cannot_come_any_more(target: store.Store[str]) -> None:
    tell(target, A1)
    tell(target, GONE)
    target.bookmark(10)
    assert not tell(target, A2)
    assert tell(target, AGAIN)
    target.bookmark(3)
    assert target.version == 11


def test_deletions_are_remembered_within_bounds(target: store.Store[str]) -> None:
    for number in range(70_000):
        target.remove(f"k{number}", number + 1)
    assert not target.put(store.Meta("k69999", "u", 5), "late")
    assert len(target._tombstones) <= 65_536


def test_late_listener_is_told_what_is_there(target: store.Store[str]) -> None:
    tell(target, A1)
    mirror = Mirror(target)
    assert mirror.values == {"a": "one"}
    changes: list[store.Change[str]] = []
    stop = target.listen(changes.append)
    stop()
    tell(target, A2)
    assert len(changes) == 1
    assert mirror.values == {"a": "two"}


def test_a_failing_listener_costs_its_object_alone(
    target: store.Store[str], mirror: Mirror
) -> None:
    """The others hear of everything, and everybody has the same objects."""
    known: dict[str, str | None] = {}

    def follow(change: store.Change[str]) -> None:
        if change.new == "poison":
            raise OverflowError("more than I can count")
        known[change.key] = change.new

    faults: list[str] = []
    target.faults = lambda key, error: faults.append(f"{key}: {error}")
    target.listen(follow)
    late: dict[str, str] = {}
    target.listen(lambda change: late.update({change.key: str(change.new)}))
    target.put(store.Meta("a", "u", 1), "good")
    target.put(store.Meta("b", "u", 2), "poison")
    target.put(store.Meta("a", "u", 3), "poison")
    assert faults == ["b: more than I can count", "a: more than I can count"]
    assert dict(target.items()) == mirror.values == {}
    target.put(store.Meta("b", "u", 4), "good")
    assert dict(target.items()) == mirror.values == {"b": "good"}
    assert known == {"a": None, "b": "good"}
    assert late == {"a": "None", "b": "good"}


def test_a_listener_that_fails_on_what_is_there_hears_of_the_rest(
    target: store.Store[str],
) -> None:
    for number, value in enumerate(("good", "poison", "fine"), start=1):
        target.put(store.Meta(value, "u", number), value)
    heard: list[str] = []

    def follow(change: store.Change[str]) -> None:
        if change.key == "poison":
            raise LookupError(change.key)
        heard.append(change.key)

    faults: list[str] = []
    target.faults = lambda key, _: faults.append(key)
    target.listen(follow)
    assert (heard, faults) == (["good", "fine"], ["poison"])


def test_without_anybody_to_tell_a_failure_is_raised(target: store.Store[str]) -> None:
    target.listen(lambda _: {}["missing"])
    with pytest.raises(KeyError):
        target.put(store.Meta("a", "u", 1), "x")


def test_reading(target: store.Store[str]) -> None:
    tell(target, A1)
    assert ("a" in target, "b" in target, len(target)) == (True, False, 1)
    assert (list(target), list(target.keys()), target.get("b")) == (["one"], ["a"], None)
    assert not target.synced


def test_index_follows(target: store.Store[str]) -> None:
    index = store.Index(target, lambda value: value.split())
    tell(target, Told("a", "u", 1, "red round"))
    tell(target, Told("b", "v", 2, "red"))
    assert index.keys("red") == {"a", "b"}
    tell(target, Told("a", "u", 3, "blue round"))
    assert [set(index.keys(word)) for word in ("red", "blue", "round")] == [{"b"}, {"a"}, {"a"}]
    tell(target, Told("a", "u", 4, None, deleted=True))
    assert index.keys("round") == frozenset()


def history(rng: random.Random, keys: int = 4, length: int = 24) -> list[Told]:
    """Make what an API server could have gone through, each version once."""
    living: dict[str, str] = {}
    told: list[Told] = []
    for version in range(1, length + 1):
        key = f"k{rng.randrange(keys)}"
        if key in living and rng.random() < 0.3:
            told.append(Told(key, living.pop(key), version, None, deleted=True))
            continue
        uid = living.setdefault(key, f"u{version}")
        told.append(Told(key, uid, version, rng.choice([None, "x", "y", "z"])))
    return told


def truth(events: list[Told]) -> dict[str, str]:
    values: dict[str, str] = {}
    for event in events:
        values.pop(event.key, None)
        if event.value is not None:
            values[event.key] = event.value
    return values


def _snapshot(events: list[Told]) -> list[Told]:
    living: dict[str, Told] = {}
    for event in events:
        living.pop(event.key, None)
        if not event.deleted:
            living[event.key] = event
    return list(living.values())


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_stale_duplicate_and_reordered_events_ends_in_the_truth(seed: int) -> None:
    """10,000 interleavings in all: every event arrives at least once, in any order."""
    rng = random.Random(seed)
    for _ in range(1_250):
        events = history(rng)
        arrived = events + rng.choices(events, k=rng.randrange(len(events)))
        rng.shuffle(arrived)
        target: store.Store[str] = store.Store()
        mirror = Mirror(target)
        for event in arrived:
            tell(target, event)
        assert dict(target.items()) == mirror.values == truth(events)


@given(st.integers(0, 2**32), st.data())
@settings(max_examples=draws.at_least(300), deadline=None)
def test_lists_bookmarks_and_lost_events_in_between_end_in_the_truth(
    seed: int, data: st.DataObject
) -> None:
    """A watch may lose anything before a list, and replay anything after it."""
    rng = random.Random(seed)
    events = history(rng, length=30)
    target: store.Store[str] = store.Store()
    mirror = Mirror(target)
    at = 0
    while at < len(events):
        if data.draw(st.booleans(), label="gap"):
            # Some of what happens is lost, then everything is listed again.
            until = data.draw(st.integers(at, len(events)), label="until")
            for event in events[at:until]:
                if rng.random() < 0.5:
                    tell(target, event)
            at = until
            listed(target, at, *_snapshot(events[:at]))
        else:
            step = data.draw(st.integers(1, 6), label="step")
            window = events[at : at + step] + rng.choices(events[: at + step], k=3)
            rng.shuffle(window)
            for event in window:
                tell(target, event)
            at = min(at + step, len(events))
            if data.draw(st.booleans(), label="bookmark"):
                target.bookmark(at)
        assert dict(target.items()) == mirror.values == truth(events[:at])
