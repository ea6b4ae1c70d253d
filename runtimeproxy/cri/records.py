"""What is remembered of pods and containers, for calls that name no more than an id. Pure."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from api.wire import protobuf_schema
from runtimeproxy.cri import messages, resources


class Pod(msgspec.Struct, frozen=True):
    """One pod sandbox."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    attempt: int = 0
    runtime_handler: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    cgroup_parent: str | None = None
    """None where only a list of the runtime told of the pod."""


class Container(msgspec.Struct, frozen=True):
    """One container."""

    pod: str = ""
    """The id of its sandbox."""
    name: str = ""
    attempt: int = 0
    annotations: Mapping[str, str] = {}
    resources: bytes | None = None
    """LinuxContainerResources as protobuf; None where only a list of the runtime told of it."""
    environment: Mapping[str, str] = {}


class Store:
    """Pods and containers by their ids."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.containers: dict[str, Container] = {}

    def remember_listed(self, pods: bytes, containers: bytes) -> None:
        """Take what the runtime lists, without replacing what is known better."""
        for one in messages.read("ListPodSandboxResponse", pods).items:
            self.pods.setdefault(protobuf_schema.text(one.id), _pod(one, None))
        for one in messages.read("ListContainersResponse", containers).containers:
            pod = protobuf_schema.text(one.pod_sandbox_id)
            if pod in self.pods:
                self.containers.setdefault(protobuf_schema.text(one.id), _container(one, pod, None))

    def complete_pod(self, identity: str, pod: Pod) -> None:
        """Take what is known better of a pod, unless it has been forgotten meanwhile."""
        if identity in self.pods:
            self.pods[identity] = pod

    def complete_container(self, identity: str, before: Container, told: Container) -> Container:
        """Take what a status tells of a container; return what is known of it now.

        Not where it has been updated meanwhile, which the status may not show, or forgotten.
        """
        known = self.containers.get(identity)
        if known is before:
            self.containers[identity] = told
        return known if known is not None and known.resources is not None else told

    def forget_pod(self, identity: str) -> None:
        """Forget a pod and its containers."""
        self.pods.pop(identity, None)
        gone = [key for key, one in self.containers.items() if one.pod == identity]
        for key in gone:
            del self.containers[key]


def pod_of(request: Any) -> Pod:
    """Return the pod that a RunPodSandboxRequest asks for."""
    parent = protobuf_schema.text(request.config.linux.cgroup_parent)
    made = _pod(request.config, parent)
    return msgspec.structs.replace(
        made, runtime_handler=protobuf_schema.text(request.runtime_handler)
    )


def container_of(request: Any) -> Container:
    """Return the container that a CreateContainerRequest asks for."""
    limits = request.config.linux.resources.SerializeToString(deterministic=True)
    pod = protobuf_schema.text(request.pod_sandbox_id)
    made = _container(request.config, pod, limits)
    return msgspec.structs.replace(
        made,
        environment={
            protobuf_schema.text(one.key): protobuf_schema.text(one.value)
            for one in request.config.envs
        },
    )


def updated(known: Container, request: Any) -> Container:
    """Return a container after an UpdateContainerResources of the kubelet."""
    limits = known.resources
    if limits is not None:
        limits = shown(known, request).SerializeToString(deterministic=True)
    annotations = {**known.annotations, **protobuf_schema.texts(request.annotations)}
    return msgspec.structs.replace(known, resources=limits, annotations=annotations)


def shown(known: Container, request: Any) -> Any:
    """Return the LinuxContainerResources that a container has after an update."""
    found = messages.read("LinuxContainerResources", known.resources or b"")
    resources.take(found, request.linux)
    return found


def completed_pod(known: Pod, verbose: bytes) -> Pod:
    """Return a pod with the cgroup parent that a verbose PodSandboxStatus tells."""
    config = _config(messages.read("PodSandboxStatusResponse", verbose).info)
    linux = config.get("linux")
    parent = linux.get("cgroup_parent") if isinstance(linux, dict) else None
    return msgspec.structs.replace(known, cgroup_parent=parent if isinstance(parent, str) else "")


def completed_container(known: Container, verbose: bytes) -> Container:
    """Return a container with what a verbose ContainerStatus tells of it."""
    found = messages.read("ContainerStatusResponse", verbose)
    limits = messages.new("LinuxContainerResources")
    config = _config(found.info)
    linux = config.get("linux")
    resources.take_json(limits, linux.get("resources") if isinstance(linux, dict) else None)
    resources.take(limits, found.status.resources.linux)
    variables = config.get("envs")
    return msgspec.structs.replace(
        known,
        resources=limits.SerializeToString(deterministic=True),
        environment={
            str(one.get("key", "")): str(one.get("value", ""))
            for one in (variables if isinstance(variables, list) else ())
            if isinstance(one, dict)
        },
    )


def _pod(said: Any, parent: str | None) -> Pod:
    about, text = said.metadata, protobuf_schema.text
    return Pod(
        text(about.name),
        text(about.namespace),
        text(about.uid),
        about.attempt,
        labels=protobuf_schema.texts(said.labels),
        annotations=protobuf_schema.texts(said.annotations),
        cgroup_parent=parent,
    )


def _container(said: Any, pod: str, limits: bytes | None) -> Container:
    return Container(
        pod,
        protobuf_schema.text(said.metadata.name),
        said.metadata.attempt,
        protobuf_schema.texts(said.annotations),
        limits,
    )


def _config(info: Any) -> Mapping[str, Any]:
    """Return the configuration that containerd and CRI-O tell in the `info` of a status."""
    try:
        found = json.loads(protobuf_schema.texts(info).get("info", "{}"))
    except ValueError:
        return {}
    config = found.get("config") if isinstance(found, dict) else None
    return config if isinstance(config, dict) else {}
