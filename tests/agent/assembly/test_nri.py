"""An agent beside a container runtime that asks it: real sockets, a generated host."""

import asyncio
import contextlib

import msgspec
import pytest

from agent.apply import journal
from agent.assembly import nri
from api import names, resources
from tests.agent import test_app
from tests.agent.nri import stand_in

wire = stand_in.wire
world = test_app.world
BATCH = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1Gi"}
REQUESTED = 20_000
ENFORCING = {"strategies": {"mode": "enforce"}}


class Runtime(stand_in.Runtime):
    """Makes containers as it is told, in the groups of a generated host."""

    def __init__(self, world):
        super().__init__(world.folder / "nri.sock")
        self.world = world

    async def meet(self):
        await asyncio.to_thread(self.accept)
        await asyncio.to_thread(self.greet)

    def sandbox(self, uid):
        said = wire.field(1, 1) + wire.field(2, stand_in.pod(uid))
        self.call("StateChange", said, "Empty")

    def start(self, uid, name="app"):
        """Let the first process of a container wait until the agent has answered."""
        said = '{"containers":{"app":{"limits":{"kubernetes.io/batch-cpu":"1500"}}}}'
        annotations = {"node.koordinator.sh/extended-resource-spec": said}
        pod = stand_in.pod(uid, {"koordinator.sh/qosClass": "BE"}, **annotations)
        pod += wire.field(8, wire.field(3, b"/kubepods-besteffort.slice"))
        path = f"kubepods-besteffort-pod{uid}.slice:cri-containerd:c-{uid}"
        linux = wire.field(11, wire.field(5, path.encode()))
        container = stand_in.container(f"c-{uid}", uid, name) + linux
        said = wire.field(2, pod) + wire.field(3, container)
        self.call("StateChange", wire.field(1, 6) + said, "Empty")

    def create(self, uid, name="app"):
        pod = f"kubepods-besteffort-pod{uid}.slice"
        limits = wire.field(2, wire.field(2, wire.field(1, REQUESTED)))
        linux = wire.field(3, limits) + wire.field(5, f"{pod}:cri-containerd:c-{uid}".encode())
        container = stand_in.container(f"c-{uid}", uid, name) + wire.field(11, linux)
        asked = wire.field(1, stand_in.pod(uid)) + wire.field(2, container)
        found = self.call("CreateContainer", asked, "CreateContainerResponse").adjust
        said = wire.field(2, stand_in.pod(uid)) + wire.field(3, container)
        self.call("StateChange", wire.field(1, 5) + said, "Empty")
        return found.linux.resources


@pytest.fixture
def runtime(world):
    made = Runtime(world)
    yield made
    made.close()


def batch(new_pod, uid="batch"):
    pod = new_pod(uid, "BestEffort")
    resources_ = msgspec.structs.replace(
        pod.spec.containers[0].resources, requests=BATCH, limits=BATCH
    )
    container = msgspec.structs.replace(pod.spec.containers[0], resources=resources_)
    spec = msgspec.structs.replace(pod.spec, containers=(container,))
    return msgspec.structs.replace(pod, spec=spec)


def cpu_max(world, uid="batch"):
    pods = world.tree.cgroup / "kubepods.slice/kubepods-besteffort.slice"
    pod = pods / f"kubepods-besteffort-pod{uid}.slice"
    return pod / "cpu.max", pod / f"cri-containerd-c-{uid}.scope" / "cpu.max"


def figure(agent, name, **labels):
    return agent.registry.value(name, labels) or 0.0


async def answered(world, agent, runtime, uid="batch"):
    """Ask until the agent knows the pod; return the resources that it wants."""
    await world.until_ticking(
        lambda: agent.ticks.picture is not None and len(agent.ticks.picture.pods) > 0
    )
    return runtime.create(uid)


@pytest.fixture
def enforced(world):
    world.create(resources.NODE_SLOS, {"spec": test_app.THRESHOLDS})


async def test_a_container_is_born_with_its_limits_and_given_back_as_requested(
    world, runtime, enforced, new_pod
):
    world.add_pod(batch(new_pod), 100)
    pod_file, file = cpu_max(world)
    async with world.agent(**ENFORCING) as agent:
        await runtime.meet()
        found = await answered(world, agent, runtime)
        assert (found.cpu.quota.value, found.cpu.shares.value) == (150_000, 1536)
        assert found.memory.limit.value == 1 << 30
        file.write_text("150000 100000\n")
        await world.seconds(2)
        assert agent.health.warnings().get("nri") is None
        assert (
            figure(agent, "koord_agent_nri_answers_total", event="create", result="adjusted") == 1
        )
        assert figure(agent, "koord_agent_nri_connected") == 1
        assert figure(agent, "koord_agent_nri_answer_seconds_count", method="CreateContainer") == 1
        held = (world.folder / "state" / journal.NAME).read_text()
        assert f'"cpu-quota","{file.parent.relative_to(world.tree.cgroup)}"' in held
    assert file.read_text().split()[0] == str(REQUESTED)
    assert pod_file.read_text().split()[0] == "max"


async def written_at_its_start(world, agent, runtime):
    """Start the batch pod, whose own cgroup is written before any tick."""
    ticks = figure(agent, "koord_agent_tick_seconds_count")
    runtime.sandbox("batch")
    # Within the time that two requests to the kubelet are apart, and short of a tick.
    await asyncio.sleep(0)
    await world.clock.advance(0.25)
    await world.until(lambda: cpu_max(world)[0].read_text().startswith("150000"))
    assert figure(agent, "koord_agent_tick_seconds_count") <= ticks + 1


