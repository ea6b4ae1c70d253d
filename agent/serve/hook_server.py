"""Serves the hook API of CRI proxies, in a thread of its own that waits for no tick.

A proxy asks before the runtime has given the container an id, hence a cgroup. What is delivered is
therefore kept until the proxy asks again before the container starts, and is recorded then.
"""

import asyncio
import contextlib
import json
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import grpclib
import grpclib.const
import grpclib.server
import msgspec

from agent.apply import deliveries
from agent.model import cgroup_layout
from agent.nri import messages
from agent.serve import container_events, hook_messages, socket_files
from api.koordinator import runtime_hooks

_PENDING: Final = "koord-pending"
MOST_PENDING: Final = 4096
FILE: Final = "koordlet.json"
CLOSE_SECONDS: Final = 2.0
AGAIN_SECONDS: Final = 10.0
"""Time between two attempts to listen."""
_Stage = runtime_hooks.Stage
SERVED: Final = (
    _Stage.PRE_RUN_POD_SANDBOX,
    _Stage.PRE_CREATE_CONTAINER,
    _Stage.PRE_START_CONTAINER,
    _Stage.PRE_UPDATE_CONTAINER_RESOURCES,
)
_logger = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True):
    """Where a proxy finds the server, and what it says of it."""

    socket: Path
    host_socket: str
    """The same socket as the host sees it."""
    folder: Path
    """Where hook servers register."""
    failure_policy: str = "Ignore"
    fail_on_problem: bool = False
    """Whether a hook that gives nothing is an error for the proxy."""
    disabled: frozenset[str] = frozenset()
    runtime: str = "containerd"
    """What ids of containers begin with, before `://`."""


class Unnamed:
    """What is delivered to containers without an id yet."""

    def __init__(self, record: container_events.Record) -> None:
        self._record = record
        self._waiting: OrderedDict[str, list[deliveries.Delivered]] = OrderedDict()

    def add(self, delivered: list[deliveries.Delivered]) -> None:
        """Record what is delivered to a cgroup, or keep it while the cgroup has no name."""
        for one in delivered:
            _, found, key = one.group.partition(_PENDING)
            if found:
                self._waiting.setdefault(key.removesuffix(".scope"), []).append(one)
        while len(self._waiting) > MOST_PENDING:
            self._waiting.popitem(last=False)
        named = [one for one in delivered if _PENDING not in one.group]
        if named:
            self._record(named)

    def begin(self, key: str) -> None:
        """Forget what was delivered to an earlier attempt at a container."""
        self._waiting.pop(key, None)

    def name(self, key: str, group_of: Callable[[str], str]) -> None:
        """Record what waits for the name of a cgroup; `group_of` finds it below its pod's."""
        waiting = self._waiting.pop(key, [])
        named = []
        for one in waiting:
            pod = one.group.rpartition("/")[0]
            named.append(msgspec.structs.replace(one, group=group_of(pod)))
        if named:
            self._record(named)


