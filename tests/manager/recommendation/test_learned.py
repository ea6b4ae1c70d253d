"""What was learned stays small, and survives being written down."""

import base64
import json
import math
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.recommendation import learned as recommended

NOW = 1.75e9 // 86_400 * 86_400
GIB = 1 << 30


def report(at, cpu=1.0, memory=GIB, name="app"):
    return recommended.Report(at, {name: recommended.Use(cpu, memory)})


def through(learned):
    return recommended.read(learned.written(), learned.target)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(0, 400_000), st.floats(0, 100), st.floats(0, 1e12)),
        max_size=40,
    )
)
def test_writing_it_down_changes_nothing(figures):
    straight = recommended.Learned("t")
    written = recommended.Learned("t")
    for pod, late, cpu, memory in figures:
        reports = {f"pod-{pod}": report(NOW + late, cpu, memory)}
        straight.learn(reports, NOW + late)
        written.learn(reports, NOW + late)
        written = through(written)
    assert {n: c.written() for n, c in written.containers.items()} == {
        n: c.written() for n, c in straight.containers.items()
    }
    assert written.pods == straight.pods


def test_a_report_counts_once():
    learned = recommended.Learned("t")
    reports = {"a": report(NOW)}
    assert learned.learn(reports, NOW) == 1
    assert learned.learn(reports, NOW + 30) == 0
    assert through(learned).learn(reports, NOW + 60) == 0
    assert learned.learn({"a": report(NOW + 60)}, NOW + 60) == 1
    assert learned.containers["app"].count == 2


def test_memory_counts_the_peak_of_each_pod_and_day():
    learned = recommended.Learned("t")
    for hour, size in enumerate([1, 5, 2, 3]):
        learned.learn({"a": report(NOW + 3600 * hour, memory=size * GIB)}, NOW + 3600 * hour)
    memory = learned.containers["app"].memory
    assert memory.percentile(0.01) == pytest.approx(5 * GIB, rel=0.06)
    learned.learn({"a": report(NOW + 90_000, memory=GIB)}, NOW + 90_000)
    assert memory.percentile(0.01) == pytest.approx(GIB, rel=0.06)
    assert memory.percentile(0.9) == pytest.approx(5 * GIB, rel=0.06)


def test_a_node_whose_clock_is_ahead_spoils_nothing():
    learned = recommended.Learned("t")
    for minute in range(60):
        at = NOW + 60 * minute
        learned.learn({"a": report(at + 10 * 365 * 86_400, cpu=9.0), "b": report(at)}, at)
    assert learned.containers["app"].last <= NOW + 3600
    assert learned.containers["app"].cpu.percentile(0.45) < 1.1


def test_the_confidence_grows_with_time_and_figures():
    learned = recommended.Learned("t")
    learned.learn({"a": report(NOW)}, NOW)
    assert learned.containers["app"].days == 0.0
    learned.learn({"a": report(NOW + 86_400)}, NOW + 86_400)
    # Two figures in a day are as good as two minutes.
    assert learned.containers["app"].days == pytest.approx(2 / 1440)


def test_containers_that_went_are_forgotten():
    learned = recommended.Learned("t")
    learned.learn({"a": report(NOW, name="old")}, NOW)
    learned.learn({"a": report(NOW + 9 * 86_400)}, NOW + 9 * 86_400)
    assert list(learned.containers) == ["app"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_what_is_no_use_is_not_learned(bad):
    learned = recommended.Learned("t")
    assert learned.learn({"a": report(NOW, cpu=bad), "b": report(NOW, memory=bad)}, NOW) == 0
    assert learned.containers == {}


def test_it_stays_small_whatever_the_workload_does():
    learned = recommended.Learned("t")
    for hour in range(0, 72, 24):
        at, reports = NOW + 3600 * hour, {}
        for pod in range(400):
            containers = {
                f"container-{number}": recommended.Use(
                    0.001 * 1.06 ** ((pod * 7 + number + hour) % 230),
                    1e6 * 1.06 ** ((pod * 3 + number + hour) % 230),
                )
                for number in range(40)
            }
            reports[f"some-rather-long-name-of-a-pod-{pod}"] = recommended.Report(at, containers)
        learned.learn(reports, at)
    assert len(learned.pods) == recommended.MOST_PODS
    assert len(learned.containers) == recommended.MOST_CONTAINERS
    assert len(learned.written()) < 700_000
    assert through(learned).written() == learned.written()


def test_of_many_pods_the_same_ones_are_followed():
    learned = recommended.Learned("t")
    for minute in range(3):
        at = NOW + 60 * minute
        learned.learn({f"pod-{number}": report(at) for number in range(1000)}, at)
        learned = through(learned)
    assert learned.containers["app"].count == 3 * recommended.MOST_PODS


def packed(body):
    return f"1:{base64.b64encode(zlib.compress(json.dumps(body).encode())).decode()}"


WHOLE = {"target": "t", "containers": {}, "pods": {}}


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "2:abc",
        "1:###",
        "1:AAAA",
        packed([]),
        packed({}),
        packed({**WHOLE, "containers": {"app": [1]}}),
        packed({**WHOLE, "containers": {"app": [1, 2, 3, [0, 1, [999], [1]], [0, 0, [], []]]}}),
        packed({**WHOLE, "containers": {"app": [1, 2, 3, [0, 1, [1, 2], [1]], [0, 0, [], []]]}}),
        packed({**WHOLE, "pods": {"a": 1}}),
        packed({**WHOLE, "pods": {"a": [1, 1, {"app": "x"}]}}),
        packed({**WHOLE, "pods": {"a": [1, 1, {"app": math.inf}]}}),
        packed({**WHOLE, "pods": {"a": [1, math.inf, {}]}}),
        packed({**WHOLE, "pods": {"a": [10**400, 1, {}]}}),
        packed({**WHOLE, "containers": {"app": [1, 2, math.inf, [0, 0, [], []], [0, 0, [], []]]}}),
        packed({**WHOLE, "containers": {"app": [math.nan, 2, 3, [0, 0, [], []], [0, 0, [], []]]}}),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(text):
    with pytest.raises(recommended.StateError):
        recommended.read(text, "t")


def test_a_state_that_unpacks_to_too_much_is_refused():
    bomb = base64.b64encode(zlib.compress(b" " * (recommended.MOST_BYTES + 1))).decode()
    with pytest.raises(recommended.StateError, match="longer than"):
        recommended.read(f"1:{bomb}", "t")


def test_nothing_and_another_target_begin_afresh():
    learned = recommended.Learned("t")
    learned.learn({"a": report(NOW)}, NOW)
    assert recommended.read("", "t").containers == {}
    assert recommended.read(learned.written(), "other").containers == {}
