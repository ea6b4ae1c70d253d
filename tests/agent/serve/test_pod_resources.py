"""The PodResources API of an agent: a kubelet and programs that ask, over real sockets."""

import asyncio
import contextlib
import stat

import msgspec
import pydantic
import pytest
from grpclib import GRPCError, client, const

from agent import settings as agent_settings
from agent.devices import latest_findings
from agent.informers import fresh_pods
from agent.serve import pod_resources as service
from api.kubernetes import pod_resources
from process.http import grpc_bytes
from process.runtime import supervise
from tests.agent import test_app
from tests.agent.assembly import test_nri
from tests.agent.serve import test_pod_devices as lists
from tests.runtimeproxy import stand_in

world = test_app.world
DETAILS = b"\x08\x05\x12\x04gone"
WHOLE = {"gpu": [lists.gpu(id="GPU-a")]}
_STREAMS = const.Cardinality.STREAM_STREAM


class Exporter:
    """Asks as programs do that tell which pod holds which device."""

    def __init__(self, path):
        codecs = {"codec": grpc_bytes.Messages(), "status_details_codec": grpc_bytes.Details()}
        self.channel = client.Channel(path=str(path), **codecs)

    async def ask(self, path, *requests, metadata=None, timeout=60):
        """Return messages, initial metadata and trailers of a response."""
        async with self.channel.request(
            path, _STREAMS, bytes, bytes, metadata=metadata, timeout=timeout
        ) as stream:
            await stream.send_request(end=not requests)
            for number, request in enumerate(requests, 1):
                await stream.send_message(request, end=number == len(requests))
            found = [one async for one in stream]
            await stream.recv_trailing_metadata()
            return found, dict(stream.initial_metadata), dict(stream.trailing_metadata)

    async def devices(self, path=pod_resources.LIST):
        (message,), _, _ = await self.ask(path, b"")
        return lists.devices_in(message)


class Rig:
    """An agent between a kubelet and an exporter."""

    def __init__(self, world, agent, kubelet, exporter):
        self.world, self.agent, self.kubelet, self.exporter = world, agent, kubelet, exporter

    def calls(self, method, outcome):
        labels = {"method": method, "outcome": outcome}
        return test_nri.figure(self.agent, "koord_agent_pod_resources_calls_total", **labels)

    async def answered(self, call):
        """Let time pass until a call is answered."""
        async with supervise.Supervisor("exporter") as supervisor:
            task = supervisor.spawn("call", call)
            await self.world.until_ticking(task.done)
            return await task


@contextlib.asynccontextmanager
async def serving(world, **changed):
    kubelet = stand_in.Server(world.folder / "kubelet.sock")
    socket = world.folder / "pod-resources/kubelet.sock"
    chosen = {"kubelet_socket": str(kubelet.path), "socket": str(socket), **changed}
    exporter = Exporter(socket)
    await kubelet.start()
    gates = {"PodResourcesProxy": True}
    try:
        async with world.agent(pod_resources=chosen, feature_gates=gates) as agent:
            await world.until_ticking(lambda: agent.ticks.picture and socket.exists())
            yield Rig(world, agent, kubelet, exporter)
        assert not socket.exists()
    finally:
        exporter.channel.close()
        await kubelet.kill()


def listing(*names):
    return lists.listed(*((name, [lists.container()]) for name in names))


async def test_lists_have_the_devices_of_the_scheduler(world):
    world.add_pod(lists.pod(WHOLE), 100)
    async with serving(world) as rig:
        rig.kubelet.answers[pod_resources.LIST] = listing("p", "q")
        found = await rig.answered(rig.exporter.devices())
        assert found == {("p", "app"): [("nvidia.com/gpu", ["GPU-a"])], ("q", "app"): []}
        rig.kubelet.answers[pod_resources.OLD_LIST] = listing("p")
        found = await rig.exporter.devices(pod_resources.OLD_LIST)
        assert found["p", "app"] == [("nvidia.com/gpu", ["GPU-a"])]
        assert (rig.calls("List", "answered"), rig.calls("ListV1alpha1", "answered")) == (1, 1)
        told = {"resource": "nvidia.com/gpu"}
        assert test_nri.figure(rig.agent, "koord_agent_pod_resources_devices", **told) == 1
        socket = rig.world.folder / "pod-resources/kubelet.sock"
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        assert "pod resources" not in rig.agent.health.warnings()


