"""A container runtime as a plug-in sees it; what it sends is written without the plug-in's code."""

import pathlib
import socket
import struct

from agent.nri import messages
from tests import protobuf_messages as wire

PATIENCE = 60.0
SERVICE = b"nri.pkg.api.v1alpha1.Plugin"


def framed(connection: int, stream: int, kind: int, data: bytes, pieces: int = 1) -> bytes:
    """Return a message of ttrpc, cut into several multiplexer frames."""
    whole = struct.pack(">IIBB", len(data), stream, kind, 0) + data
    size = -(-len(whole) // pieces)
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    return b"".join(struct.pack(">II", connection, len(part)) + part for part in parts)


def request(method: str, payload: bytes, service: bytes = SERVICE) -> bytes:
    """Return the protobuf of a request."""
    return wire.field(1, service) + wire.field(2, method.encode()) + wire.field(3, payload)


def texts(number: int, pairs: dict[str, str]) -> bytes:
    """Return a map of texts."""
    entries = (wire.field(1, k.encode()) + wire.field(2, v.encode()) for k, v in pairs.items())
    return b"".join(wire.field(number, entry) for entry in entries)


def pod(uid: str, labels: dict[str, str] | None = None, **annotations: str) -> bytes:
    """Return a PodSandbox."""
    named = ((1, f"sandbox-{uid}"), (2, f"name-{uid}"), (3, uid), (4, "default"))
    linux = wire.field(3, f"/kubepods/pod{uid}".encode())
    plain = b"".join(wire.field(number, value.encode()) for number, value in named)
    return plain + texts(5, labels or {}) + texts(6, annotations) + wire.field(8, linux)


def container(identity: str, uid: str, name: str = "app") -> bytes:
    """Return a Container."""
    named = ((1, identity), (2, f"sandbox-{uid}"), (3, name))
    return b"".join(wire.field(number, value.encode()) for number, value in named)


class Runtime:
    """Listens, takes one plug-in at a time and calls it."""

    def __init__(self, path: pathlib.Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(PATIENCE)
        self._connected: socket.socket | None = None
        self._stream = -1
        self.pieces = 1

    def close(self) -> None:
        """End everything."""
        self.drop()
        self._listener.close()

    def drop(self) -> None:
        """End the conversation."""
        if self._connected is not None:
            self._connected.close()
        self._connected = None

    def accept(self, refusal: str = "") -> messages.Any:
        """Take a plug-in and answer its registration; return what it said."""
        self.drop()
        self._connected, _ = self._listener.accept()
        self._connected.settimeout(PATIENCE)
        self._stream = -1
        connection, stream, data = self._read()
        assert (connection, stream) == (2, 1)
        asked = messages.read("Request", data)
        assert (asked.service, asked.method) == ("nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin")
        status = wire.field(1, 2) + wire.field(2, refusal.encode())
        self._connected.sendall(framed(2, 1, 2, wire.field(1, status) if refusal else b""))
        return messages.read("RegisterPluginRequest", asked.payload)

    def greet(self, parts: list[bytes] | None = None) -> int:
        """Configure a plug-in and hand everything over in parts; return its subscription."""
        said = wire.field(2, b"containerd") + wire.field(3, b"v2.2.9") + wire.field(5, 2000)
        events = self.call("Configure", said, "ConfigureResponse").events
        listed = parts or [b""]
        for position, part in enumerate(listed, 1):
            more = position < len(listed)
            answer = self.call(
                "Synchronize", part + wire.field(3, int(more)), "SynchronizeResponse"
            )
            assert bool(answer.more) is more
        return int(events)

    def call(self, method: str, payload: bytes, kind: str) -> messages.Any:
        """Call the plug-in; an error of its own becomes an AssertionError."""
        response = self.answer(request(method, payload))
        assert not response.status.code, response.status.message
        return messages.read(kind, response.payload)

    def answer(self, data: bytes) -> messages.Any:
        """Send a request as it is, and return the response."""
        assert self._connected is not None
        self._stream += 2
        self._connected.sendall(framed(1, self._stream, 1, data, self.pieces))
        connection, stream, answer = self._read()
        assert (connection, stream) == (1, self._stream)
        return messages.read("Response", answer)

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self._connected is not None
        self._connected.sendall(data)

    def ended(self) -> bool:
        """Wait until the plug-in says something or ends, and tell whether it ended."""
        assert self._connected is not None
        return not self._connected.recv(1)

    def _read(self) -> tuple[int, int, bytes]:
        connection, length = struct.unpack(">II", self._exactly(8))
        whole = self._exactly(length)
        size, stream, _, _ = struct.unpack(">IIBB", whole[:10])
        assert size == len(whole) - 10
        return connection, stream, whole[10:]

    def _exactly(self, length: int) -> bytes:
        assert self._connected is not None
        found = b""
        while len(found) < length:
            part = self._connected.recv(length - len(found))
            assert part, "the plug-in ended the connection"
            found += part
        return found
