"""Serves the kubelet's PodResources API with the devices that the scheduler allocated.

Lists gain devices; every other method passes, those of later releases included. The kubelet is
connected with for each call that needs it, so it may come, go and restart.
"""

import asyncio
import contextlib
import errno
import functools
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import grpclib
import grpclib.client
import grpclib.server
import msgspec
from grpclib import const

from agent.devices import latest_findings
from agent.informers import fresh_pods
from agent.serve import pod_devices, socket_files
from api.kubernetes import pod_resources
from domain import wording
from process.http import grpc_bytes
from process.runtime import clock as clocks
from process.runtime import supervise

AGAIN_SECONDS: Final = 10.0
"""Time between two attempts to listen."""
CALL_SECONDS: Final = 10.0
"""How long the kubelet may take for one of the methods that are known, each of which only reads."""
LISTS: Final = (pod_resources.LIST, pod_resources.OLD_LIST)
METHODS: Final[Mapping[str, str]] = {
    pod_resources.LIST: "List",
    pod_resources.GET: "Get",
    pod_resources.ALLOCATABLE: "GetAllocatableResources",
    pod_resources.OLD_LIST: "ListV1alpha1",
}
OTHER: Final = "other"
ANSWERED, REFUSED, AWAY = "answered", "refused", "kubelet-away"
COUNTED: Final = tuple(itertools.product((*METHODS.values(), OTHER), (ANSWERED, REFUSED, AWAY)))
"""Every pair of a method and an outcome."""
_ANY: Final = const.Cardinality.STREAM_STREAM
_MESSAGES: Final = grpc_bytes.Messages()
_DETAILS: Final = grpc_bytes.Details()
_logger = logging.getLogger(__name__)


class KubeletAwayError(Exception):
    """The kubelet does not answer; the text names its socket and the reason."""


class Place(msgspec.Struct, frozen=True):
    """Where the kubelet listens, and where the agent does."""

    kubelet: Path
    socket: Path


class _EveryMethod(dict[str, const.Handler]):
    """One handler for whatever method is called."""

    def __init__(self, handle: Callable[[str, Any], Awaitable[None]]) -> None:
        super().__init__()
        self._handle = handle

    def get(self, path: str, _default: Any = None) -> const.Handler:
        """Return the handler of a method."""
        return const.Handler(functools.partial(self._handle, path), _ANY, bytes, bytes)


class _Server(grpclib.server.Server):
    def __init__(self, handle: Callable[[str, Any], Awaitable[None]]) -> None:
        super().__init__((), codec=_MESSAGES, status_details_codec=_DETAILS)
        # The library has no handler for methods that it does not know.
        self._mapping = _EveryMethod(handle)


