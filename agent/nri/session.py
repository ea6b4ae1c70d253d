"""The conversation of a plug-in with a container runtime over one connection: bytes in, bytes out.

The plug-in registers; the runtime configures it, hands over its pods and containers in parts, and
then asks at every event that the plug-in subscribed to. No I/O and no clock.
"""

import enum
import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from agent.nri import frames, messages

PLUGIN: Final = "nri.pkg.api.v1alpha1.Plugin"
RUNTIME: Final = "nri.pkg.api.v1alpha1.Runtime"
_REGISTER_STREAM: Final = 1
_UNIMPLEMENTED, _INVALID = 12, 3
EVENTS: Final[Mapping[str, messages.Event]] = {
    "RunPodSandbox": messages.Event.RUN_POD_SANDBOX,
    "StopPodSandbox": messages.Event.STOP_POD_SANDBOX,
    "RemovePodSandbox": messages.Event.REMOVE_POD_SANDBOX,
    "PostCreateContainer": messages.Event.POST_CREATE_CONTAINER,
    "StartContainer": messages.Event.START_CONTAINER,
    "PostStartContainer": messages.Event.POST_START_CONTAINER,
    "PostUpdateContainer": messages.Event.POST_UPDATE_CONTAINER,
    "RemoveContainer": messages.Event.REMOVE_CONTAINER,
}
"""Calls of their own that later runtimes make in place of StateChange."""
_logger = logging.getLogger(__name__)


class SessionError(ValueError):
    """The runtime refuses the plug-in, or says what no runtime says."""


class Phase(enum.Enum):
    """How far a conversation has come."""

    NEW = "new"
    REGISTERING = "registering"
    CONFIGURED = "configured"
    SYNCHRONIZED = "synchronized"
    CLOSED = "closed"


class Answer(NamedTuple):
    """The response to one request."""

    method: str
    """What was called, empty where it could not be read."""
    data: bytes


class Handler(Protocol):
    """What a plug-in answers; messages are those of `messages`."""

    def synchronized(self, pods: list[bytes], containers: list[bytes]) -> None:
        """Take all pods and containers that exist already, as `messages.read` takes them."""

    def create_container(self, pod: Any, container: Any) -> Any:
        """Return the ContainerAdjustment of a container that is about to be created."""

    def update_container(self, pod: Any, container: Any, resources: Any) -> Any:
        """Return the LinuxResources to be set in place of those of an update, None for these."""

    def state_changed(self, event: int, pod: Any, container: Any) -> None:
        """Take any other event."""


