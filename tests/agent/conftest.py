"""A generated host, pods that live on it, and a moment after another."""

import contextlib
import dataclasses
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.model import state
from agent.observe import observation
from api.kubernetes import core
from simulator.kubelet import nodefs

GIB = 1 << 30
CONTAINERS = {
    "BestEffort": {"requests": {"kubernetes.io/batch-cpu": "2000"}},
    "Burstable": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
    "Guaranteed": {
        "requests": {"cpu": "2", "memory": "2Gi"},
        "limits": {"cpu": "2", "memory": "2Gi"},
    },
}
LABELS = {"BestEffort": "BE", "Burstable": "LS", "Guaranteed": "LSR"}


def make_pod(uid: str, kubernetes_qos: str = "Burstable", **annotations: str) -> core.Pod:
    raw = {
        "metadata": {
            "name": f"name-{uid}",
            "namespace": "default",
            "uid": uid,
            "labels": {"koordinator.sh/qosClass": LABELS[kubernetes_qos]},
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "app", "resources": CONTAINERS[kubernetes_qos]}]},
        "status": {
            "phase": "Running",
            "qosClass": kubernetes_qos,
            "containerStatuses": [{"name": "app", "containerID": f"containerd://c-{uid}"}],
        },
    }
    return msgspec.convert(raw, core.Pod)


@pytest.fixture
def new_pod() -> Callable[..., core.Pod]:
    return make_pod


@dataclasses.dataclass
class Placed:
    """Makes pods as decisions see them: with groups, one container and figures."""

    quality: str = "LS"
    kubernetes_qos: str = "Burstable"
    requests: dict[str, str] = dataclasses.field(default_factory=dict)
    limits: dict[str, str] = dataclasses.field(default_factory=dict)
    annotations: dict[str, str] = dataclasses.field(default_factory=dict)
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    priority: int | None = None
    usage: state.Usage = dataclasses.field(default_factory=state.Usage)
    container: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Further properties of the container."""

    def __call__(self, name: str = "a", **changes: Any) -> state.PodState:
        """Make a pod with other properties than these where some are given."""
        known = {field.name for field in dataclasses.fields(self)}
        given = {key: value for key, value in changes.items() if key in known}
        more = {key: value for key, value in changes.items() if key not in known}
        return dataclasses.replace(self, **given)._made(name, more)

    def _made(self, name: str, more: dict[str, Any]) -> state.PodState:
        labels = {"koordinator.sh/qosClass": self.quality} if self.quality else {}
        asked = {"requests": self.requests, "limits": self.limits}
        raw = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "labels": labels | self.labels,
                "annotations": self.annotations,
            },
            "spec": {"containers": [{"name": "app", "resources": asked}]},
            "status": {"phase": "Running", "qosClass": self.kubernetes_qos},
        }
        if self.priority is not None:
            raw["spec"]["priority"] = self.priority
        pod = msgspec.convert(raw, core.Pod)
        container = state.ContainerState(
            "app", f"{name}/app", pod.spec.containers[0], **self.container
        )
        found = {"group": name, "usage": self.usage, "containers": (container,), **more}
        return state.PodState(pod, self.kubernetes_qos, **found)


@pytest.fixture
def placed() -> Placed:
    return Placed()


@pytest.fixture
def node() -> core.Node:
    raw: dict[str, Any] = {
        "metadata": {"name": "node-1"},
        "status": {
            "capacity": {"cpu": "8", "memory": "16Gi"},
            "allocatable": {"cpu": "8", "memory": "16Gi"},
        },
    }
    return msgspec.convert(raw, core.Node)


@dataclasses.dataclass
class Host:
    """A generated host with an observer on it; `step` lets time pass and looks once."""

    tree: nodefs.HostTree
    observer: observation.Observer
    known: observation.Known
    at: float = 1000.0

    def add(self, uid: str, kubernetes_qos: str, milli: int, memory: int = GIB) -> core.Pod:
        pod = make_pod(uid, kubernetes_qos)
        self.tree.add_pod(uid, kubernetes_qos, [f"c-{uid}"])
        self.tree.set_load(uid, milli, memory)
        self.know(pods=(*(self.known.pods or ()), pod))
        return pod

    def know(self, **changes: Any) -> None:
        self.known = msgspec.structs.replace(self.known, **changes)

    def step(self, seconds: float = 1.0) -> state.NodeState:
        self.tree.advance(seconds)
        self.at += seconds
        return self.look()

    def look(self) -> state.NodeState:
        return self.observer.observe(self.known, observation.Moment(1.7e9 + self.at, self.at))

    def batch_file(self, name: str, below: str = "") -> Path:
        """A file of the group of best-effort pods, or of a group below it."""
        tree = self.tree
        folder = {
            "systemd": "kubepods.slice/kubepods-besteffort.slice",
            "cgroupfs": "kubepods/besteffort",
        }[tree.driver]
        controller = {"cpuset": "cpuset", "cpu": "cpu"}[name.split(".")[0]]
        root = tree.cgroup / controller if tree.version == 1 else tree.cgroup
        return root / folder / below / name

    def snapshot(self) -> dict[str, bytes]:
        files = (path for path in self.tree.cgroup.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}


def make_host(folder: Path, version: Any, driver: Any, node: core.Node) -> Host:
    tree = nodefs.HostTree(folder / "host", 8, 16 * GIB, version, driver)
    roots = observation.Roots(str(tree.proc), str(tree.sys), str(tree.cgroup))
    return Host(tree, observation.Observer(roots, 1.0), observation.Known(node=node, pods=()))


@pytest.fixture(
    params=[(1, "systemd"), (2, "systemd"), (1, "cgroupfs"), (2, "cgroupfs")],
    ids=lambda param: f"v{param[0]}-{param[1]}",
)
def any_host(request, tmp_path, node):
    host = make_host(tmp_path, *request.param, node)
    yield host
    host.observer.close()


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def host(request, tmp_path, node):
    host = make_host(tmp_path, request.param, "systemd", node)
    yield host
    host.observer.close()


@contextlib.contextmanager
def _soft_limit(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def soft_limit() -> Callable[[int], contextlib.AbstractContextManager[None]]:
    """Let this process have so many files open and no more, for a while."""
    return _soft_limit