class Proxy:
    """One socket beside the kubelet's."""

    def __init__(
        self,
        place: Place,
        pods: fresh_pods.FreshPods,
        devices: latest_findings.Latest,
        clock: clocks.Clock,
        spawn: Callable[[str, Any], asyncio.Task[None]],
    ) -> None:
        self.listening = False
        self.counted: Callable[[str, str], None] = lambda _method, _outcome: None
        """Takes the method and the outcome of each call."""
        self.added: Callable[[Mapping[str, int], int], None] = lambda _devices, _faults: None
        """Takes how many devices a list has gained, by resource, and of how many pods not all."""
        self._place, self._pods, self._devices = place, pods, devices
        self._clock, self._spawn = clock, spawn
        self._kubelet = grpclib.client.Channel(
            path=str(place.kubelet), codec=_MESSAGES, status_details_codec=_DETAILS
        )
        self._unheard = "not started yet"
        self._away = ""
        self._faults: Mapping[str, str] = {}

    @property
    def problem(self) -> str:
        """What is wrong: nothing listens, the kubelet is away, or annotations are not believed."""
        named = list(self._faults.items())[: pod_devices.MOST_FAULTS]
        faults = [f"{pod}: {why}" for pod, why in named]
        if more := len(self._faults) - len(named):
            faults.append(wording.count(more, "more pod", "more pods"))
        return "; ".join(filter(None, (self._unheard, self._away, *faults)))

    async def run(self) -> None:
        """Listen for ever; where that fails, try again."""
        while True:
            try:
                await self._serve()
            except OSError as error:
                self._unheard = f"{self._place.socket}: {error.strerror or error}"
                _logger.warning("pod resources are not served reason=%s", self._unheard)
                await self._clock.sleep(AGAIN_SECONDS)

    async def _serve(self) -> None:
        server = _Server(self._handle)
        await asyncio.to_thread(_prepare, self._place)
        await server.start(path=str(self._place.socket))
        made = socket_files.inode(self._place.socket)
        try:
            os.chmod(self._place.socket, 0o600)  # noqa: PTH101 - in memory, nothing that blocks
            self._unheard, self.listening = "", True
            await asyncio.get_running_loop().create_future()
        finally:
            self.listening = False
            server.close()
            self._kubelet.close()
            socket_files.remove(self._place.socket, made)

    async def _handle(self, path: str, stream: Any) -> None:
        method, outcome = METHODS.get(path, OTHER), REFUSED
        try:
            passed = self._unary if path in METHODS else self._streamed
            error = await passed(path, stream)
            self._away, outcome = "", REFUSED if error else ANSWERED
        except KubeletAwayError as error:
            if str(error) != self._away:
                _logger.warning("kubelet does not answer for its pod resources reason=%s", error)
            self._away, outcome = str(error), AWAY
            raise grpclib.GRPCError(const.Status.UNAVAILABLE, str(error)) from error
        finally:
            self.counted(method, outcome)

    async def _unary(self, path: str, stream: Any) -> bool:
        """Pass a call with one request and one response; return whether it was refused."""
        request = await stream.recv_message()
        with self._talking(stream):
            async with supervise.deadline(self._clock, CALL_SECONDS):
                try:
                    answer = await self._called(path, request, stream)
                except grpc_bytes.LOST:
                    # The kubelet has restarted, and the connection did not show it yet.
                    answer = await self._called(path, request, stream)
        if answer.error is None:
            message = await self._with_devices(answer.message) if path in LISTS else answer.message
            await stream.send_initial_metadata(metadata=answer.initial)
            await stream.send_message(message)
        await _end(stream, answer.error, answer.trailing)
        return answer.error is not None

    async def _called(self, path: str, request: bytes | None, stream: Any) -> "_Answer":
        call, message = self._call(path, stream), b""
        try:
            async with call as asked:
                if request is None:
                    await asked.send_request(end=True)
                else:
                    await asked.send_message(request, end=True)
                message = await asked.recv_message() or b""
        except grpclib.GRPCError as error:
            return _Answer(error=error, trailing=call.trailing_metadata)
        return _Answer(message, call.initial_metadata, call.trailing_metadata)

    def _call(self, path: str, stream: Any) -> Any:
        metadata, deadline = stream.metadata, stream.deadline
        return self._kubelet.request(path, _ANY, bytes, bytes, metadata=metadata, deadline=deadline)

    async def _with_devices(self, message: bytes) -> bytes:
        if self._pods.problem:
            text = f"the pods of this node are not known: {self._pods.problem}"
            raise grpclib.GRPCError(const.Status.UNAVAILABLE, text)
        try:
            pods = await self._pods.known(pod_devices.names_of(message))
            found = pod_devices.with_devices(message, pods, self._devices.inventory)
        except pod_devices.ListError as error:
            raise grpclib.GRPCError(const.Status.INTERNAL, str(error)) from error
        self._faults = found.faults
        self.added(found.devices, len(found.faults))
        return found.message

    async def _streamed(self, path: str, stream: Any) -> bool:
        """Pass a call of which nothing is known; return whether it was refused."""
        call = self._call(path, stream)
        refused: grpclib.GRPCError | None = None
        with self._talking(stream):
            try:
                async with call as asked:
                    await asked.send_request()
                    requests = self._spawn("pod resources request", _requests(stream, asked))
                    try:
                        await _responses(asked, stream)
                    finally:
                        await _finish(requests, asked)
            except grpclib.GRPCError as error:
                refused = error
        await _end(stream, refused, call.trailing_metadata)
        return refused is not None

    @contextlib.contextmanager
    def _talking(self, stream: Any) -> Iterator[None]:
        """Make errors of the connection with the kubelet a KubeletAwayError."""
        where = f"kubelet at {self._place.kubelet}"
        try:
            yield
        except TimeoutError as error:
            if stream.deadline is not None and not stream.deadline.time_remaining():
                raise grpclib.GRPCError(const.Status.DEADLINE_EXCEEDED) from error
            raise KubeletAwayError(f"{where}: no response within {CALL_SECONDS:g} s") from error
        except (*grpc_bytes.LOST, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise KubeletAwayError(f"{where}: {type(error).__name__}: {reason}") from error


async def _requests(stream: Any, asked: Any) -> None:
    with contextlib.suppress(*grpc_bytes.LOST):
        async for message in stream:
            await asked.send_message(message)
        await asked.end()


async def _responses(asked: Any, stream: Any) -> None:
    await asked.recv_initial_metadata()
    await stream.send_initial_metadata(metadata=asked.initial_metadata)
    async for message in asked:
        await stream.send_message(message)


async def _finish(requests: asyncio.Task[None], asked: Any) -> None:
    """End the requests, also where the kubelet has not waited for all of them."""
    requests.cancel()
    await asyncio.wait([requests])
    if requests.cancelled():
        with contextlib.suppress(*grpc_bytes.LOST):
            await asked.end()


async def _end(stream: Any, error: grpclib.GRPCError | None, trailing: Any) -> None:
    """End a call as the kubelet did."""
    if error is None:
        await stream.send_trailing_metadata(metadata=trailing)
        return
    status = {"status": error.status, "status_message": error.message}
    await stream.send_trailing_metadata(**status, status_details=error.details, metadata=trailing)


def _prepare(place: Place) -> None:
    """Take away the socket of an earlier agent; OSError where it may not be taken."""
    place.socket.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if place.socket.samefile(place.kubelet):
            raise FileExistsError(errno.EEXIST, "it is the socket of the kubelet")
    place.socket.unlink(missing_ok=True)


class _Answer(msgspec.Struct, frozen=True):
    message: bytes = b""
    initial: Any = None
    trailing: Any = None
    error: grpclib.GRPCError | None = None