async def test_a_pod_that_starts_is_asked_for_and_its_own_cgroup_written_before_any_tick(
    world, runtime, enforced, new_pod
):
    world.add_pod(new_pod("old"), 100)
    async with world.agent(**ENFORCING) as agent:
        await runtime.meet()
        await world.until_ticking(lambda: agent.ticks.picture and agent.ticks.picture.pods)
        await world.seconds(3)
        world.add_pod(batch(new_pod), 0)
        await written_at_its_start(world, agent, runtime)
        assert runtime.create("batch").cpu.quota.value == 150_000


async def test_pods_that_no_list_ever_named_keep_no_other_from_being_written(
    world, runtime, enforced, new_pod
):
    """As those that were gone before the kubelet answered, over months."""
    world.add_pod(new_pod("old"), 100)
    async with world.agent(**ENFORCING) as agent:
        await runtime.meet()
        await world.until_ticking(lambda: agent.ticks.picture and agent.ticks.picture.pods)
        for number in range(nri.MOST_UNKNOWN):
            runtime.sandbox(f"gone-{number}")
        await asyncio.sleep(0)
        await world.seconds(3)
        world.add_pod(batch(new_pod), 0)
        await written_at_its_start(world, agent, runtime)


async def test_a_container_starts_once_the_loop_has_written_what_the_runtime_cannot_set(
    world, runtime, enforced, new_pod
):
    """The cgroup of its pod here, of which neither the kubelet nor a tick has told yet."""
    world.add_pod(new_pod("old"), 100)
    async with world.agent(**ENFORCING) as agent:
        await runtime.meet()
        await world.until_ticking(lambda: agent.ticks.picture and agent.ticks.picture.pods)
        await world.seconds(3)
        world.add_pod(batch(new_pod), 0)
        ticks = figure(agent, "koord_agent_tick_seconds_count")
        await asyncio.to_thread(runtime.start, "batch")
        assert cpu_max(world)[0].read_text().startswith("150000")
        started = {"event": "start", "result": "adjusted"}
        assert figure(agent, "koord_agent_nri_answers_total", **started) == 1
        assert figure(agent, "koord_agent_tick_seconds_count") == ticks


async def test_a_pod_whose_amounts_are_none_is_named_and_stops_no_other(
    world, runtime, enforced, new_pod
):
    odd = {
        "metadata": {"name": "odd", "namespace": "default", "uid": "odd"},
        "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "many"}}}]},
        "status": {"phase": "Pending"},
    }
    world.add_pod(batch(new_pod), 100)
    async with world.agent(**ENFORCING) as agent:
        await runtime.meet()
        await world.until_ticking(lambda: agent.ticks.picture and agent.ticks.picture.pods)
        world.pods.append(odd)
        await world.until_ticking(lambda: "many" in agent.health.warnings().get("readings", ""))
        await world.seconds(2)
        assert agent.ticks.problem is None
        assert runtime.create("batch").cpu.quota.value == 150_000


@pytest.mark.parametrize("key", ["agent.nri", "agent.batch-resources", "agent"])
async def test_a_live_switch_ends_it(world, runtime, enforced, new_pod, key):
    world.add_pod(batch(new_pod), 100)
    async with world.agent(**ENFORCING) as agent:
        await runtime.meet()
        assert (await answered(world, agent, runtime)).cpu.quota.value == 150_000
        meta = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE}
        world.plane.objects.create(
            resources.CONFIG_MAPS,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: "off"}},
        )
        await world.until_ticking(lambda: not runtime.create("batch").has_field("cpu"))


async def test_without_a_runtime_nothing_is_said_and_one_that_comes_later_is_met(
    world, enforced, new_pod
):
    world.add_pod(batch(new_pod), 100)
    async with world.agent(**ENFORCING) as agent:
        await world.seconds(2)
        assert "nri" not in agent.health.warnings()
        assert figure(agent, "koord_agent_nri_connected") == 0
        with contextlib.closing(Runtime(world)) as runtime:
            await world.seconds(int(nri.ABSENT_SECONDS))
            await runtime.meet()
            assert (await answered(world, agent, runtime)).cpu.quota.value == 150_000
            runtime.drop()
            await world.until(lambda: "ended" in agent.health.warnings().get("nri", ""))
            await runtime.meet()
            assert (await answered(world, agent, runtime)).cpu.quota.value == 150_000


async def test_a_socket_that_may_not_be_looked_at_is_a_problem_and_stops_nothing_else(world):
    """As a folder does that only root may enter, where the agent does not run as root."""
    hidden = world.folder / ("x" * 300) / "nri.sock"
    async with world.agent(nri={"socket": str(hidden)}) as agent:
        await world.until(lambda: agent.health.warnings().get("nri") is not None)
        assert agent.health.warnings()["nri"] == f"{hidden}: File name too long"
        await world.until_ticking(lambda: agent.ticks.picture)


@pytest.mark.parametrize(
    "changes",
    [{"mode": "observe"}, {"strategies": {"mode": "observe"}}, {"nri": {"enable": False}}],
    ids=["agent", "strategies", "setting"],
)
async def test_an_agent_that_only_observes_adjusts_nothing(
    world, runtime, enforced, new_pod, changes
):
    world.add_pod(batch(new_pod), 100)
    async with world.agent(**{**ENFORCING, **changes}) as agent:
        await world.until_ticking(lambda: agent.ticks.picture and agent.ticks.picture.pods)
        if "strategies" in changes:
            await runtime.meet()
            assert not runtime.create("batch").byte_size()
        assert figure(agent, "koord_agent_nri_connected") == float("strategies" in changes)
