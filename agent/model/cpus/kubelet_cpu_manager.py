"""What a kubelet's configuration and its cpu manager's notes say about cpus. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from agent.model import state
from agent.model.cpus import packing, reserved_cpus
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import quantity
from domain import wording
from domain.cpus import cpulists

SOURCE: Final = "kubelet cpus"
"""What problems in here are named by."""
_POLICIES: Final = {
    "single-numa-node": "SingleNUMANode",
    "restricted": "Restricted",
    "best-effort": "BestEffort",
}
_SCOPES: Final = {"container": "ContainerLevel", "": "ContainerLevel", "pod": "PodLevel"}
_UNREAD: Final = (
    "the kubelet's cpu manager is static and what it handed out cannot be read: cpus that it gave "
    "to single pods count as shared; let the agent read the kubelet's folder "
    "(kubelet.folder, the chart's agent.kubeletState)"
)
Entries = Mapping[str, frozenset[int]]
"""The cpus that containers of a pod got alone, by the pod's uid."""


class FormatError(ValueError):
    """Something of the kubelet that cannot be read; the text says what."""


class _Configuration(msgspec.Struct, frozen=True, rename="camel"):
    cpu_manager_policy: str = ""
    cpu_manager_policy_options: dict[str, str] | None = None
    reserved_system_cpus: str = msgspec.field(name="reservedSystemCPUs", default="")
    kube_reserved: dict[str, str] | None = None
    system_reserved: dict[str, str] | None = None
    topology_manager_policy: str = ""
    topology_manager_scope: str = ""


class _Answer(msgspec.Struct, frozen=True):
    kubeletconfig: _Configuration


class _Notes(msgspec.Struct, frozen=True, rename="camel"):
    policy_name: str = ""
    entries: dict[str, dict[str, str]] | None = None


class Configuration(msgspec.Struct, frozen=True):
    """The part of a kubelet's configuration that concerns cpus."""

    policy: str = ""
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    reserved: str = ""
    reserved_milli: int = 0
    topology: str = "None"


def configuration(answer: bytes) -> Configuration:
    """Read what `/configz` answers."""
    try:
        found = msgspec.json.decode(answer, type=_Answer).kubeletconfig
        kept = sum(
            quantity.milli(part[names.CPU])
            for part in (found.kube_reserved, found.system_reserved)
            if part and names.CPU in part
        )
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FormatError(f"/configz gave no configuration of a kubelet: {error}") from error
    policy = _POLICIES.get(found.topology_manager_policy)
    scope = _SCOPES.get(found.topology_manager_scope, "ContainerLevel")
    return Configuration(
        policy=found.cpu_manager_policy,
        options=found.cpu_manager_policy_options or {},
        reserved=found.reserved_system_cpus,
        reserved_milli=kept,
        topology=f"{policy}{scope}" if policy else "None",
    )


def noted_policy(written: bytes) -> str:
    """Read the policy of a cpu manager out of its state file, empty where there is none."""
    if not written.strip():
        return ""
    try:
        return msgspec.json.decode(written, type=_Notes).policy_name
    except msgspec.MsgspecError as error:
        raise FormatError(f"no notes of a cpu manager: {error}") from error


def entries(written: bytes) -> Entries:
    """Read the file in which a cpu manager notes what it handed out; an empty one says nothing."""
    if not written.strip():
        return {}
    try:
        notes = msgspec.json.decode(written, type=_Notes)
        return {
            uid: frozenset[int]().union(*(cpulists.parse(text) for text in containers.values()))
            for uid, containers in (notes.entries or {}).items()
        }
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FormatError(f"no notes of a cpu manager: {error}") from error


class Told(msgspec.Struct, frozen=True):
    """What was learned of a kubelet; None where it could not be, or was not asked for."""

    configuration: Configuration | None = None
    entries: Entries | None = None
    asked: bool = True
    """Whether the kubelet is asked for its configuration at all."""
    noted: str = ""
    """The policy in the cpu manager's state file; stands in while the configuration is unknown."""


UNASKED: Final = Told(asked=False)


def known(
    told: Told,
    pods: Sequence[core.Pod] | None,
    processors: Sequence[state.Processor],
    bound: Collection[str] = (),
) -> state.KubeletCpus | None:
    """Return how the kubelet hands out cpus; None while it has not said.

    `bound` are the pods, by uid, whose claim to cpus of their own holds.
    """
    found = told.configuration
    if found is None and told.noted:
        found = Configuration(policy=told.noted)
    if found is None:
        return None if told.asked else state.KubeletCpus()
    problems: dict[str, str] = {}
    kept: frozenset[int] = frozenset()
    if found.policy == reserved_cpus.STATIC:
        kept, problem = _reserved(found, processors)
        if told.entries is None:
            problem = f"{problem}; {_UNREAD}" if problem else _UNREAD
        if problem:
            problems[SOURCE] = problem
    given = (
        _given(told.entries or {}, pods or (), bound)
        if found.policy == reserved_cpus.STATIC
        else ()
    )
    return state.KubeletCpus(found.policy, found.options, kept, found.topology, given, problems)


def _reserved(
    found: Configuration, processors: Sequence[state.Processor]
) -> tuple[frozenset[int], str]:
    """Return the cpus that a static kubelet keeps for the system, or why they are not known."""
    there = frozenset(one.cpu for one in processors)
    if not there:
        return frozenset(), ""
    if found.reserved:
        try:
            named = cpulists.parse(found.reserved)
        except cpulists.CpuListError as error:
            return frozenset(), f"reservedSystemCPUs: {error}"
        if named <= there:
            return named, ""
        missing = cpulists.text(named - there)
        return frozenset(), f"reservedSystemCPUs names cpus that are not online: {missing}"
    picked = packing.pick(processors, -(-found.reserved_milli // 1000))
    if picked:
        return picked, ""
    return frozenset(), (
        "a static cpu manager has to keep cpus for the system, and its configuration names "
        f"{found.reserved_milli} milli-cores of {wording.count(len(there), 'cpu', 'cpus')}"
    )


def _given(
    found: Entries, pods: Sequence[core.Pod], bound: Collection[str]
) -> tuple[state.GivenCpus, ...]:
    """Return what the kubelet handed out, but for pods whose cpus are ours to name.

    A pod that the kubelet has not listed yet counts without its name.
    """
    by_uid = {pod.metadata.uid: pod for pod in pods}
    given = []
    for uid, cpus in sorted(found.items()):
        pod = by_uid.get(uid)
        if not cpus or uid in bound or (pod is not None and _ours(pod)):
            continue
        meta = pod.metadata if pod is not None else core.ObjectMeta()
        given.append(state.GivenCpus(uid, cpus, meta.namespace, meta.name))
    return tuple(given)


def _ours(pod: core.Pod) -> bool:
    return qos.qos_of(pod.metadata.labels) in (qos.QoS.LS, qos.QoS.BE)
