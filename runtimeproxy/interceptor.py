"""What happens at intercepted calls: hooks before and after them, and what is remembered."""

import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from api.koordinator import runtime_hooks
from api.wire import protobuf_schema
from process.runtime import metrics, supervise
from runtimeproxy import unary
from runtimeproxy.cri import calls, merge, messages, records
from runtimeproxy.hooks import servers as hook_servers
from runtimeproxy.http2 import grpc

_STATUS_SECONDS: Final = 5.0
_logger = logging.getLogger(__name__)


class Decision(msgspec.Struct, frozen=True):
    """How an intercepted call goes on."""

    message: bytes | None = None
    """Another request than that of the kubelet."""
    refusal: str = ""
    """Why the runtime does not get the call."""
    code: int = grpc.UNKNOWN


UNCHANGED: Final = Decision()
Reply = Callable[[Decision], None]


class Call:
    """One intercepted call until it is over."""

    def __init__(self, kind: calls.Call) -> None:
        self.kind = kind
        self.request: Any = None
        """The request as far as it is read, None where it cannot be read."""
        self.pod: records.Pod | None = None
        self.container: records.Container | None = None
        self.identity = ""
        """The id of the sandbox or container, empty before it has one."""
        self.skipped = False
        """Whether no hook server is asked about this pod."""


class Skip(msgspec.Struct, frozen=True):
    """The label of pods about which no hook server is asked."""

    key: str
    value: str


