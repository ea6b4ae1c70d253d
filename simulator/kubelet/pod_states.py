"""What a kubelet reports about nodes and pods; pure."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]

RUN_SECONDS = "dev.koord.sh/run-seconds"
"""Annotation: after so many seconds the pod has done its work."""
VERSION = "v1.36.3"


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """A simulated node."""

    name: str
    cpu: int = 8
    memory_gib: int = 16
    pods: int = 110
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    extended: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Further resources, for instance of a device plug-in."""

    @property
    def amounts(self) -> dict[str, str]:
        """What the node has."""
        return {
            "cpu": str(self.cpu),
            "memory": f"{self.memory_gib}Gi",
            "ephemeral-storage": "100Gi",
            "pods": str(self.pods),
            **self.extended,
        }


def node(machine: Machine) -> dict[str, Any]:
    """The Node object with which a kubelet registers."""
    labels = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **machine.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"taints": [dict(taint) for taint in machine.taints]} if machine.taints else {},
    }


def node_status(machine: Machine, now: str, port: int, since: str) -> dict[str, Any]:
    """The status of a healthy node; a strategic patch leaves what others wrote there."""
    checks = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    )
    return {
        "capacity": machine.amounts,
        "allocatable": machine.amounts,
        "conditions": [
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": "simulated",
                "lastHeartbeatTime": now,
                "lastTransitionTime": since,
            }
            for kind, value, reason in checks
        ],
        "addresses": [
            {"type": "InternalIP", "address": address(machine.name)},
            {"type": "Hostname", "address": machine.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "containerd://2.2.9",
            "kernelVersion": "6.1.0",
            "kubeProxyVersion": "",
            "kubeletVersion": VERSION,
            "machineID": digest(machine.name)[:32],
            "operatingSystem": "linux",
            "osImage": "simulated",
            "systemUUID": digest(machine.name)[:32],
        },
    }


def lease(machine: str, now: str) -> dict[str, Any]:
    """The Lease that says a node lives."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": machine, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": machine, "leaseDurationSeconds": 40, "renewTime": now},
    }


def digest(text: str) -> str:
    """Sixty-four stable hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def address(name: str) -> str:
    """A stable address for a simulated node or pod; nothing listens there."""
    first, second, third = bytes.fromhex(digest(name)[:6])
    return f"10.{first}.{second}.{third}"


def container_id(pod: Object, container: str) -> str:
    """The id of a container of a pod, the same every time."""
    return f"containerd://{digest(pod['metadata']['uid'] + container)}"


def running(pod: Object, now: str) -> dict[str, Any]:
    """The status of a pod whose containers run."""
    meta = pod["metadata"]
    mine = address(meta["uid"])
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": _conditions(now, ready=True),
        "hostIP": address(pod["spec"]["nodeName"]),
        "podIP": mine,
        "podIPs": [{"ip": mine}],
        "containerStatuses": [
            _container(pod, container, {"running": {"startedAt": now}}, ready=True)
            for container in pod["spec"]["containers"]
        ],
    }


def finished(pod: Object, now: str) -> dict[str, Any]:
    """The status of a pod that has done its work."""
    started = (pod.get("status") or {}).get("startTime") or now
    ended = {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": started,
        "finishedAt": now,
    }
    return {
        "phase": "Succeeded",
        "conditions": _conditions(now, ready=False, reason="PodCompleted"),
        "containerStatuses": [
            _container(
                pod,
                container,
                {"terminated": {**ended, "containerID": container_id(pod, container["name"])}},
                ready=False,
            )
            for container in pod["spec"]["containers"]
        ],
    }


def run_seconds(pod: Object) -> float | None:
    """After how long the pod has done its work; None when it runs for ever."""
    text = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS, "")
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _conditions(now: str, *, ready: bool, reason: str = "") -> list[dict[str, Any]]:
    """All conditions: others keep theirs, a strategic patch merges by type."""
    values = {
        "PodReadyToStartContainers": ready,
        "Initialized": True,
        "Ready": ready,
        "ContainersReady": ready,
    }
    return [
        {
            "type": kind,
            "status": "True" if value else "False",
            "lastProbeTime": None,
            "lastTransitionTime": now,
            **({"reason": reason} if reason and not value else {}),
        }
        for kind, value in values.items()
    ]


def _container(
    pod: Object, container: Object, state: Mapping[str, Any], *, ready: bool
) -> dict[str, Any]:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"sha256:{digest(image)}",
        "containerID": container_id(pod, container["name"]),
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": dict(state),
        "lastState": {},
    }