async def test_a_pod_that_is_new_is_asked_for_at_once(world):
    async with serving(world) as rig:
        rig.kubelet.answers[pod_resources.LIST] = listing("p")
        world.pods.append(msgspec.to_builtins(lists.pod(WHOLE)))
        start = world.clock.monotonic()
        found = await rig.answered(rig.exporter.devices())
        assert found["p", "app"] == [("nvidia.com/gpu", ["GPU-a"])]
        assert world.clock.monotonic() - start <= fresh_pods.MOST_SECONDS


async def test_a_pod_that_no_list_has_is_waited_for_once(world):
    async with serving(world) as rig:
        world.kubelet_status = 500
        rig.kubelet.answers[pod_resources.LIST] = listing("ghost")
        assert await rig.answered(rig.exporter.devices()) == {("ghost", "app"): []}
        start = world.clock.monotonic()
        assert await rig.exporter.devices() == {("ghost", "app"): []}
        assert world.clock.monotonic() == start


async def test_an_annotation_that_cannot_be_believed_is_named(world):
    world.add_pod(lists.pod(WHOLE, containers={"app": {"cpu": "1"}}), 100)
    async with serving(world) as rig:
        rig.kubelet.answers[pod_resources.LIST] = listing("p")
        assert await rig.answered(rig.exporter.devices()) == {("p", "app"): []}
        assert "ns/p: the pod does not ask" in rig.agent.health.warnings()["pod resources"]
        assert test_nri.figure(rig.agent, "koord_agent_pod_resources_faults") == 1


@pytest.mark.parametrize("path", [pod_resources.GET, pod_resources.ALLOCATABLE, "/v9.Later/Method"])
async def test_everything_else_passes_byte_for_byte(world, path):
    world.add_pod(lists.pod(WHOLE), 100)
    async with serving(world) as rig:
        rig.kubelet.answers[path] = listing("p")
        rig.kubelet.trailers = {"later": "trailer"}
        metadata = {"asked-by": "exporter", "key-bin": b"\x00\xff"}
        request = b"\x0a\x01p" + lists.LATER
        found, _, trailers = await rig.exporter.ask(path, request, metadata=metadata)
        assert (found, trailers) == ([listing("p")], {"later": "trailer"})
        assert rig.kubelet.calls == [(path, request)]
        assert metadata.items() <= rig.kubelet.metadata[0].items()
        error = GRPCError(const.Status.NOT_FOUND, "pod ä is\n gone", DETAILS)
        rig.kubelet.answers[path] = error
        with pytest.raises(GRPCError) as refused:
            await rig.exporter.ask(path, request)
        assert refused.value.args == error.args
        method = {pod_resources.GET: "Get", pod_resources.ALLOCATABLE: "GetAllocatableResources"}
        assert rig.calls(method.get(path, "other"), "refused") == 1


async def test_streams_of_methods_that_are_not_known_pass(world):
    path = "/v1.PodResourcesLister/Watch"
    async with serving(world) as rig:
        rig.kubelet.answers[path] = [b"one", b"", b"three"]
        found, _, _ = await rig.exporter.ask(path, b"a", b"b")
        assert found == [b"one", b"", b"three"]
        rig.kubelet.answers[path] = []
        assert (await rig.exporter.ask(path))[0] == []


async def test_a_kubelet_that_is_away_is_named_and_its_return_is_noticed(world):
    world.add_pod(lists.pod(WHOLE), 100)
    async with serving(world) as rig:
        rig.kubelet.answers[pod_resources.LIST] = listing("p")
        await rig.answered(rig.exporter.devices())
        await rig.kubelet.kill()
        for path in (pod_resources.LIST, "/v9.Later/Method"):
            with pytest.raises(GRPCError, match=r"kubelet at .*kubelet.sock: File") as refused:
                await rig.exporter.ask(path, b"")
            assert refused.value.status is const.Status.UNAVAILABLE
        assert "No such file" in rig.agent.health.warnings()["pod resources"]
        assert rig.calls("List", "kubelet-away") == 1
        await rig.kubelet.start()
        assert (await rig.exporter.devices())["p", "app"]
        assert "pod resources" not in rig.agent.health.warnings()