class Interceptor:
    """Keeps the store, and asks hook servers."""

    def __init__(
        self,
        servers: hook_servers.Servers,
        runtime: unary.Target,
        skip: Skip,
        supervisor: supervise.Supervisor,
        figures: metrics.Registry,
    ) -> None:
        self.store = records.Store()
        self._servers, self._runtime, self._skip = servers, runtime, skip
        self._supervisor = supervisor
        self._counts = figures.counter(
            "koord_runtimeproxy_calls_total",
            "Intercepted calls of the kubelet, by method and by how they went on",
            ("method", "outcome"),
        )

    async def restore(self) -> None:
        """Ask the runtime for the pods and containers that exist; raises unary.CallError.

        A list that cannot be read is such an error too.
        """
        await self._runtime.call(messages.path("Version"), b"", _STATUS_SECONDS)
        pods = await self._runtime.call(messages.path("ListPodSandbox"), b"", _STATUS_SECONDS)
        containers = await self._runtime.call(messages.path("ListContainers"), b"", _STATUS_SECONDS)
        try:
            self.store.remember_listed(pods, containers)
        except protobuf_schema.DecodeError as error:
            raise unary.CallError(f"its lists cannot be read: {error}") from error
        _logger.info(
            "runtime listed pods=%d containers=%d",
            len(self.store.pods),
            len(self.store.containers),
        )

    def begin(self, method: str, message: bytes | None, reply: Reply) -> tuple[Call, Any]:
        """Take a request; `reply` is called once, at once where no hook server is asked.

        Returns the call, and the task that asks or None.
        """
        call = Call(calls.CALLS[method])
        try:
            if message is not None:
                self._read(call, message)
        except protobuf_schema.DecodeError:
            call.request = None
        before = call.kind.before
        if call.request is None or call.skipped:
            self._count(call, "skipped" if call.skipped else "unreadable")
        elif before is not None and self._servers.asked_at(before):
            return call, self._supervisor.spawn("hook", self._before(call, before, reply))
        reply(UNCHANGED)
        return call, None

    def end(self, call: Call, message: bytes | None) -> None:
        """Take the response of the runtime, None where the call failed."""
        if call.request is None or message is None:
            return
        try:
            self._remember(call, message)
        except protobuf_schema.DecodeError as error:
            _logger.warning("response is not read method=%s reason=%s", call.kind.name, error)
            return
        after = call.kind.after
        known = call.pod is not None and not call.skipped
        if known and after is not None and self._servers.asked_at(after):
            self._supervisor.spawn("hook", self._after(call, after))
        self._forget(call)

    def _read(self, call: Call, message: bytes) -> None:
        call.request = request = messages.read(call.kind.request, message)
        if call.kind is calls.RUN_POD_SANDBOX:
            call.pod = records.pod_of(request)
        elif call.kind is calls.CREATE_CONTAINER:
            call.container = records.container_of(request)
        elif call.kind.request == "SandboxRequest":
            call.identity = protobuf_schema.text(request.pod_sandbox_id)
        else:
            call.identity = protobuf_schema.text(request.container_id)
        self._find(call)

    def _find(self, call: Call) -> None:
        """Find what is remembered of the pod and the container of a call."""
        if call.container is None and call.kind.request != "SandboxRequest":
            call.container = self.store.containers.get(call.identity)
        if call.pod is None:
            sandbox = call.identity if call.container is None else call.container.pod
            call.pod = self.store.pods.get(sandbox)
        if call.pod is not None:
            call.skipped = call.pod.labels.get(self._skip.key) == self._skip.value

    async def _before(self, call: Call, stage: runtime_hooks.Stage, reply: Reply) -> None:
        decision = UNCHANGED
        try:
            decision = await self._asked(call, stage)
        except hook_servers.RefusedError as error:
            self._count(call, "refused")
            decision = Decision(refusal=str(error))
        except Exception:
            # Whatever a hook server answers, the kubelet's call goes on.
            _logger.exception("response of a hook server is not used stage=%s", stage.value)
            self._count(call, "unchanged")
        reply(decision)

    async def _asked(self, call: Call, stage: runtime_hooks.Stage) -> Decision:
        if call.pod is None:
            # Its sandbox was made while this proxy did not see the response.
            await self._ask_again(call)
        if call.pod is None or call.skipped:
            self._count(call, "unknown" if call.pod is None else "skipped")
            return UNCHANGED
        await self._complete(call)
        shown = self._shown(call)
        response = await self._servers.ask(stage, self._about(call, shown))
        if response is None or not self._merged(call, response, shown):
            self._count(call, "unchanged")
            return UNCHANGED
        self._count(call, "changed")
        return Decision(call.request.SerializeToString())

    async def _after(self, call: Call, stage: runtime_hooks.Stage) -> None:
        try:
            await self._complete(call)
            await self._servers.ask(stage, self._about(call, self._shown(call)))
        except hook_servers.RefusedError as error:
            # The runtime has done what was asked; nothing is left to refuse.
            _logger.warning("hook after a call failed stage=%s reason=%s", stage.value, error)

    def _shown(self, call: Call) -> Any:
        """Return the LinuxContainerResources of the container that a call is about."""
        if call.container is None:
            return None
        if call.kind is calls.UPDATE_CONTAINER:
            return records.shown(call.container, call.request)
        return messages.read("LinuxContainerResources", call.container.resources or b"")

    def _about(self, call: Call, shown: Any) -> Any:
        assert call.pod is not None
        if call.container is None:
            running = call.kind is calls.RUN_POD_SANDBOX
            return merge.about_pod(call.pod, call.request if running else None)
        return merge.about_container(call.pod, call.container, call.identity, shown)

    def _merged(self, call: Call, response: Any, shown: Any) -> bool:
        if call.kind is calls.RUN_POD_SANDBOX:
            return merge.run_pod_sandbox(call.request, response)
        if call.kind is calls.CREATE_CONTAINER:
            return merge.create_container(call.request, response)
        if call.kind is calls.UPDATE_CONTAINER:
            return merge.update_container(call.request, shown, response)
        return False

    async def _complete(self, call: Call) -> None:
        """Ask the runtime for what its lists do not tell of a pod or container."""
        try:
            if call.container is not None and call.container.resources is None:
                asked = messages.new(
                    "ContainerStatusRequest", container_id=call.identity, verbose=True
                )
                found = await self._status("ContainerStatus", asked)
                told = records.completed_container(call.container, found)
                call.container = self.store.complete_container(call.identity, call.container, told)
            if call.pod is not None and call.pod.cgroup_parent is None:
                identity = call.container.pod if call.container is not None else call.identity
                asked = messages.new(
                    "PodSandboxStatusRequest", pod_sandbox_id=identity, verbose=True
                )
                found = await self._status("PodSandboxStatus", asked)
                call.pod = records.completed_pod(call.pod, found)
                self.store.complete_pod(identity, call.pod)
        except (unary.CallError, protobuf_schema.DecodeError) as error:
            _logger.warning("runtime tells no status call=%s reason=%s", call.kind.name, error)

    async def _ask_again(self, call: Call) -> None:
        try:
            await self.restore()
        except unary.CallError as error:
            _logger.warning("runtime lists nothing call=%s reason=%s", call.kind.name, error)
        self._find(call)

    async def _status(self, method: str, asked: Any) -> bytes:
        request = asked.SerializeToString()
        return await self._runtime.call(messages.path(method), request, _STATUS_SECONDS)

    def _remember(self, call: Call, message: bytes) -> None:
        text = protobuf_schema.text
        if call.kind is calls.RUN_POD_SANDBOX:
            found = messages.read("RunPodSandboxResponse", message)
            self.store.pods[text(found.pod_sandbox_id)] = records.pod_of(call.request)
        elif call.kind is calls.CREATE_CONTAINER and call.pod is not None:
            found = messages.read("CreateContainerResponse", message)
            made = records.container_of(call.request)
            self.store.containers[text(found.container_id)] = made
        elif call.kind is calls.UPDATE_CONTAINER:
            # Other calls may have updated or removed it since this one began.
            known = self.store.containers.get(call.identity)
            if known is not None:
                self.store.containers[call.identity] = records.updated(known, call.request)

    def _forget(self, call: Call) -> None:
        if call.kind in (calls.STOP_POD_SANDBOX, calls.REMOVE_POD_SANDBOX):
            self.store.forget_pod(call.identity)
        elif call.kind in (calls.STOP_CONTAINER, calls.REMOVE_CONTAINER):
            self.store.containers.pop(call.identity, None)

    def _count(self, call: Call, outcome: str) -> None:
        self._counts.labels(call.kind.name, outcome).inc()
