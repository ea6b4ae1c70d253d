"""Interference as it leaves the agent: metrics, event, audit, NodeMetric, on a generated host."""

import dataclasses
from pathlib import Path

import pytest

from agent.decide.interference import findings
from agent.model import cgroup_layout, collect_policy, state
from agent.observe import interference
from agent.report import node_metric
from agent.report.events import interference_events
from agent.store import time_series
from api import names, resources
from api.koordinator.metrics import nodemetric
from kube.controllers import recorder
from process.runtime import metrics
from tests.agent import test_app

world = test_app.world
FILES = {
    "cpu": cgroup_layout.File.CPU_PRESSURE,
    "memory": cgroup_layout.File.MEMORY_PRESSURE,
    "io": cgroup_layout.File.IO_PRESSURE,
}
LAYER = {"pod_namespace": "default", "pod_name": "name-online", "container": ""}


def press(agent, percent):
    """Let the tasks of every pod wait for cpu."""
    layout = agent.ticks.layout
    groups = [layout.qos_group("Guaranteed"), *(pod.group for pod in agent.ticks.picture.pods)]
    for group in groups:
        for name, file in FILES.items():
            share = percent if name == "cpu" else 0.0
            with open(layout.path(file, group), "w") as written:  # noqa: PTH123
                written.write(f"some avg10={share:.2f} avg60=0.00 avg300=0.00 total=1\n")


async def looks(world, count):
    for _ in range(count):
        world.tree.advance(10)
        await world.clock.advance(10)
        await world.clock.settle()


@pytest.mark.timeout(20)
async def test_a_batch_pod_that_slows_an_online_one_down_is_named_everywhere(world, new_pod):
    world.add_pod(new_pod("online", "Burstable"), 1000)
    world.add_pod(new_pod("batch", "BestEffort"), 500)
    world.create(resources.NODE_METRICS, {"spec": {}})
    gates = {"PSICollector": True}
    async with world.agent(mode="observe", tick_seconds=10, feature_gates=gates) as agent:
        await world.until_ticking(lambda: agent.ticks.picture and agent.ticks.picture.pods)
        press(agent, 2.0)
        await looks(world, 70)
        assert agent.registry.value("koord_agent_interference_baselines") == 1
        press(agent, 45.0)
        world.tree.set_load("batch", 4500, 1 << 30)
        await looks(world, 12)
        figures = agent.registry
        assert figures.value("koord_agent_interfered_pods", {"resource": "cpu"}) == 1
        far = figures.value("koord_agent_interference_deviations", LAYER | {"signal": "cpu-some"})
        assert far == pytest.approx(17.2, abs=0.1)
        kinds = {"resource": "cpu", "confidence": "high"}
        assert figures.value("koord_agent_interferences_total", kinds) == 1

        def extension():
            pods = {pod.name: pod for pod in world.read().pods_metric}
            return pods["name-online"].plugin_data.get(names.INTERFERENCE)

        await world.until(extension)
        (entry,) = extension()
        assert (entry["signal"], entry["value"], entry["baseline"]) == ("cpu-some", 45.0, 2.0)
        (held,) = entry["suspects"]
        assert (held["namespace"], held["name"], held["qos"]) == ("default", "name-batch", "BE")
        assert held["rise"] == pytest.approx(4.0, abs=0.05)

        def told():
            found = world.plane.objects.list(resources.CORE_EVENTS).items
            return [one for one in found if one.get("reason") == "Interference"]

        await world.until(told)
        (event,) = told()
        assert event["involvedObject"]["name"] == "name-online"
        assert (
            "suspected with high confidence: default/name-batch (BE), which added 4"
            in (event["message"])
        )
        press(agent, 2.0)
        await looks(world, 14)
        assert figures.value("koord_agent_interfered_pods", {"resource": "cpu"}) == 0
        await world.until(lambda: not extension())


@pytest.mark.parametrize(
    ("gates", "there"),
    [({}, False), ({"PSICollector": True}, True), ({"CPICollector": True}, True),
     ({"PSICollector": True, "InterferenceDetection": False}, False)],
)  # fmt: skip
async def test_it_looks_only_where_a_signal_is_collected(world, gates, there):
    async with world.agent(mode="observe", feature_gates=gates) as agent:
        known = agent.registry.described()
        assert ("koord_agent_interferences_total" in known) is there


@dataclasses.dataclass
class Recorder:
    """Keeps what it is given."""

    told: list = dataclasses.field(default_factory=list)

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding, kind, reason, note))
        return True


def finding(number=0, confidence="high", signal="cpu-some", since=100.0, **more):
    held = findings.Suspect("batch", "spark-1", "BE", 2.5, 0.9)
    given = {"suspects": (held,), "value": 50.0, "usual": 2.0, "deviations": 20.0, **more}
    return findings.Finding(
        f"uid-{number}", "shop", f"web-{number}", "", "LS", signal=findings.Signal(signal),
        since=since, confidence=findings.Confidence(confidence), **given,
    )  # fmt: skip