class Session:
    """One conversation; a new connection needs a new one."""

    def __init__(self, name: str, index: str, events: int, handler: Handler) -> None:
        """`index` is two digits: runtimes ask plug-ins in this order."""
        self.phase = Phase.NEW
        self.runtime = ""
        """Name and version of the runtime, once it has said them."""
        self.failures = 0
        """Requests at which the handler failed and nothing was adjusted."""
        self._name, self._index, self._events = name, index, events
        self._handler = handler
        self._decoder = frames.Decoder()
        self._method = ""
        self._pods: list[bytes] = []
        self._containers: list[bytes] = []
        self._methods: Mapping[str, Callable[[bytes], Any]] = {
            "Configure": self._configure,
            "Synchronize": self._synchronize,
            "Shutdown": self._shutdown,
            "CreateContainer": self._create,
            "UpdateContainer": self._update,
            "StopContainer": lambda _data: messages.new("StopContainerResponse"),
            "UpdatePodSandbox": lambda _data: messages.new("Empty"),
            "StateChange": self._state,
            **{name: functools.partial(self._event, event) for name, event in EVENTS.items()},
        }

    def begin(self) -> bytes:
        """Return the registration, with which a plug-in begins."""
        self.phase = Phase.REGISTERING
        asked = messages.new(
            "RegisterPluginRequest", plugin_name=self._name, plugin_idx=self._index
        )
        payload = asked.to_bytes()
        request = messages.new("Request", service=RUNTIME, method="RegisterPlugin", payload=payload)
        data = request.to_bytes()
        return frames.encoded(
            frames.Message(frames.RUNTIME_SERVICE, _REGISTER_STREAM, frames.REQUEST, data)
        )

    def receive(self, data: bytes) -> Iterator[Answer]:
        """Take bytes of the runtime; return an answer to each request that they complete.

        Raises SessionError or FrameError where the connection cannot go on.
        """
        for message in self._decoder.feed(data):
            if message.connection == frames.RUNTIME_SERVICE:
                self._registered(message)
            elif message.type == frames.REQUEST:
                self._method = ""
                answer = self._answer(message.data).to_bytes()
                whole = frames.encoded(
                    frames.Message(message.connection, message.stream, frames.RESPONSE, answer)
                )
                yield Answer(self._method, whole)

    def _registered(self, message: frames.Message) -> None:
        if message.type != frames.RESPONSE or message.stream != _REGISTER_STREAM:
            raise SessionError(f"a message of type {message.type} where none was asked for")
        try:
            response = messages.read("Response", message.data)
        except messages.DecodeError as error:
            raise SessionError(f"the answer to the registration: {error}") from error
        if response.status.code:
            raise SessionError(f"the runtime refuses: {messages.text(response.status.message)}")

    def _answer(self, data: bytes) -> Any:
        try:
            request = messages.read("Request", data)
            method = self._methods.get(request.method)
            if request.service != PLUGIN or method is None:
                named = f"{messages.text(request.service)}/{messages.text(request.method)}"
                return _refusal(_UNIMPLEMENTED, f"no method {named[:100]}")
            self._method = request.method
            found = method(request.payload)
        except messages.DecodeError as error:
            return _refusal(_INVALID, str(error))
        return messages.new("Response", payload=found.to_bytes())

    def _configure(self, data: bytes) -> Any:
        said = messages.read("ConfigureRequest", data)
        name, version = messages.text(said.runtime_name), messages.text(said.runtime_version)
        self.runtime = f"{name} {version}".strip()
        self.phase = Phase.CONFIGURED
        return messages.new("ConfigureResponse", events=self._events)

    def _synchronize(self, data: bytes) -> Any:
        part = messages.read("SynchronizeRequest", data)
        self._pods.extend(part.pods)
        self._containers.extend(part.containers)
        if part.more:
            return messages.new("SynchronizeResponse", more=True)
        pods, containers = self._pods, self._containers
        self._pods, self._containers = [], []
        self._guarded("Synchronize", lambda: self._handler.synchronized(pods, containers))
        self.phase = Phase.SYNCHRONIZED
        return messages.new("SynchronizeResponse")

    def _shutdown(self, _data: bytes) -> Any:
        self.phase = Phase.CLOSED
        return messages.new("Empty")

    def _create(self, data: bytes) -> Any:
        asked = messages.read("CreateContainerRequest", data)
        found = self._guarded(
            "CreateContainer", lambda: self._handler.create_container(asked.pod, asked.container)
        )
        return messages.new("CreateContainerResponse", adjust=found)

    def _update(self, data: bytes) -> Any:
        asked = messages.read("UpdateContainerRequest", data)
        found = self._guarded(
            "UpdateContainer",
            lambda: self._handler.update_container(
                asked.pod, asked.container, asked.linux_resources
            ),
        )
        if found is None:
            return messages.new("UpdateContainerResponse")
        # Without the id the runtime would apply the update to no container.
        update = messages.new("ContainerUpdate", container_id=asked.container.id)
        update.linux.resources.copy_from(found)
        return messages.new("UpdateContainerResponse", update=[update])

    def _state(self, data: bytes) -> Any:
        said = messages.read("StateChangeEvent", data)
        self._guarded(
            "StateChange",
            lambda: self._handler.state_changed(said.event, said.pod, said.container),
        )
        return messages.new("Empty")

    def _event(self, event: messages.Event, data: bytes) -> Any:
        said = messages.read("EventRequest", data)
        self._guarded(
            event.name, lambda: self._handler.state_changed(event, said.pod, said.container)
        )
        return messages.new("Empty")

    def _guarded(self, what: str, ask: Callable[[], Any]) -> Any:
        """Ask the handler; where it fails nothing is adjusted, and the container starts."""
        try:
            return ask()
        except Exception:
            self.failures += 1
            _logger.exception("NRI request failed, nothing is adjusted method=%s", what)
            return None


def _refusal(code: int, why: str) -> Any:
    return messages.new("Response", status=messages.new("Status", code=code, message=why))