async def test_a_kubelet_that_hangs_holds_a_call_for_a_while_only(world):
    async with serving(world) as rig:
        rig.kubelet.answers[pod_resources.GET] = lambda _: asyncio.Event().wait()
        call = rig.exporter.ask(pod_resources.GET, b"")
        with pytest.raises(GRPCError, match="no response within 10 s"):
            await rig.answered(call)
        with pytest.raises((GRPCError, TimeoutError)):
            await rig.exporter.ask(pod_resources.GET, b"", timeout=0.05)


async def test_a_list_that_is_none_is_an_error(world):
    async with serving(world) as rig:
        rig.kubelet.answers[pod_resources.LIST] = b"\x0a\xff"
        with pytest.raises(GRPCError, match="no list of pods") as refused:
            await rig.exporter.ask(pod_resources.LIST, b"")
        assert refused.value.status is const.Status.INTERNAL


async def test_while_no_pod_is_known_lists_are_refused(world):
    world.kubelet_status = 500
    async with serving(world) as rig:
        rig.kubelet.answers[pod_resources.LIST] = listing("p")
        with pytest.raises(GRPCError, match=r"pods of this node are not known: .* 500"):
            await rig.exporter.ask(pod_resources.LIST, b"")


async def test_the_socket_of_a_successor_stays(world):
    """An agent that was deleted by force ends beside the one that follows it."""
    place = service.Place(world.folder / "kubelet.sock", world.folder / "ours.sock")

    @contextlib.asynccontextmanager
    async def listening():
        async with supervise.Supervisor("agent") as supervisor:
            found = latest_findings.Latest()
            made = service.Proxy(place, None, found, world.clock, supervisor.spawn)
            supervisor.start("pod resources", made.run)
            await world.until(lambda: made.listening)
            yield

    async with contextlib.AsyncExitStack() as following:
        async with listening():
            await following.enter_async_context(listening())
        assert place.socket.is_socket()
    assert not place.socket.exists()


async def test_a_successor_that_takes_the_path_while_it_opens_does_not_end_the_agent(world):
    place = service.Place(world.folder / "kubelet.sock", world.folder / "ours.sock")

    async def take():
        while not place.socket.exists():  # noqa: ASYNC110 - the very turn in which it is made
            await asyncio.sleep(0)
        place.socket.unlink()

    async with supervise.Supervisor("agent") as supervisor:
        found = latest_findings.Latest()
        made = service.Proxy(place, None, found, world.clock, supervisor.spawn)
        supervisor.start("pod resources", made.run)
        await supervisor.spawn("successor", take())
        await world.until(lambda: "No such file" in made.problem)
        await world.clock.advance(service.AGAIN_SECONDS)
        await world.until(lambda: made.listening)
        assert made.problem == ""


async def test_the_socket_of_the_kubelet_is_never_taken_away(world):
    own = world.folder / "kubelet.sock"
    again = world.folder / "again"
    again.symlink_to(world.folder)
    kubelet = stand_in.Server(own)
    await kubelet.start()
    chosen = {"kubelet_socket": str(own), "socket": str(again / "kubelet.sock")}
    async with world.agent(pod_resources=chosen, feature_gates={"PodResourcesProxy": True}) as one:
        await world.until_ticking(lambda: "socket of the kubelet" in str(one.health.warnings()))
        assert own.exists()
    assert own.exists()
    await kubelet.kill()
    with pytest.raises(pydantic.ValidationError, match="is that of the kubelet"):
        agent_settings.PodResourcesSettings(kubelet_socket="/a", socket="/a")


async def test_without_the_gate_nothing_listens(world):
    socket = world.folder / "kubelet.sock"
    async with world.agent(pod_resources={"socket": str(socket)}) as agent:
        await world.until_ticking(lambda: agent.ticks.picture)
        assert not socket.exists()
