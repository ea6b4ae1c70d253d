"""The hook API of CRI proxies in terms of the Node Resource Interface, and back. Pure.

Both ask the same of the same hooks, so that a container is answered alike whichever of them asks.
"""

from typing import Any, Final

from agent.nri import messages
from api.koordinator import runtime_hooks
from api.wire import protobuf_schema

_TEXTS: Final = protobuf_schema.texts


def pod_of(asked: Any) -> Any:
    """Return the PodSandbox of a PodSandboxHookRequest."""
    return _pod(asked.pod_meta, asked.labels, asked.annotations, asked.cgroup_parent)


def pod_of_container(asked: Any) -> Any:
    """Return the PodSandbox of a ContainerResourceHookRequest."""
    return _pod(asked.pod_meta, asked.pod_labels, asked.pod_annotations, asked.pod_cgroup_parent)


def container_of(asked: Any, cgroups_path: str) -> Any:
    """Return the Container of a ContainerResourceHookRequest, in a cgroup."""
    about = asked.container_meta
    made = messages.new("Container", id=about.id, name=about.name)
    made.linux.cgroups_path = cgroups_path
    _fill(made.linux.resources, asked.container_resources)
    made.linux.oom_score_adj.value = asked.container_resources.oom_score_adj
    return made


def echoed_pod(asked: Any) -> Any:
    """Return the PodSandboxHookResponse that changes nothing."""
    made = runtime_hooks.new(
        "PodSandboxHookResponse",
        labels=_TEXTS(asked.labels),
        annotations=_TEXTS(asked.annotations),
        cgroup_parent=asked.cgroup_parent,
    )
    if asked.HasField("resources"):
        made.resources.CopyFrom(asked.resources)
    return made


def echoed_container(asked: Any) -> Any:
    """Return the ContainerResourceHookResponse that changes nothing."""
    made = runtime_hooks.new(
        "ContainerResourceHookResponse",
        container_annotations=_TEXTS(asked.container_annotations),
        pod_cgroup_parent=asked.pod_cgroup_parent,
        container_envs=_TEXTS(asked.container_envs),
    )
    if asked.HasField("container_resources"):
        made.container_resources.CopyFrom(asked.container_resources)
    return made


def adjusted(asked: Any, adjustment: Any) -> Any:
    """Return the response of a ContainerAdjustment, None of which changes nothing.

    The hook API has no field for mounts and devices.
    """
    made = echoed_container(asked)
    if adjustment is None:
        return made
    for one in adjustment.env:
        made.container_envs[messages.text(one.key)] = messages.text(one.value)
    if adjustment.linux.has_field("resources"):
        _set(made.container_resources, adjustment.linux.resources)
    if adjustment.linux.has_field("oom_score_adj"):
        made.container_resources.oom_score_adj = adjustment.linux.oom_score_adj.value
    return made


def updated(asked: Any, resources: Any) -> Any:
    """Return the response of an update with LinuxResources, None of which changes nothing."""
    made = echoed_container(asked)
    if resources is not None:
        _set(made.container_resources, resources)
    return made


def _fill(made: Any, given: Any) -> None:
    """Set LinuxResources of NRI as those of CRI are."""
    if given.cpu_quota:
        made.cpu.quota.value = given.cpu_quota
    if given.cpu_period > 0:
        made.cpu.period.value = given.cpu_period
    if given.cpu_shares > 0:
        made.cpu.shares.value = given.cpu_shares
    if given.memory_limit_in_bytes > 0:
        made.memory.limit.value = given.memory_limit_in_bytes
    if given.cpuset_cpus:
        made.cpu.cpus = given.cpuset_cpus


def _set(base: Any, wanted: Any) -> None:
    cpu = wanted.cpu
    if cpu.cpus:
        base.cpuset_cpus = messages.text(cpu.cpus)
    for name, given in (("cpu_quota", cpu.quota), ("cpu_period", cpu.period)):
        if given.value:
            setattr(base, name, given.value)
    if cpu.shares.value:
        base.cpu_shares = cpu.shares.value
    if wanted.memory.limit.value:
        base.memory_limit_in_bytes = wanted.memory.limit.value
    for key in wanted.unified:
        base.unified[messages.text(key)] = messages.text(wanted.unified[key])


def _pod(about: Any, labels: Any, annotations: Any, parent: str) -> Any:
    made = messages.new(
        "PodSandbox",
        name=about.name,
        uid=about.uid,
        namespace=about.namespace,
        labels=_TEXTS(labels),
        annotations=_TEXTS(annotations),
    )
    made.linux.cgroup_parent = parent
    return made
