"""Watch events of pods, read from their protobuf bytes without decoding them. Pure.

Decoding every pod would make a watcher of thousands of events slow enough for the API server to cut
it off, and JSON would cost the API server an encoding that a scheduler does not ask for.
"""

import re
from typing import NamedTuple

from api import names

ADDED, MODIFIED, DELETED, ERROR = "ADDED", "MODIFIED", "DELETED", "ERROR"

# ObjectMeta begins with name, generateName, namespace, selfLink, uid and resourceVersion.
_METADATA = re.compile(
    rb"\x0a.([-a-z0-9.]+)\x12\x00\x1a.([-a-z0-9.]+)\x22\x00"
    rb"\x2a\x24[0-9a-f-]{36}\x32(.)([0-9]+)",
    re.DOTALL,
)
_NODE_NAME = 10 << 3 | 2
"""The key of PodSpec.nodeName in protobuf: field 10, a text."""
_GATES = b"\xb2\x02"
"""The key of PodSpec.schedulingGates in protobuf: field 38, a message."""


class PodEvent(NamedTuple):
    """What one watch event says of a pod."""

    kind: str
    name: str
    version: str
    bound: bool
    gated: bool
    """Whether it waits behind the gate of elastic quota."""


class ReadError(ValueError):
    """A frame that holds no pod, such as the end of a watch."""


def read(frame: bytes, node_prefix: bytes, node_length: int) -> PodEvent:
    """Read one frame of a watch of pods whose nodes have names of one length and prefix."""
    kind = frame[2 : 2 + frame[1]].decode()
    found = _METADATA.search(frame)
    if found is None or kind == ERROR:
        raise ReadError(f"an event {kind} without a pod: {frame[:300]!r}")
    name, _, length, digits = found.groups()
    bound = bytes((_NODE_NAME, node_length)) + node_prefix in frame
    return PodEvent(kind, name.decode(), digits[: length[0]].decode(), bound, GATE in frame)


def gate(name: str) -> bytes:
    """Return how protobuf writes that a pod waits behind a scheduling gate."""
    text = name.encode()
    return _GATES + bytes((len(text) + 2, 10, len(text))) + text


GATE = gate(names.GATE_QUOTA)
"""The gate of elastic quota as protobuf writes it; managed fields and conditions name it too."""