class HookServer:
    """The thread that serves one socket; it has the same face as a link of NRI."""

    def __init__(
        self,
        place: Place,
        events: container_events.Events,
        unnamed: Unnamed,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        """`wait` returns early when the server is closed."""
        self.problem = "not started yet"
        """Why no proxy is answered, empty while the socket listens."""
        self.answered: Callable[[str, float], None] = lambda _method, _seconds: None
        """Takes the method of each request, and the seconds until its answer was made."""
        self._place, self._events, self._unnamed = place, events, unnamed
        self._wait = wait
        self._closed = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="hook-server", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def close(self) -> None:
        """Listen no more; proxies then do what the failure policy says."""
        self._closed.set()
        loop, ended = self._loop, self._ended
        if loop is not None and ended is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def __mapping__(self) -> Mapping[str, grpclib.const.Handler]:
        """Return the methods of the service, as the library of gRPC asks for them."""
        return {
            stage.path: grpclib.const.Handler(
                self._handler(stage),
                grpclib.const.Cardinality.UNARY_UNARY,
                runtime_hooks.CLASSES[stage.request],
                runtime_hooks.CLASSES[stage.response],
            )
            for stage in _Stage
        }

    def answer(self, stage: runtime_hooks.Stage, asked: Any) -> Any:
        """Return the response of a stage; those of no hooks change nothing."""
        if stage is _Stage.PRE_RUN_POD_SANDBOX:
            pod = hook_messages.pod_of(asked)
            self._events.state_changed(messages.Event.RUN_POD_SANDBOX, pod, None)
        if stage.of_pod:
            return hook_messages.echoed_pod(asked)
        pod = hook_messages.pod_of_container(asked)
        if stage is _Stage.PRE_CREATE_CONTAINER:
            key = _key(asked)
            self._unnamed.begin(key)
            container = hook_messages.container_of(asked, self._path(f"{_PENDING}{key}"))
            return hook_messages.adjusted(asked, self._events.create_container(pod, container))
        container = hook_messages.container_of(asked, self._path(asked.container_meta.id))
        if stage is _Stage.PRE_UPDATE_CONTAINER_RESOURCES:
            limits = container.linux.resources
            found = self._events.update_container(pod, container, limits)
            return hook_messages.updated(asked, found)
        if stage is _Stage.PRE_START_CONTAINER:
            self._born(asked, pod, container)
            self._events.state_changed(messages.Event.START_CONTAINER, pod, container)
        return hook_messages.echoed_container(asked)

    def _born(self, asked: Any, pod: Any, container: Any) -> None:
        self._events.state_changed(messages.Event.POST_CREATE_CONTAINER, pod, container)
        arranged = self._events.snapshot.layout
        identity = f"{self._place.runtime}://{asked.container_meta.id}"
        if arranged is None:
            return
        try:
            self._unnamed.name(_key(asked), lambda group: arranged.container_group(group, identity))
        except (deliveries.DeliveryError, cgroup_layout.LayoutError) as error:
            _logger.warning("what was delivered is not recorded reason=%s", error)

    def _path(self, name: str) -> str:
        """Return how a runtime names the cgroup of a container."""
        arranged = self._events.snapshot.layout
        if arranged is None or arranged.driver != "systemd":
            return f"/pod/{name}"
        return f"pod:{_SCOPES.get(self._place.runtime, self._place.runtime)}:{name}"

    def _handler(self, stage: runtime_hooks.Stage) -> Callable[[Any], Any]:
        async def handle(stream: Any) -> None:
            asked = await stream.recv_message()
            if asked is None:
                return
            begin = time.monotonic()
            before = self._events.counts["problem"]
            made = self.answer(stage, asked)
            self.answered(stage.value, time.monotonic() - begin)
            if self._place.fail_on_problem and self._events.counts["problem"] > before:
                text = (
                    "a hook could not give the container its values; the log of the agent says why"
                )
                raise grpclib.GRPCError(grpclib.const.Status.INTERNAL, text)
            await stream.send_message(made)

        return handle

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                asyncio.run(self._serve())
                self.problem = "it has ended"
            except OSError as error:
                self.problem = f"{error.filename or self._place.socket}: {error.strerror or error}"
                _logger.warning("hook server does not listen reason=%s", self.problem)
            self._wait(self._closed, AGAIN_SECONDS)

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        if self._closed.is_set():
            # Closed before there was a loop that could be told.
            return
        path = self._place.socket
        _prepare(path)
        server = grpclib.server.Server([self])
        await server.start(path=str(path))
        made = socket_files.inode(path)
        try:
            os.chmod(path, 0o600)  # noqa: PTH101 - a socket in memory, nothing that could block
            register(self._place)
            self.problem = ""
            await self._ended.wait()
        finally:
            server.close()
            socket_files.remove(path, made)


_SCOPES: Final = {"containerd": "cri-containerd", "cri-o": "crio"}


def register(place: Place) -> None:
    """Write the registration file, whole or not at all; raises OSError."""
    stages: Iterable[str] = (one.value for one in SERVED if one.value not in place.disabled)
    content = {
        "remote-endpoint": place.host_socket,
        "failure-policy": place.failure_policy,
        "runtime-hooks": list(stages),
    }
    place.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    # No proxy reads a name that does not end in json.
    fresh = place.folder / f"{FILE}.new"
    fresh.write_text(json.dumps(content, indent="\t") + "\n")
    fresh.replace(place.folder / FILE)


def _prepare(path: Path) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)


def _key(asked: Any) -> str:
    """Return what names a container before it has an id."""
    return f".{messages.text(asked.pod_meta.uid)}.{messages.text(asked.container_meta.name)}"
