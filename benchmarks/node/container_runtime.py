"""A container runtime whose NRI plug-in the agent is: hands over containers and starts more."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.agent.nri import stand_in

EVERY_SECONDS: Final = 5.0
"""Time between two containers that start anew, as on a node with some churn."""
_LABELS, _ANNOTATIONS, _VARIABLES = 5, 5, 30
"""How many of them a common pod and its container have."""
_FOLDERS = {"Burstable": "burstable", "BestEffort": "besteffort", "Guaranteed": ""}
_REQUESTED_QUOTA = 20_000
_POST_CREATE, _START = 5, 6
_wire = stand_in.wire


def _parent(pod: dict[str, Any]) -> str:
    folder = _FOLDERS[pod["status"]["qosClass"]]
    return "/".join(("/kubepods", *filter(None, (folder,)), f"pod{pod['metadata']['uid']}"))


def _pod(pod: dict[str, Any]) -> bytes:
    uid, own = pod["metadata"]["uid"], pod["metadata"]["labels"]
    labels = {**own, **{f"label-{n}": f"value-{n}" for n in range(_LABELS)}}
    annotations = {f"annotation-{n}": "x" * 100 for n in range(_ANNOTATIONS)}
    return stand_in.pod(uid, labels, **annotations) + _wire.field(
        8, _wire.field(3, _parent(pod).encode())
    )


def _container(pod: dict[str, Any], name: str, identity: str) -> bytes:
    variables = b"".join(
        _wire.field(8, f"SERVICE_{n}=tcp://10.0.0.{n}:80".encode()) for n in range(_VARIABLES)
    )
    limits = _wire.field(2, _wire.field(2, _wire.field(1, _REQUESTED_QUOTA)))
    path = f"{_parent(pod)}/{identity}".encode()
    linux = _wire.field(11, _wire.field(3, limits) + _wire.field(5, path))
    return stand_in.container(identity, pod["metadata"]["uid"], name) + variables + linux


def _started(runtime: stand_in.Runtime, pod: dict[str, Any], number: int) -> None:
    """Start a container of a pod anew."""
    names = [one["name"] for one in pod["spec"]["containers"]]
    container = _container(pod, names[number % len(names)], f"again-{number}")
    sandbox = _pod(pod)
    event = _wire.field(2, sandbox) + _wire.field(3, container)
    asked = _wire.field(1, sandbox) + _wire.field(2, container)
    runtime.call("CreateContainer", asked, "CreateContainerResponse")
    runtime.call("StateChange", _wire.field(1, _POST_CREATE) + event, "Empty")
    runtime.call("StateChange", _wire.field(1, _START) + event, "Empty")


class Runtime:
    """Takes one agent at its socket."""

    def __init__(self, path: Path, pods: list[dict[str, Any]]) -> None:
        self.asked = 0
        """How many containers the agent was asked about."""
        self._problem = ""
        self._runtime, self._pods = stand_in.Runtime(path), pods
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Leave the benchmark where the agent was not asked: its figure would say too little."""
        if self._problem or not self.asked:
            raise SystemExit(f"the agent was not asked by its runtime: {self._problem}")

    def close(self) -> None:
        """End the conversation."""
        self._ended.set()
        self._thread.join(stand_in.PATIENCE)
        self._runtime.close()

    def _run(self) -> None:
        try:
            self._runtime.accept()
            self._runtime.greet([self._everything()])
            while not self._ended.wait(EVERY_SECONDS):
                _started(self._runtime, self._pods[self.asked % len(self._pods)], self.asked)
                self.asked += 1
        except (OSError, AssertionError) as error:
            self._problem = f"{type(error).__name__}: {error}"

    def _everything(self) -> bytes:
        pods = [_wire.field(1, _pod(pod)) for pod in self._pods]
        containers = [
            _wire.field(2, _container(pod, one["name"], one["name"]))
            for pod in self._pods
            for one in pod["spec"]["containers"]
        ]
        return b"".join((*pods, *containers))


@contextlib.contextmanager
def running(folder: Path, pods: list[dict[str, Any]]) -> Iterator[tuple[Runtime, list[str]]]:
    """Serve a runtime at a socket in a folder; yields it and the agent's settings for it."""
    path = folder / "nri.sock"
    runtime = Runtime(path, pods)
    try:
        yield runtime, [f"--nri.socket={path}"]
    finally:
        runtime.close()