@pytest.fixture
def events():
    posted, lines = Recorder(), []
    made = interference_events.InterferenceEvents(posted, lines.append)
    made.posted, made.lines = posted.told, lines
    return made


def test_one_event_for_each_pod_and_resource_while_it_lasts(events):
    for at in range(0, 3000, 10):
        events.look([finding(), finding(signal="io-some")], float(at))
    assert len(events.posted) == 2
    regarding, kind, reason, note = events.posted[0]
    assert regarding == recorder.Regarding("v1", "Pod", "web-0", "shop", "uid-0")
    assert (kind, reason) == ("Warning", "Interference")
    assert note.endswith("batch/spark-1 (BE), which added 2.50 cores")
    assert [line["property"] for line in events.lines] == ["cpu-some", "io-some"]


def test_flapping_is_silent_for_ten_minutes(events):
    for at in range(0, 6000, 60):
        events.look([finding(since=float(at))] if at % 120 else [], float(at))
    assert len(events.posted) == 1
    events.look([], 7000.0)
    events.look([finding(since=7000.0)], 7000.0)
    assert len(events.posted) == 2


def test_a_clock_that_is_set_back_silences_nothing(events):
    events.look([finding()], 9000.0)
    events.look([finding()], 100.0)
    assert len(events.posted) == 2


def test_what_has_no_suspect_is_no_event_and_a_flood_is_spread(events):
    events.look([finding(confidence="low", suspects=())], 0.0)
    assert events.posted == []
    many = [finding(number) for number in range(50)]
    events.look(many, 0.0)
    assert len(events.posted) == interference_events.MOST_REPORTED
    events.look(many, 10.0)
    events.look(many, 20.0)
    assert len(events.posted) == 50


def test_no_more_series_than_are_bounded(host):
    figures = metrics.Registry()
    made = interference.Interference(figures, None)
    made.found = tuple(finding(number) for number in range(400))
    made._show()
    assert figures.exposition()[0].count(b"koord_agent_interference_deviations{") == 100
    assert figures.value("koord_agent_interfered_pods", {"resource": "cpu"}) == 400
    made.close()
    assert figures.exposition()[0].count(b"koord_agent_interference_deviations{") == 0


def test_a_container_at_its_own_limit_is_read_from_its_cgroup(host):
    host.add("a", "Burstable", 500)
    pods = host.step().pods
    made = interference.Interference(metrics.Registry(), None)
    group = pods[0].containers[0].group
    layout = host.observer.layout
    path = layout.path(cgroup_layout.File.CPU_STAT, group)

    def look(periods, throttled):
        place = Path(path).resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = place.read_text().splitlines() if place.exists() else []
        kept = [line for line in lines if not line.startswith("nr_")]
        counts = [f"nr_periods {periods}", f"nr_throttled {throttled}", ""]
        place.write_text("\n".join([*kept, *counts]))
        return made._throttled(Sight(layout, host.observer._kept, pods))

    assert look(100, 10) == frozenset()
    assert look(200, 50) == {"a"}
    assert look(300, 52) == frozenset()
    assert look(10, 5) == frozenset()


@dataclasses.dataclass
class Sight:
    layout: cgroup_layout.Layout
    kept: object
    pods: tuple


def test_node_metric_carries_it_where_plug_ins_put_their_data(placed):
    samples = time_series.Histories()
    for key in (("node",), ("pod", "uid-0")):
        samples.add((*key, "cpu"), 100.0, 1.0, 300.0)
        samples.add((*key, "memory"), 100.0, 1.0, 300.0)
    picture = state.NodeState(at=1.7e9, pods=(placed("0"),))
    policy = collect_policy.Policy()
    found = (finding(), finding(7))
    raw = node_metric.status(
        node_metric.Reporting(samples, picture, policy, 100.0, interference=found)
    )
    read = nodemetric.read_node_metric({"metadata": {"name": "n"}, "status": raw})
    (entry,) = read.status.pods_metric[0].plugin_data[names.INTERFERENCE]
    assert entry["since"] == "1970-01-01T00:01:40Z"
    assert entry["suspects"][0] == {
        "namespace": "batch", "name": "spark-1", "qos": "BE", "rise": 2.5, "share": 0.9
    }  # fmt: skip
    raw = node_metric.status(node_metric.Reporting(samples, picture, policy, 100.0))
    assert "extensions" not in raw["podsMetric"][0]
    for at, share in ((90.0, 0.0), (100.0, 0.25)):
        samples.add(("pod", "uid-0", "throttled"), at, share, 300.0)
    raw = node_metric.status(node_metric.Reporting(samples, picture, policy, 100.0))
    assert raw["podsMetric"][0]["extensions"] == {"Object": {names.THROTTLED: 12.5}}
