"""What passes the proxy passes as it is: bytes, metadata, statuses, trailers, streams."""

import asyncio
import os
import random

import pytest
from grpclib import GRPCError, const

from runtimeproxy.cri import calls, messages
from tests import protobuf_messages as wire

MESSAGES = int(os.environ.get("KOORD_CRI_MESSAGES") or 150)
"""How many generated messages pass; read before the environment of tests is cleaned."""
_TOGETHER = 20
NAMES = (
    *("Version", "Status", "ListPodSandbox", "ContainerStatus", "ExecSync", "Exec", "Attach"),
    *("PortForward", "ContainerStats", "UpdateRuntimeConfig", "CheckpointContainer"),
)
PATHS = (
    *calls.CALLS,
    *(messages.path(name) for name in NAMES),
    *("/runtime.v1.ImageService/PullImage", "/runtime.v1.ImageService/ListImages"),
    *("/runtime.v1alpha2.RuntimeService/RunPodSandbox", "/later.v9.Service/NotYetThere"),
)


def generated(random_, depth=3):
    """Bytes of a message: fields of any number and kind, now and then nonsense."""
    if random_.random() < 0.1:
        return random_.randbytes(random_.randrange(40))
    parts = []
    for _ in range(random_.randrange(6)):
        number = random_.choice((*range(1, 18), 500, 9999))
        kind = random_.random()
        if kind < 0.3:
            parts.append(wire.field(number, random_.randrange(1 << 63)))
        elif kind < 0.6 and depth:
            parts.append(wire.field(number, generated(random_, depth - 1)))
        else:
            parts.append(wire.field(number, random_.randbytes(random_.randrange(30))))
    return b"".join(parts)


def answered(random_):
    """A response: messages, or a status with a reason and details."""
    if random_.random() < 0.25:
        status = random_.choice([one for one in const.Status if one is not const.Status.OK])
        return GRPCError(status, f"refused, in ä and with a new\\n line: {random_.random()} %")
    return [generated(random_) for _ in range(random_.randrange(4))]


async def outcome(kubelet, path, request, metadata=None):
    """The messages and trailers of a response, or its status and the reason."""
    try:
        return await kubelet.call(path, request, metadata)
    except GRPCError as error:
        return error.status, error.message


class Planned:
    """A runtime that answers each call as it was generated, and keeps what it saw."""

    def __init__(self):
        self.plans, self.seen = {}, {}

    async def handle(self, path, stream):
        request = await stream.recv_message()
        metadata = dict(stream.metadata)
        token = metadata.get("token")
        if token is None:
            await stream.send_message(b"")
            return
        self.seen[token] = (path, request, metadata["x-bin"])
        answer = self.plans[token]
        if isinstance(answer, Exception):
            raise answer
        for one in answer:
            await stream.send_message(one)
        await stream.send_trailing_metadata(metadata={"after": token})

    async def exchange(self, kubelet, number):
        """One call, generated from its number, of which each end is compared with the other."""
        drawn, token = random.Random(number), f"token-{number}"
        path, request, answer = drawn.choice(PATHS), generated(drawn), answered(drawn)
        self.plans[token], extra = answer, drawn.randbytes(9)
        found = await outcome(kubelet, path, request, {"token": token, "x-bin": extra})
        refused = isinstance(answer, Exception)
        expected = (answer.status, answer.message) if refused else (answer, {"after": token})
        assert found == expected, number
        assert self.seen[token] == (path, request, extra), number


@pytest.mark.parametrize("hooked", [False, True], ids=["no-hook-server", "hooks-change-nothing"])
async def test_generated_messages_pass_unchanged_or_are_refused_as_the_runtime_does(world, hooked):
    planned = Planned()
    world.runtime.handle = planned.handle
    if hooked:
        for stage in {one.before for one in calls.CALLS.values()} - {None}:
            world.hooks.respond(stage)
        world.hooks.register(world.registered)
    async with world.proxy():
        kubelets = [world.kubelet() for _ in range(3)]
        for first in range(0, MESSAGES, _TOGETHER):
            numbers = range(first, min(first + _TOGETHER, MESSAGES))
            await asyncio.gather(*(planned.exchange(kubelets[one % 3], one) for one in numbers))
    assert len(planned.seen) == MESSAGES
    assert bool(world.hooks.requests) is hooked


async def test_a_stream_of_events_passes_as_it_comes(world):
    fed = asyncio.Queue()

    async def handle(path, stream):
        await stream.recv_message()
        while (one := await fed.get()) is not None:
            await stream.send_message(one)

    async with world.proxy():
        world.runtime.handle = handle
        channel = world.kubelet().channel
        path = messages.path("GetContainerEvents")
        async with channel.request(path, const.Cardinality.UNARY_STREAM, bytes, bytes) as stream:
            await stream.send_message(b"", end=True)
            for event in (b"created", b"started"):
                fed.put_nowait(event)
                assert await stream.recv_message() == event
            fed.put_nowait(None)
            assert await stream.recv_message() is None


async def test_large_messages_pass_both_ways(world):
    """Larger than every window of flow control, while other calls go on."""
    large = bytes(range(256)) * 4096
    world.runtime.answers[messages.path("ListImages")] = large
    asked = [messages.path("UpdateContainerResources"), "/later.v9.Service/Take"]
    async with world.proxy():
        kubelet = world.kubelet()
        found = await asyncio.gather(
            *(kubelet.call(path, large) for path in asked),
            *(kubelet.call(messages.path("ListImages"), b"x") for _ in range(2)),
        )
        assert [one[0] for one in found[2:]] == [[large]] * 2
        assert [world.runtime.asked(path.rpartition("/")[2]) for path in asked] == [[large]] * 2


async def test_a_call_that_the_kubelet_gives_up_is_cancelled_at_the_runtime(world):
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def handle(path, stream):
        await stream.recv_message()
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    async with world.proxy():
        world.runtime.handle = handle
        channel = world.kubelet().channel
        path = messages.path("RunPodSandbox")
        async with channel.request(path, const.Cardinality.UNARY_UNARY, bytes, bytes) as stream:
            await stream.send_message(b"", end=True)
            await begun.wait()
            await stream.cancel()
        await asyncio.wait_for(cancelled.wait(), 60)


async def test_what_speaks_no_http2_reaches_the_runtime_as_well(world, tmp_path):
    seen = []

    async def plain(reader, writer):
        seen.append(await reader.read(100))
        writer.write(b"not for you")
        writer.close()

    server = await asyncio.start_unix_server(plain, str(tmp_path / "plain.sock"))
    endpoint = str(tmp_path / "plain.sock")
    changed = {"remote_runtime_service_endpoint": endpoint}
    async with server, world.proxy(listed=False, **changed) as running:
        running.proxy.restored = True
        reader, writer = await asyncio.open_unix_connection(world.settings.listen)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read(100) == b"not for you"
        writer.close()
    assert b"GET / HTTP/1.1\r\n\r\n" in seen
