"""What hook servers are asked, and their responses merged into requests of the kubelet. Pure.

A request that nothing changes is forwarded with the bytes that the kubelet sent. One that changes
is written again with all of its fields, those of later releases included.
"""

from typing import Any

from api.koordinator import runtime_hooks
from api.wire import protobuf_schema
from runtimeproxy.cri import messages, records, resources


def about_pod(pod: records.Pod, request: Any = None) -> Any:
    """Return the PodSandboxHookRequest of a pod; `request` is the RunPodSandboxRequest, if any."""
    made = runtime_hooks.new(
        "PodSandboxHookRequest",
        runtime_handler=pod.runtime_handler,
        labels=pod.labels,
        annotations=pod.annotations,
        cgroup_parent=pod.cgroup_parent or "",
    )
    _name_pod(made.pod_meta, pod)
    linux = request.config.linux if request is not None else None
    for name in ("overhead", "resources"):
        if linux is not None and linux.HasField(name):
            getattr(made, name).MergeFromString(getattr(linux, name).SerializeToString())
    return made


def about_container(
    pod: records.Pod, container: records.Container, identity: str, limits: Any
) -> Any:
    """Return the ContainerResourceHookRequest of a container with LinuxContainerResources."""
    made = runtime_hooks.new(
        "ContainerResourceHookRequest",
        container_annotations=container.annotations,
        pod_annotations=pod.annotations,
        pod_labels=pod.labels,
        pod_cgroup_parent=pod.cgroup_parent or "",
        container_envs=container.environment,
    )
    _name_pod(made.pod_meta, pod)
    made.container_meta.name, made.container_meta.attempt = container.name, container.attempt
    made.container_meta.id = identity
    made.container_resources.MergeFromString(limits.SerializeToString())
    return made


def run_pod_sandbox(request: Any, given: Any) -> bool:
    """Merge a PodSandboxHookResponse into a RunPodSandboxRequest; tell whether it changed."""
    config = request.config
    changed = _take_texts(config.labels, given.labels)
    changed |= _take_texts(config.annotations, given.annotations)
    changed |= _take_parent(config, given.cgroup_parent)
    if config.linux.HasField("resources") and given.HasField("resources"):
        changed |= _take_resources(config.linux.resources, config.linux.resources, given.resources)
    return changed


def create_container(request: Any, given: Any) -> bool:
    """Merge a ContainerResourceHookResponse into a CreateContainerRequest."""
    config = request.config
    changed = _take_texts(config.annotations, given.container_annotations)
    changed |= _take_parent(request.sandbox_config, given.pod_cgroup_parent)
    if config.linux.HasField("resources") and given.HasField("container_resources"):
        base = config.linux.resources
        changed |= _take_resources(base, base, given.container_resources)
    return _take_environment(config, given.container_envs) | changed


def update_container(request: Any, shown: Any, given: Any) -> bool:
    """Merge a response into an UpdateContainerResourcesRequest.

    The server was shown all that the container has; only what it changes of that is added to what
    the kubelet asked for.
    """
    changed = _take_texts(request.annotations, given.container_annotations)
    if request.HasField("linux") and given.HasField("container_resources"):
        changed |= _take_resources(request.linux, shown, given.container_resources)
    return changed


def _name_pod(made: Any, pod: records.Pod) -> None:
    made.name, made.namespace, made.uid = pod.name, pod.namespace, pod.uid
    made.attempt = pod.attempt


def _take_texts(base: Any, given: Any) -> bool:
    changed = False
    for key in given:
        if key not in base or base[key] != given[key]:
            base[key], changed = given[key], True
    return changed


def _take_parent(config: Any, parent: str) -> bool:
    if not parent or config.linux.cgroup_parent == parent:
        return False
    config.linux.cgroup_parent = parent
    return True


def _take_resources(base: Any, shown: Any, given: Any) -> bool:
    found = resources.changes(shown, given)
    resources.apply(base, found)
    return bool(found)


def _take_environment(config: Any, given: Any) -> bool:
    """Replace the variables of a container, in their order; none given leaves them."""
    if not given:
        return False
    wanted = protobuf_schema.texts(given)
    before = [
        (protobuf_schema.text(one.key), protobuf_schema.text(one.value)) for one in config.envs
    ]
    if dict(before) == wanted and len(before) == len(wanted):
        return False
    names = [name for name, _ in before if name in wanted]
    fresh = sorted(wanted.keys() - set(names))
    kept = {protobuf_schema.text(one.key): messages.new("KeyValue") for one in config.envs}
    for one in config.envs:
        kept[protobuf_schema.text(one.key)].CopyFrom(one)
    del config.envs[:]
    for name in dict.fromkeys((*names, *fresh)):
        added = config.envs.add()
        if name in kept:
            added.CopyFrom(kept[name])
        if name not in kept or protobuf_schema.text(kept[name].value) != wanted[name]:
            added.key, added.value = name, wanted[name]
    return True
