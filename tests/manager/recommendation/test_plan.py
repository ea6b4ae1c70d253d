"""Which requests are recommended, to whom, and how sure that is."""

import itertools
import json
import random
from typing import ClassVar

import pytest

from api import resources
from api.koordinator.metrics import analysis
from api.kubernetes import meta
from api.wire import quantity
from manager.model import origins
from manager.recommendation import learned as recommended
from manager.recommendation import plan as recommendation
from manager.reconcile import actions

NOW = 1.75e9
MINUTE, DAY = 60.0, 86_400.0
GIB = 1 << 30
RULES = recommendation.Rules()
WORKLOAD = {
    "type": "workload",
    "workload": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
}


def raw(target=None, **status):
    return {
        "metadata": {"name": "r", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
        "spec": {"target": target or WORKLOAD},
        "status": status,
    }


def use(cpu=1.0, memory=GIB):
    return {"app": recommended.Use(cpu, memory)}


class Cluster:
    """A workload whose agents report, and a controller that keeps its recommendation."""

    def __init__(self, target=None, rules=RULES):
        self.object, self.rules, self.writes = raw(target), rules, 0

    def look(self, reports, now, matched=None):
        seen = recommendation.Seen(
            self.object, len(reports) if matched is None else matched, reports, now
        )
        wanted = recommendation.planned(seen, self.rules)
        for step in wanted.steps:
            if isinstance(step, actions.PatchStatus):
                assert (step.resource, step.name) == (resources.RECOMMENDATIONS, "r")
                assert (step.namespace, step.body["metadata"]["resourceVersion"]) == ("ns", "7")
                self.writes += 1
                # The status goes through the wire each time.
                news = json.loads(json.dumps(step.body["status"]))
                self.object = {**self.object, "status": {**self.object["status"], **news}}
        return wanted

    @property
    def status(self):
        return analysis.read_recommendation(self.object).status

    def answer(self, name="app", field="resources"):
        found = {c.container_name: c for c in self.status.pod_status.container_statuses}
        return quantity.amounts(getattr(found[name], field))

    def conditions(self):
        return {c.type: c.status for c in self.status.conditions}


def test_the_percentile_of_a_workload_with_known_peaks():
    rng, cluster = random.Random(3), Cluster()
    figures, peaks = [], {}
    for minute in range(2 * 1440):
        at, reports = NOW + 60 * minute, {}
        for pod in range(4):
            # A quiet day with an hour of high load, and a spike now and then.
            busy = 600 <= minute % 1440 < 840
            cpu = rng.uniform(1.4, 1.8) if busy else rng.uniform(0.2, 0.6)
            memory = (2 + pod / 4) * GIB * rng.uniform(0.3, 1.0)
            figures.append((at, cpu))
            day = (pod, int(at // DAY))
            peaks[day] = max(peaks.get(day, 0.0), memory)
            reports[f"web-{pod}"] = recommended.Report(at, use(cpu, memory))
        cluster.look(reports, at + 5)
    weighed = sorted((cpu, 2 ** ((at - NOW) / DAY)) for at, cpu in figures)
    total, sums = sum(w for _, w in weighed), itertools.accumulate(w for _, w in weighed)
    true = next(cpu for (cpu, _), below in zip(weighed, sums, strict=True) if below >= 0.9 * total)
    recent = sorted(peak for (_, day), peak in peaks.items())
    answer = cluster.answer()
    assert answer["cpu"] == pytest.approx(1000 * true, rel=0.1)
    assert recent[-4] * 0.9 <= answer["memory"] <= recent[-1] * 1.1
    assert cluster.conditions() == {
        "LowConfidence": "False",
        "NoObjectsMatched": "False",
        "FetchingHistory": "False",
        "ConfigUnsupported": "False",
        "Ready": "True",
    }
    lower, upper = cluster.answer(field="lower_bound"), cluster.answer(field="upper_bound")
    for name in ("cpu", "memory"):
        assert lower[name] <= upper[name]
    # Two days are known: the upper bound is half as much again, and a margin.
    assert upper["cpu"] == pytest.approx(1750 * 1.15 * 1.5, rel=0.1)


@pytest.mark.parametrize("cores", [0.02, 0.1, 1.0, 7.5, 60.0])
@pytest.mark.parametrize("size", [20 << 20, GIB, 100 * GIB])
def test_a_constant_use_is_recommended(cores, size):
    cluster = Cluster()
    for minute in range(30):
        at = NOW + 60 * minute
        cluster.look({"web-1": recommended.Report(at, use(cores, size))}, at)
    answer = cluster.answer()
    assert answer["cpu"] == pytest.approx(1000 * cores, rel=0.1)
    assert answer["memory"] == pytest.approx(size, rel=0.1)


def test_nothing_is_lost_by_a_restart():
    """Every cycle starts from the status alone, and counts each report once."""
    rng = random.Random(5)
    seldom, often = Cluster(), Cluster()
    for minute in range(300):
        at = NOW + 60 * minute
        reports = {
            f"web-{pod}": recommended.Report(at + pod, use(rng.random() * 3, rng.random() * GIB))
            for pod in range(3)
        }
        seldom.look(reports, at + 10)
        for _ in range(rng.randrange(1, 5)):
            often.look(reports, at + 10 + rng.random() * 40)
    assert seldom.answer() == often.answer()
    first, second = (
        recommended.read(c.object["status"]["checkpoint"], _target(c)) for c in (seldom, often)
    )
    assert first.containers["app"].written() == second.containers["app"].written()


def _target(cluster):
    return recommended.unpacked(cluster.object["status"]["checkpoint"])["target"]


def test_nothing_new_is_no_write():
    cluster = Cluster()
    reports = {"web-1": recommended.Report(NOW, use())}
    cluster.look(reports, NOW)
    writes = cluster.writes
    wanted = cluster.look(reports, NOW + 30)
    assert cluster.writes == writes == 1
    assert wanted.again_in == RULES.period_seconds
    assert "0 new figures" in wanted.message


def test_margins_and_floors():
    rules = recommendation.Rules(target_margin=0.15, least_cpu_milli=25, least_memory=250 << 20)
    cluster = Cluster(rules=rules)
    cluster.look({"w": recommended.Report(NOW, use(2.0, 1 << 20))}, NOW)
    assert cluster.answer()["cpu"] == pytest.approx(2300, rel=0.06)
    assert cluster.answer()["memory"] == 250 << 20


@pytest.mark.parametrize(
    ("matched", "reports", "expected"),
    [
        (0, {}, {"NoObjectsMatched": "True", "FetchingHistory": "False"}),
        (3, {}, {"NoObjectsMatched": "False", "FetchingHistory": "True"}),
        (1, {"a": recommended.Report(NOW, use())}, {"FetchingHistory": "False"}),
    ],
    ids=["no pods", "no figures", "figures"],
)
def test_conditions(matched, reports, expected):
    cluster = Cluster()
    cluster.look(reports, NOW, matched)
    found = cluster.conditions()
    assert found["LowConfidence"] == "True"
    assert found.items() >= expected.items()
    before = cluster.status.conditions
    cluster.look({}, NOW + 90, matched)
    assert [c.last_transition_time for c in cluster.status.conditions][:3] == [
        c.last_transition_time for c in before
    ][:3]


def test_what_is_known_stays_while_no_pod_runs():
    cluster = Cluster()
    cluster.look({"a": recommended.Report(NOW, use())}, NOW)
    known = cluster.answer()
    cluster.look({}, NOW + 3600, matched=0)
    assert cluster.answer() == known
    assert cluster.conditions()["NoObjectsMatched"] == "True"


@pytest.mark.parametrize(
    "target",
    [
        {"type": "workload"},
        {"type": "other", "workload": {"kind": "Deployment", "name": "web"}},
        {"type": "workload", "workload": {"kind": "", "name": "web"}},
        {
            "type": "podSelector",
            "podSelector": {
                "matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]
            },
        },
    ],
)
def test_a_target_that_cannot_be_understood_is_named(target):
    cluster = Cluster(target)
    wanted = cluster.look({"a": recommended.Report(NOW, use())}, NOW)
    assert wanted.again_in is None
    conditions = cluster.object["status"]["conditions"]
    assert [(c["type"], c["status"]) for c in conditions] == [
        ("ConfigUnsupported", "True"),
        ("Ready", "False"),
    ]
    assert conditions[0]["message"]
    cluster.look({}, NOW + 60)
    assert cluster.writes == 1


def test_another_target_begins_afresh():
    cluster = Cluster()
    cluster.look({"a": recommended.Report(NOW, use(8.0))}, NOW)
    other = {"type": "podSelector", "podSelector": {"matchLabels": {"app": "web"}}}
    cluster.object = {**cluster.object, "spec": {"target": other}}
    cluster.look({"a": recommended.Report(NOW + 60, use(1.0))}, NOW + 60)
    assert cluster.answer()["cpu"] < 1100


@pytest.mark.parametrize("text", ["x", "1:", "1:AAAA", "9:eJw=", "1:eJyrrgUAAXUA+Q=="])
def test_a_state_that_cannot_be_read_is_told_and_begun_afresh(text):
    cluster = Cluster()
    cluster.object["status"] = {"checkpoint": text}
    wanted = cluster.look({"a": recommended.Report(NOW, use())}, NOW)
    told = [step.reason for step in wanted.steps if isinstance(step, actions.Tell)]
    assert told == ["CheckpointUnreadable", "FiguresReported"]
    assert cluster.answer()["cpu"] >= 1000


OWNERS = {
    origins.Owner("apps/v1", "ReplicaSet", "web-abc"): origins.Owner(
        "apps/v1", "Deployment", "web"
    ),
    origins.Owner("batch/v1", "Job", "web-1"): origins.Owner("batch/v1", "CronJob", "web"),
    origins.Owner("x/v1", "Loop", "a"): origins.Owner("x/v1", "Loop", "a"),
}


@pytest.mark.parametrize(
    ("owner", "kind", "version", "expected"),
    [
        (("apps/v1", "ReplicaSet", "web-abc"), "Deployment", "apps/v1", True),
        (("apps/v1", "ReplicaSet", "web-abc"), "Deployment", "", True),
        (("apps/v1", "ReplicaSet", "web-abc"), "Deployment", "other/v1", False),
        (("apps/v1", "ReplicaSet", "web-abc"), "StatefulSet", "apps/v1", False),
        (("apps/v1", "ReplicaSet", "web-xyz"), "Deployment", "apps/v1", False),
        (("apps/v1", "StatefulSet", "web"), "StatefulSet", "apps/v1", True),
        (("batch/v1", "Job", "web-1"), "CronJob", "batch/v1", True),
        (("x/v1", "Loop", "a"), "Deployment", "apps/v1", False),
        (None, "Deployment", "apps/v1", False),
    ],
)
def test_pods_of_a_workload_are_found_by_their_owners(owner, kind, version, expected):
    origin = origins.Origin({}, origins.Owner(*owner) if owner else None, ("app",))
    named = {"kind": kind, "name": "web", "apiVersion": version}
    wanted = recommendation.target(raw({"type": "workload", "workload": named}))
    found = recommendation.chain(origin, OWNERS.get)
    assert recommendation.choice(wanted)(origin, found) is expected


def test_pods_are_found_by_their_labels():
    selector = {"matchLabels": {"app": "web"}}
    wanted = recommendation.target(raw({"type": "podSelector", "podSelector": selector}))
    for labels, expected in (({"app": "web", "x": "y"}, True), ({"app": "db"}, False)):
        origin = origins.Origin(labels, None, ())
        assert recommendation.choice(wanted)(origin, []) is expected


class Written(meta.LabelSelector):
    """A selector that counts how often it is read."""

    reads: ClassVar[list[None]] = []

    def model_dump(self, **how):
        self.reads.append(None)
        return super().model_dump(**how)


class Value(str):
    """The value of a label, which counts with how many others it is compared."""

    __slots__ = ("compared",)
    __hash__ = str.__hash__

    def __eq__(self, other):
        self.compared = getattr(self, "compared", 0) + 1
        return str.__eq__(self, other)


def test_a_selector_of_thousands_of_values_holds_no_reconcile_up():
    values = [f"value-{number:06}" for number in range(5000, 105_000)]
    expressions = [
        {"key": "app", "operator": "NotIn", "values": values[at : at + 1000]}
        for at in range(0, len(values), 1000)
    ]
    wanted = recommendation.target(
        raw({"type": "podSelector", "podSelector": {"matchExpressions": expressions}})
    )
    Written.reads.clear()
    written = Written(**wanted.pod_selector.model_dump())
    concerns = recommendation.choice(wanted.model_copy(update={"pod_selector": written}))
    pods = [Value(f"value-{at:06}") for at in range(4990, 5010)]
    assert [concerns(origins.Origin({"app": one}, None, ()), []) for one in pods] == [
        *[True] * 10, *[False] * 10,
    ]  # fmt: skip
    assert len(written.reads) == 1
    assert sum(getattr(one, "compared", 0) for one in pods) <= 2 * len(pods)
