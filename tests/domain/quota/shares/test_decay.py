"""What quotas have borrowed, with a half-life: counters, weights, and a day of two teams."""

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.quota import model
from domain.quota.shares import decay
from tests.domain.quota.forests import a_forest, a_pod, a_quota

HOUR, DAY = 3600.0, 86400.0
GPU = "nvidia.com/gpu"


amounts = st.integers(0, 10**6)


@given(amounts, amounts, st.floats(1, 1e6), st.floats(0, 1), st.floats(60, 1e6))
def test_two_steps_give_what_one_gives(before, borrows, seconds, part, half_life):
    start = decay.Counter({"cpu": float(before)}, 1e9)
    whole = decay.advanced(start, {"cpu": borrows}, 1e9 + seconds, half_life)
    first = decay.advanced(start, {"cpu": borrows}, 1e9 + seconds * part, half_life)
    both = decay.advanced(first, {"cpu": borrows}, 1e9 + seconds, half_life)
    one, other = (each.borrowed.get("cpu", 0.0) for each in (whole, both))
    assert math.isclose(one, other, rel_tol=1e-6, abs_tol=2.0)


def test_half_is_forgotten_in_a_half_life():
    counter = decay.advanced(decay.Counter({}, 0.0), {"cpu": 1000}, HOUR, 1e12)
    assert decay.whole(counter) == {"cpu": 3_600_000}
    assert decay.whole(decay.advanced(counter, {}, HOUR + DAY, DAY)) == {"cpu": 1_800_000}
    assert decay.advanced(counter, {"cpu": 5}, HOUR - 1, DAY) is counter
    gone = decay.advanced(counter, {}, HOUR + 60 * DAY, DAY)
    assert decay.whole(gone) == {}
    assert decay.period(DAY) == HOUR


def test_only_what_exceeds_the_minimum_is_borrowed():
    forest = a_forest(
        [a_quota("a", {"cpu": 5}, {"cpu": 9, GPU: 9})],
        [a_pod("1", "a", {"cpu": 8, GPU: 2}, assigned=True)],
        {"cpu": 9, GPU: 9},
    )
    assert decay.borrowed(forest.figures("a")) == {"cpu": 3, GPU: 2}


@pytest.mark.parametrize(
    ("written", "spent", "favored"),
    [
        pytest.param([3, 5], [0, 0], [3, 5], id="nobody borrowed"),
        pytest.param([3, 5], [30, 50], [3, 5], id="each by its weight"),
        pytest.param([1, 1], [0, 9], [64, 1], id="at most 64 to 1"),
        pytest.param([1, 1, 0], [9, 9, 0], [1, 1, 0], id="weight 0 stays out"),
        pytest.param([1, 1], [-(1 << 90), 1 << 90], [64, 1], id="hostile counters"),
    ],
)
def test_weights(written, spent, favored):
    counters = [decay.Counter({"cpu": each}, 7.0) for each in spent]
    found = decay.weights(written, counters, "cpu", DAY)
    assert found[-1] >= 0
    ratios = [each * favored[0] for each in found]
    assert [round(each / (found[0] or 1), 3) for each in ratios] == favored


def test_older_counters_have_decayed_since():
    counters = [decay.Counter({"cpu": 200}, 0.0), decay.Counter({"cpu": 100}, DAY)]
    assert decay.weights([1, 1], counters, "cpu", DAY) == [1, 1]
    assert decay.weights([1, 1], [None, counters[1]], "cpu", DAY)[0] > 1


class Day:
    """Two teams without a minimum that always have more to run than they get."""

    def __init__(self, rules, seed, *, late=0.0):
        self.random = random.Random(seed)
        self.half_life = rules.half_life
        self.late = late
        self.counters = {"a": decay.Counter({}, 0.0), "b": decay.Counter({}, 0.0)}
        self.hours = {"a": 0.0, "b": 0.0}
        self.running: dict[str, list[tuple[float, model.PodUse]]] = {"a": [], "b": []}
        self.forest = a_forest([a_quota(name, {}, {GPU: 64}) for name in "ab"], (), (), rules)
        self.waiting: dict[str, model.PodUse] = {}
        self.spare = 0

    def minute(self, now):
        """Let pods end, spare devices come and go, and each team start what it may."""
        if now % (2 * HOUR) == 0:
            self.has(self.random.choice((1, 3, 5, 7, 9)))
        for name in "ab":
            done = [pod for end, pod in self.running[name] if end <= now]
            self.running[name] = [one for one in self.running[name] if one[0] > now]
            for pod in done:
                self.forest = self.forest.with_pod(pod, None)
            if now >= (self.late if name == "b" else 0.0):
                self.wait(name, now)
        for name in self.random.sample("ab", 2):
            self.start(name, now)
        for name in "ab":
            self.hours[name] += self.forest.used(name)[GPU] / 60
        if self.half_life and now and now % decay.period(self.half_life) == 0:
            self.count(now)

    def has(self, spare):
        before, self.spare = self.spare, spare
        pairs = [((GPU, each),) if each else None for each in (before, spare)]
        self.forest = self.forest.with_node(*pairs)

    def wait(self, name, now):
        """Keep twenty devices asked for that the team does not have."""
        if name not in self.waiting:
            pod = a_pod(f"{name}-waits", name, {GPU: 20})
            self.waiting[name] = pod
            self.forest = self.forest.with_pod(None, pod)

    def start(self, name, now):
        while name in self.waiting:
            free = self.spare - sum(self.forest.used(each)[GPU] for each in "ab")
            pod = a_pod(f"{name}-{now}-{free}", name, {GPU: 1}, assigned=True)
            if free < 1 or self.forest.shortage(name, pod.requests, preemptible=True) is not None:
                return
            self.forest = self.forest.with_pod(None, pod)
            end = now + 60.0 * self.random.randint(5, 60)
            self.running[name].append((end, pod))

    def count(self, now):
        for name in "ab":
            borrows = decay.borrowed(self.forest.figures(name))
            self.counters[name] = decay.advanced(self.counters[name], borrows, now, self.half_life)
            before = self.forest.quota(name)
            after = msgspec.structs.replace(
                before, borrowed=decay.whole(self.counters[name]), borrowed_at=now
            )
            self.forest = self.forest.with_quota(before, after)


def lead(seed, half_life, late=0.0):
    """Return by how much of all device hours team a is ahead of team b after a day."""
    day = Day(model.Rules(half_life=half_life), seed, late=late)
    for minute in range(24 * 60):
        day.minute(minute * 60.0)
    together = sum(day.hours.values())
    assert together > 24, day.hours
    return (day.hours["a"] - day.hours["b"]) / together


@pytest.mark.parametrize("seed", range(3))
def test_equal_teams_get_equal_hours_over_a_day(seed):
    """Without a half-life the first by name has one more of an odd number all day long."""
    assert lead(seed, 0.0) > 0.1
    assert abs(lead(seed, DAY)) < 0.04


def test_a_borrower_that_comes_late_catches_up():
    assert lead(1, 0.0, late=4 * HOUR) > 0.15
    assert abs(lead(1, DAY, late=4 * HOUR)) < 0.05
