"""The sums of a day: what counts, that it stays small, and that it survives on disk."""

import json
import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.model import edits, state
from agent.report import scorecard
from api.koordinator.metrics import nodemetric
from tests import draws

ABOUT = scorecard.About("cpu-burst", "default", "LS")
EVICT = scorecard.About("memory-evict", "batch", "BE")


def test_a_moment_belongs_to_its_day_of_utc():
    assert scorecard.date(1_700_006_399) == "2023-11-14"
    assert scorecard.date(1_700_006_400) == "2023-11-15"


@pytest.fixture
def day():
    made = scorecard.Day("2023-11-14")
    made.tick(scorecard.Second(1.0, over=True, bound=True, held_cores=1.5))
    made.tick(scorecard.Second(2.0, over=False))
    made.tick(scorecard.Second(4.0, over=None))
    made.count(ABOUT, scorecard.WRITTEN)
    made.count(ABOUT, scorecard.WRITTEN)
    made.count(ABOUT, scorecard.WOULD_WRITE)
    made.count(ABOUT, scorecard.FOREIGN)
    for _ in range(2):
        made.evict(EVICT, scorecard.WOULD_EVICT, "u1", online=False)
    made.evict(EVICT, scorecard.WOULD_EVICT, "u2", online=True)
    made.evict(EVICT, scorecard.EVICTED, "u1", online=False)
    made.evict(EVICT, "refused", "u3", online=False)
    return made


def test_the_summary_of_a_day(day):
    assert day.summary() == {
        "seconds": 7.0,
        "overSeconds": 1.0,
        "knownSeconds": 3.0,
        "heldSeconds": 1.0,
        "heldCoreSeconds": 1.5,
        "enforcedSeconds": 0.0,
        "enforcedHeldCoreSeconds": 0.0,
        "measuredPodSeconds": 0.0,
        "throttledPodSeconds": 0.0,
        "written": 2,
        "wouldWrite": 1,
        "conflicts": 0,
        "foreignWriters": 1,
        "evictedPods": 1,
        "evictedOnlinePods": 0,
        "wouldEvictPods": 2,
        "wouldEvictOnlinePods": 1,
    }


def test_the_rows_of_a_day(day):
    served = json.loads(json.dumps(day.as_json()))
    assert [row["strategy"] for row in served["rows"]] == ["cpu-burst", "memory-evict"]
    assert served["rows"][1] == {
        "strategy": "memory-evict",
        "namespace": "batch",
        "class": "BE",
        "outcomes": {"evicted": 1, "refused": 1, "would have evicted": 3},
    }


def test_a_node_metric_carries_a_few_numbers_of_the_day(day):
    held = {"bound": True, "held_cores": 2.0, "enforced": True, "measured": 3, "throttled": 0.5}
    day.tick(scorecard.Second(4.0, over=None, **held))
    told = day.as_status()
    assert told == {
        "date": "2023-11-14",
        "seconds": 11,
        "enforcedSeconds": 4,
        "knownSeconds": 3,
        "overSeconds": 1,
        "atLimitSeconds": 5,
        "suppressedCoreSeconds": 8,
        "wouldSuppressCoreSeconds": 2,
        "measuredPodSeconds": 12,
        "throttledPodSeconds": 2,
        "evictedPods": 1,
        "evictedOnlinePods": 0,
        "wouldEvictPods": 2,
        "wouldEvictOnlinePods": 1,
        "evictions": [{"strategy": "memory-evict", "evicted": 1, "wouldEvict": 3}],
    }
    read = nodemetric.read_node_metric({"status": {"scorecard": told}}).status.scorecard
    assert read.model_dump(by_alias=True) | {"evictions": told["evictions"]} == told


def test_what_a_node_metric_carries_stays_small():
    day = scorecard.Day("2023-11-14")
    for number in range(1000):
        about = scorecard.About(f"strategy-{number % 50}", f"namespace-{number}", "LS")
        day.evict(about, scorecard.EVICTED, f"uid-{number}", online=True)
    assert len(day.as_status()["evictions"]) == scorecard.MOST_STRATEGIES
    assert len(json.dumps(day.as_status())) < 4096


