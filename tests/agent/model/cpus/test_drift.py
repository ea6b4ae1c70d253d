"""Drift of cpusets: who uses exclusive CPUs of a pod without having been given them."""

import dataclasses
import json

import msgspec
import pytest

from agent.decide import planner
from agent.loop import ticks
from agent.model import slo_settings
from agent.model.cpus import drift, kubelet_cpu_manager
from agent.observe.cgroups import effective_cpusets
from agent.report.events import drift_events
from api import names
from domain.cluster_settings import node_slo
from domain.cpus import cpulists
from process.runtime import clock as clocks
from process.runtime import metrics

KEY = names.ANNOTATION_RESOURCE_STATUS
GATES = frozenset({"BECPUSuppress", "CPUSetAllocator"})
NONE = kubelet_cpu_manager.Configuration("none", topology="None")
STATIC = kubelet_cpu_manager.Configuration("static", reserved="0")


@dataclasses.dataclass
class Recorder:
    """Keeps what it is given."""

    told: list = dataclasses.field(default_factory=list)

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.name, kind, reason, note))
        return True


class World:
    """A host of eight cpus whose agent ticks once per second; `bound` has cpus 2 and 3."""

    def __init__(self, host, folder, new_pod, mode=planner.Mode.ENFORCE):
        self.host, self.clock, self.new_pod = host, clocks.ManualClock(), new_pod
        complete = node_slo.of_spec({})
        host.know(
            thresholds=slo_settings.thresholds(complete), enforced=slo_settings.read(complete)
        )
        # Any cpuset may be the work of a kubelet whose policy is not known.
        host.know(kubelet=kubelet_cpu_manager.Told(NONE))
        habits = ticks.Habits(folder, writing=True, gates=GATES, default=mode)
        figures = ticks.Figures(metrics.Registry())
        self.loop = ticks.Ticks(host.observer, lambda: host.known, self.clock, figures, habits)
        self.recorder, self.lines, self.figures = Recorder(), [], metrics.Registry()
        self.drift = drift_events.DriftEvents(self.recorder, self.lines.append, self.figures)
        self.add("bound", "Guaranteed", "2-3")
        self.add("online", "Burstable")
        self.add("batch", "BestEffort")

    def add(self, uid, kind, cpus="", **changes):
        written = {KEY: json.dumps({"cpuset": cpus})} if cpus else {}
        pod = self.new_pod(uid, kind, **written)
        meta = msgspec.structs.replace(pod.metadata, labels={**pod.metadata.labels, **changes})
        self.host.tree.add_pod(uid, kind, [f"c-{uid}"])
        pod = msgspec.structs.replace(pod, metadata=meta)
        self.host.know(pods=(*self.host.known.pods, pod))

    async def seconds(self, count):
        step = min(count, 10)
        for _ in range(-(-count // step)):
            self.host.tree.advance(step)
            await self.clock.advance(step)
            self.loop.tick()
            self.drift.look(self.loop, self.clock.monotonic())

    async def insists(self, uid, cpus):
        """Another program writes the cpuset of a container whenever the agent has restored it."""
        for _ in range(20):
            self.insist(self.group(uid), cpus)
            await self.seconds(10)

    def group(self, uid):
        pods = {one.pod.metadata.uid: one for one in self.loop.picture.pods}
        return pods[uid].containers[0].group

    def file(self, group):
        tree = self.host.tree
        root = tree.cgroup / "cpuset" if tree.version == 1 else tree.cgroup
        return root / group / "cpuset.cpus"

    def insist(self, group, cpus):
        """Another program writes a cpuset; the kernel shows it as the effective one as well."""
        file = self.file(group)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{cpus}\n")

    def gauge(self, kind):
        return self.figures.value("koord_agent_cpu_drift", {"kind": kind})

    def notes(self):
        return {
            (name, note) for name, _, reason, note in self.recorder.told if reason == "CPUDrift"
        }


@pytest.fixture
def world(host, tmp_path, new_pod):
    return World(host, tmp_path / "state", new_pod)


async def test_what_was_allocated_and_stands_there_is_no_drift(world):
    await world.seconds(60)
    assert world.drift.problem is None
    assert world.notes() == set()
    assert [world.gauge(kind) for kind in drift.Kind] == [0, 0, 0]


async def test_a_program_that_insists_on_other_cpus_of_the_pod_is_reported_once(world):
    await world.seconds(2)
    await world.insists("bound", "5-6")
    (note,) = world.notes()
    assert note == ("name-bound", "container app may use cpus 5-6, and was given 2-3")
    assert world.gauge("moved") == 1
    assert "default/name-bound" in world.drift.problem
    (line,) = [one for one in world.lines if one["reason"] == "cpu drift"]
    assert (line["pod"], line["from"], line["to"]) == ("default/name-bound", "2-3", "5-6")
    assert world.figures.value("koord_agent_cpu_drifts_total", {"kind": "moved"}) == 1
    # It ends when the cgroup has its cpus again.
    world.insist(world.group("bound"), "2-3")
    await world.seconds(31)
    assert world.drift.problem is None
    assert world.gauge("moved") == 0


async def test_another_pod_that_was_pinned_there_is_reported(world):
    await world.seconds(2)
    await world.insists("online", "3-4")
    assert world.notes() == {
        ("name-bound", "pod default/name-online may use cpus 3, which this pod has alone")
    }
    assert world.gauge("shared") == 1


@pytest.mark.parametrize(("quality", "drifts"), [("LSR", False), ("LSE", True)])
async def test_best_effort_may_use_cpus_of_a_class_that_is_not_exclusive(world, quality, drifts):
    world.add("whole", "Guaranteed", "6-7", **{names.LABEL_QOS: quality})
    await world.seconds(2)
    await world.insists("batch", "7")
    noted = {name for name, _ in world.notes()}
    assert noted == ({"name-whole"} if drifts else set())


async def test_the_shared_pool_of_a_static_kubelet_is_named(world, new_pod):
    """The kubelet knows nothing of what the scheduler gave away."""
    world.host.know(kubelet=kubelet_cpu_manager.Told(STATIC))
    plain = new_pod("plain", "Burstable")
    meta = msgspec.structs.replace(plain.metadata, labels={})
    world.host.tree.add_pod("plain", "Burstable", ["c-plain"])
    world.host.know(pods=(*world.host.known.pods, msgspec.structs.replace(plain, metadata=meta)))
    world.loop.tick()
    world.insist(world.group("plain"), "1-7")
    await world.seconds(40)
    (note,) = [note for name, note in world.notes() if "name-plain" in note]
    assert note.startswith("pod default/name-plain may use cpus 2-3, which this pod has alone")
    assert "static CPU manager" in note


@pytest.mark.parametrize("cpus", ["2", "0-7", ""])
async def test_a_service_of_the_host_that_is_pinned_there_is_reported(world, cpus):
    """A cgroup that nobody pinned runs everywhere, as the whole system does."""
    world.insist("system.slice/database.service", cpus)
    await world.seconds(40)
    expected = {
        (
            "name-bound",
            "cgroup system.slice/database.service is pinned to cpus 2, which this pod has alone",
        )
    }
    assert world.notes() == (expected if cpus == "2" else set())


async def test_a_container_that_starts_on_all_cpus_is_no_drift(world):
    await world.seconds(16)
    world.add("late", "Burstable")
    world.loop.tick()
    world.insist(world.group("late"), "0-7")
    world.drift.look(world.loop, world.clock.monotonic() + 100)
    await world.seconds(130)
    assert world.notes() == set()


async def test_a_look_at_many_cgroups_takes_several_ticks_and_finds_the_same(world):
    for number in range(3 * drift_events.MOST_READ):
        world.add(f"more-{number}", "Burstable")
    for _ in range(3):
        await world.seconds(1)
    world.insist(world.group("online"), "3-4")
    world.host.tree.advance(1)
    left = set()
    for second in range(40):
        world.drift.look(world.loop, world.clock.monotonic() + second)
        left.add(len(world.drift._left))
    assert left == {2 * drift_events.MOST_READ + 3, drift_events.MOST_READ + 3, 3, 0}
    expected = "pod default/name-online may use cpus 3, which this pod has alone"
    assert world.notes() == {("name-bound", expected)}


async def test_an_agent_that_observes_reports_none(host, tmp_path, new_pod):
    world = World(host, tmp_path / "state", new_pod, planner.Mode.OBSERVE)
    world.loop.tick()
    world.insist(world.group("online"), "0-7")
    await world.seconds(60)
    assert world.notes() == set()


def test_cgroups_outside_of_pods_are_bounded_and_those_above_pods_left_out(world):
    world.loop.tick()
    for number in range(effective_cpusets.MOST_GROUPS + 20):
        world.insist(f"zz/{number:04}", "1")
    arranged = world.loop.layout
    found = effective_cpusets.pinned(arranged, frozenset(range(8)))
    assert 0 < len(found) <= effective_cpusets.MOST_GROUPS
    top = arranged.qos_group("Guaranteed")
    assert not any(group.startswith(top) for group in found)
    assert effective_cpusets.effective(arranged, ["no/such/cgroup"]) == {}
    world.insist("zz/0000", "many")
    assert "zz/0000" not in effective_cpusets.pinned(arranged, frozenset(range(8)))
    assert cpulists.text(found["zz/0001"]) == "1"
