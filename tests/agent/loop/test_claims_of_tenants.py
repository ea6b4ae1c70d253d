"""What a tenant writes on its pods, on a host: it gets no cpus of others, nobody loses any."""

import dataclasses
import json

import msgspec
import pytest

from agent.decide import planner
from agent.loop import ticks
from agent.model import slo_settings
from agent.report.events import binding_events
from api import names
from domain.cluster_settings import node_slo
from domain.cpus import cpulists
from process.runtime import clock as clocks
from process.runtime import metrics

KEY = names.ANNOTATION_RESOURCE_STATUS
GATES = frozenset({"BECPUSuppress", "CPUSetAllocator", "BatchResource", "CPUBurst"})


@dataclasses.dataclass
class Recorder:
    """Keeps what it is told."""

    told: list = dataclasses.field(default_factory=list)

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.namespace, regarding.name, kind, reason, note))
        return True


class World:
    """A host of eight cpus whose agent ticks once per second."""

    def __init__(self, host, folder):
        self.host, self.clock = host, clocks.ManualClock()
        complete = node_slo.of_spec({})
        host.know(
            thresholds=slo_settings.thresholds(complete), enforced=slo_settings.read(complete)
        )
        habits = ticks.Habits(folder, writing=True, gates=GATES, default=planner.Mode.ENFORCE)
        figures = ticks.Figures(metrics.Registry())
        self.loop = ticks.Ticks(host.observer, lambda: host.known, self.clock, figures, habits)

    def add(self, pod, kubernetes_qos):
        self.host.tree.add_pod(pod.metadata.uid, kubernetes_qos, [f"c-{pod.metadata.uid}"])
        self.host.know(pods=(*self.host.known.pods, pod))

    def annotate(self, uid, **annotations):
        """Change a pod that runs."""
        self.host.know(
            pods=tuple(
                annotated(pod, annotations) if pod.metadata.uid == uid else pod
                for pod in self.host.known.pods
            )
        )

    async def seconds(self, count=2):
        for _ in range(count):
            self.host.tree.advance(1)
            await self.clock.advance(1)
            self.loop.tick()
        return {pod.pod.metadata.uid: pod for pod in self.loop.picture.pods}

    def text(self, group, controller, first, second):
        tree = self.host.tree
        folder = tree.cgroup / controller if tree.version == 1 else tree.cgroup
        return (folder / group / (first if tree.version == 1 else second)).read_text().split()

    def cpus(self, pod):
        group = pod.containers[0].group
        (text,) = self.text(group, "cpuset", "cpuset.cpus", "cpuset.cpus") or [""]
        return cpulists.parse(text)

    def quota(self, pod):
        return self.text(pod.containers[0].group, "cpu", "cpu.cfs_quota_us", "cpu.max")[0]


def annotated(pod, annotations):
    changed = {**pod.metadata.annotations, **annotations}
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, annotations=changed)
    )


def claim(cpus):
    return {KEY: json.dumps({"cpuset": cpus})}


@pytest.fixture
def world(host, tmp_path, new_pod):
    world = World(host, tmp_path / "state")
    world.add(new_pod("victim", "Guaranteed", **claim("2-3")), "Guaranteed")
    world.add(new_pod("online", "Burstable"), "Burstable")
    world.add(new_pod("tenant", "Burstable"), "Burstable")
    world.add(new_pod("batch", "BestEffort"), "BestEffort")
    return world


@pytest.mark.parametrize("uid", ["tenant", "batch"])
@pytest.mark.parametrize(
    "written",
    [
        pytest.param('{"cpuset":"0-6"}', id="nearly all"),
        pytest.param('{"cpuset":"2-3"}', id="those of another pod"),
        pytest.param('{"cpuset":"7"}', id="a free one"),
        pytest.param("{", id="unreadable"),
        pytest.param('{"x":' + "[" * 3000 + "]" * 3000 + "}", id="deep"),
        pytest.param('{"cpuset":"' + "0-4096," * 3600 + 'x"}', id="long"),
        pytest.param('{"numaNodeResources":[{"node":99,"resources":{"cpu":"1"}}]}', id="no node"),
    ],
)
@pytest.mark.parametrize("when", ["at first", "while it runs"])
async def test_a_tenant_gets_no_cpus_and_takes_none(world, uid, written, when):
    if when == "at first":
        world.annotate(uid, **{KEY: written})
    before = await world.seconds()
    quota = world.quota(before[uid])
    world.annotate(uid, **{KEY: written})
    now = await world.seconds()
    assert world.cpus(now["victim"]) == {2, 3}
    assert world.cpus(now["online"]) == {0, 1, 4, 5, 6, 7}
    assert now[uid].cpus == frozenset()
    assert world.quota(now[uid]) == quota
    # Best effort may run on the cpus of a class that is not exclusive; this one is as if unbound.
    if uid == "tenant" and "numa" not in written:
        assert world.cpus(now["tenant"]) == {0, 1, 4, 5, 6, 7}


async def test_a_claim_that_moves_onto_the_cpus_of_another_pod_is_refused(world, new_pod):
    world.add(new_pod("later", "Guaranteed", **claim("4-5")), "Guaranteed")
    await world.seconds()
    # The victim was bound first, but what it claims now it claims later than the other one.
    world.annotate("victim", **claim("4-5"))
    now = await world.seconds()
    assert now["later"].cpus == {4, 5}
    assert now["victim"].cpus == frozenset()
    reason = "cpu 4 belongs to pod default/name-later, which was bound before"
    assert [one.reason for one in world.loop.picture.refused_cpus] == [reason]
    assert world.loop.picture.problems["cpus of pod default/name-victim"] == reason
    assert reason in world.loop.decisions["cpuset"].reason
    assert world.cpus(now["victim"]) == {0, 1, 2, 3, 6, 7}


async def test_one_claim_that_does_not_hold_is_told_once(world):
    recorder, lines, figures = Recorder(), [], metrics.Registry()
    events = binding_events.BindingEvents(recorder, lines.append, figures)
    world.annotate("tenant", **claim("0-6"))
    for _ in range(3):
        await world.seconds(1)
        events.look(world.loop.picture.refused_cpus, 1.0)
    note = "class LS has no cpus of its own; it runs on the cpus that its class shares"
    assert recorder.told == [("default", "name-tenant", "Warning", "CPUBindingRefused", note)]
    (line,) = lines
    assert (line["pod"], line["from"]) == ("default/name-tenant", '{"cpuset": "0-6"}')
    assert figures.value("koord_agent_refused_cpu_bindings_total") == 1
    events.look((), 2.0)
    events.look(world.loop.picture.refused_cpus, 3.0)
    assert figures.value("koord_agent_refused_cpu_bindings_total") == 2


async def test_static_pods_are_bounded_as_well(world, new_pod):
    """The kubelet runs them from files; nobody schedules them, and their annotations count less."""
    source = {"kubernetes.io/config.source": "file"}
    world.add(new_pod("static", "Guaranteed", **source, **claim("2-3,4")), "Guaranteed")
    now = await world.seconds()
    assert now["static"].cpus == frozenset()
    assert now["victim"].cpus == {2, 3}