def test_a_day_of_an_earlier_release_goes_on(day):
    _, _, text = day.written().partition(b" ")
    body = json.loads(text)
    del body["figures"]["enforcedSeconds"]
    text = json.dumps(body).encode()
    again = scorecard.read(b"%08x %s\n" % (zlib.crc32(text), text))
    assert again.summary() == day.summary()


def test_of_an_online_pod_its_worst_container_counts_as_throttled(placed, node):
    shares = (0.1, 0.4, None)
    containers = tuple(
        state.ContainerState(f"c{number}", throttled=share) for number, share in enumerate(shares)
    )
    web = msgspec.structs.replace(placed(), containers=containers)
    batch = msgspec.structs.replace(placed(quality="BE"), containers=containers)
    silent = placed()
    picture = state.NodeState(at=0, node=node, pods=(web, batch, silent))
    found = scorecard.second(picture, None, 1.0, enforced=True)
    assert (found.measured, found.throttled, found.enforced) == (1, 0.4, True)


def test_a_day_is_read_as_it_was_written(day):
    again = scorecard.read(day.written())
    assert again.as_json() == day.as_json()
    again.evict(EVICT, scorecard.WOULD_EVICT, "u1", online=False)
    assert again.summary()["wouldEvictPods"] == 2


def test_a_day_stays_small():
    day = scorecard.Day("2023-11-14")
    for number in range(5000):
        about = scorecard.About("s", f"namespace-{number}", "LS")
        day.evict(about, scorecard.WOULD_EVICT, f"uid-{number}", online=True)
    assert len(day.counts) <= scorecard.MOST_ROWS + 1
    assert day.total(scorecard.WOULD_EVICT) == 5000
    assert day.summary()["wouldEvictPods"] == scorecard.MOST_PODS
    assert len(day.written()) < 64 * 1024


@settings(max_examples=draws.at_least(50))
@given(st.data())
def test_no_damage_is_taken_for_a_day(data):
    day = scorecard.Day("2023-11-14")
    day.count(ABOUT, scorecard.WRITTEN)
    whole = day.written()
    place = data.draw(st.integers(0, len(whole) - 2))
    cut = whole[:place]
    other = (
        whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 127))]) + whole[place + 1 :]
    )
    for broken in (cut, other):
        with pytest.raises(scorecard.ScoreError):
            scorecard.read(broken)


@pytest.mark.parametrize("body", [[], {}, {"version": 2}, {"version": 1, "date": "d"}])
def test_what_is_no_day_is_refused(body):
    text = json.dumps(body).encode()
    with pytest.raises(scorecard.ScoreError):
        scorecard.read(b"%08x %s\n" % (zlib.crc32(text), text))


@pytest.mark.parametrize(
    ("allowed", "used", "enforced", "expected"),
    [
        pytest.param(None, 3.0, False, (False, 0.0), id="nothing decided"),
        pytest.param(4.0, 3.0, False, (False, 0.0), id="below its limit"),
        pytest.param(2.0, 3.0, False, (True, 1.0), id="would be held back"),
        pytest.param(3.0, 2.9, True, (True, 3.1), id="held back from what it asks"),
        pytest.param(8.0, 7.9, True, (True, 0.0), id="has more than it asks"),
    ],
)
def test_what_best_effort_is_held_back(placed, node, allowed, used, enforced, expected):
    batch = placed(
        quality="BE",
        requests={"kubernetes.io/batch-cpu": "6000"},
        usage=state.Usage(cpu=used),
    )
    figures = {} if allowed is None else {"allowed-milli": allowed * 1000}
    picture = state.NodeState(
        at=0,
        node=node,
        pods=(batch,),
        thresholds=state.Thresholds(True, 65),
        usage=state.Usage(cpu=5.3),
    )
    suppress = edits.Decision("because", figures=figures)
    found = scorecard.second(picture, suppress, 1.0, enforced=enforced)
    assert (found.bound, pytest.approx(found.held_cores)) == expected
    assert found.over
    calm = msgspec.structs.replace(picture, usage=state.Usage(cpu=5.1))
    assert scorecard.second(calm, None, 1.0, enforced=enforced).over is False
    unknown = msgspec.structs.replace(picture, node=None)
    assert scorecard.second(unknown, None, 1.0, enforced=enforced).over is None
