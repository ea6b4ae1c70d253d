"""Stands between a container runtime and its NRI plug-in, and times how long the runtime waits.

usage: python -m tests.planes.runtime.nri_relay PATH RUNTIME; listens for plug-ins at one socket,
connects each with a runtime at the other, and writes what it has seen as lines of JSON. Bytes pass
as they are. A process inside the node, since what it times must not wait for the tests.
"""

import contextlib
import dataclasses
import json
import socket
import sys
import threading
import time

from agent.nri import frames, messages
from process.runtime import clock as clocks
from simulator.processes import children
from tests.planes.node import node

NAME = "relay"
CHUNK = 256 << 10
PATIENCE = 5.0
RUNTIME, PLUG_IN = "runtime", "plug-in"
SANDBOX = "RUN_POD_SANDBOX"
BEFORE_START = {"CreateContainer", "POST_CREATE_CONTAINER", "START_CONTAINER"}
"""What a runtime asks about a container before its first process runs."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """How long a runtime has waited for one answer."""

    event: str
    pod: str
    """The id of the sandbox."""
    container: str
    seconds: float


class Relay:
    """The process inside a node, and what it has seen so far."""

    def __init__(self, folder):
        self.path = folder / "relayed-nri.sock"
        self._log = folder / f"{NAME}.log"

    @property
    def answers(self):
        """Every answer of a plug-in."""
        return [Answer(**one) for one in self._lines() if "ended" not in one]

    @property
    def ended(self):
        """Who has ended each connection."""
        return [one["ended"] for one in self._lines() if "ended" in one]

    def _lines(self):
        text = self._log.read_text()
        # The last line may not be whole yet.
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


async def inside(real_node):
    """Start a relay that is a service of a whole node; it ends with the node."""
    made = Relay(real_node.workdir)
    words = (__spec__.name, made.path, node.NRI)
    child = await real_node.start_module(NAME, *words)

    async def listens():
        return made.path.exists()

    await children.ready(child, listens, clock=clocks.SystemClock())
    return made


def delays(answers):
    """The seconds that each container has waited altogether, those of its pod included."""
    of_pods = {one.pod: one.seconds for one in answers if one.event == SANDBOX}
    found = {}
    for one in answers:
        if one.event in BEFORE_START:
            before = found.get(one.container, of_pods.get(one.pod, 0.0))
            found[one.container] = before + one.seconds
    return found


class _Connection:
    """One plug-in and the runtime that asks it: a thread for each direction."""

    def __init__(self, runtime, plug_in):
        self._asked = {}
        self._ended = False
        self._lock = threading.Lock()
        self._ends = {RUNTIME: runtime, PLUG_IN: plug_in}
        for source in self._ends:
            threading.Thread(target=self._carry, args=(source,), daemon=True).start()

    def _carry(self, source):
        target = PLUG_IN if source == RUNTIME else RUNTIME
        read, write = self._ends[source], self._ends[target]
        decoder = frames.Decoder()
        with contextlib.suppress(OSError):
            while data := read.recv(CHUNK):
                now = time.perf_counter()
                found = list(decoder.feed(data))
                if source == RUNTIME:
                    self._requests(found, now)
                write.sendall(data)
                if source == PLUG_IN:
                    self._responses(found, now)
        self._end(source)

    def _requests(self, found, now):
        for message in found:
            if message.connection == frames.PLUGIN_SERVICE:
                self._asked[message.stream] = (now, message.data)

    def _responses(self, found, now):
        for message in found:
            if message.connection == frames.PLUGIN_SERVICE:
                begin, data = self._asked.pop(message.stream)
                _write(_about(data) | {"seconds": now - begin})

    def _end(self, source):
        with self._lock:
            is_second, self._ended = self._ended, True
            if not is_second:
                _write({"ended": source})
            for end in self._ends.values():
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                # The thread of the other direction may still use both.
                if is_second:
                    end.close()


def _about(data):
    """What a request is about: the event, the sandbox and the container."""
    request = messages.read("Request", data)
    kinds = {"CreateContainer": "CreateContainerRequest", "StateChange": "StateChangeEvent"}
    if request.method not in kinds:
        return {"event": request.method, "pod": "", "container": ""}
    said = messages.read(kinds[request.method], request.payload)
    event = messages.Event(said.event).name if request.method == "StateChange" else request.method
    return {"event": event, "pod": said.pod.id, "container": said.container.id}


def _write(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(path, target):
    """Carry connections until the process is killed."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    while True:
        plug_in, _ = listener.accept()
        runtime = socket.socket(socket.AF_UNIX)
        try:
            runtime.settimeout(PATIENCE)
            runtime.connect(target)
            runtime.settimeout(None)
        except OSError:
            runtime.close()
            plug_in.close()
        else:
            _Connection(runtime, plug_in)


if __name__ == "__main__":
    main(*sys.argv[1:])
