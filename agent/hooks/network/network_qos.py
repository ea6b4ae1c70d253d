"""Who of the node's pods may send how much when the network is short.

The root of the default interface becomes a tree of classes. Everything that is not put elsewhere
is the system's: the node itself, pods without a class, packets that hide their pod. A class gets
what it requests before anybody borrows, and the online one borrows before the batch one. A pod
with a limit has a class of its own below its QoS class: a limit is no guarantee, and the limit of
the QoS class holds for all of its pods together.
"""

import string
import zlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from agent.hooks.network import bandwidth
from agent.model import cgroup_properties, edits, state, strategy_settings
from agent.model.cpus import cpu_bindings
from api.koordinator.metadata import qos
from domain import wording

POLICY: Final = "tc"
MAJOR: Final = 0x4B00
ROOT, SYSTEM, ONLINE, BATCH = 1, 2, 3, 4
ONLINE_REST, BATCH_REST = 0x13, 0x14
"""Where the pods of a class are that have no class of their own."""
FIRST_POD: Final = 0x100
PODS_OF: Final = {
    SYSTEM: range(FIRST_POD, 0x4000),
    ONLINE: range(0x4000, 0x9000),
    BATCH: range(0x9000, 0xFFFF),
}
"""The numbers of the classes of pods: those of one class apart, for no class can move."""
LEAST: Final = 1000
"""Bytes per second that are sure for everybody: the kernel takes no zero."""
DEFAULTS: Final = frozenset({"noqueue", "pfifo_fast", "fq_codel", "mq"})
"""What the kernel puts at a root by itself; with the handle 0, else another program chose it."""
CGROUP_RULE: Final = "cgroup"
_R = edits.Role
_NONE = strategy_settings.Network()
_OF: Final = {
    qos.QoS.SYSTEM: SYSTEM,
    qos.QoS.LSE: ONLINE,
    qos.QoS.LSR: ONLINE,
    qos.QoS.LS: ONLINE,
    qos.QoS.BE: BATCH,
}
_LEAF: Final = {SYSTEM: SYSTEM, ONLINE: ONLINE_REST, BATCH: BATCH_REST}
_PRIORITY: Final = {SYSTEM: 1, ONLINE: 2, BATCH: 3}
_ADDRESS: Final = frozenset(string.hexdigits + ".:")


class Speed(msgspec.Struct, frozen=True):
    """Bytes per second of a class."""

    rate: int
    ceiling: int


class Shares(msgspec.Struct, frozen=True):
    """What the three classes get."""

    total: int
    system: Speed
    online: Speed
    batch: Speed
    online_pods: int = 0
    """What of the rate single pods have for sure."""
    batch_pods: int = 0

    def ceiling(self, base: int) -> int:
        """Return the most that a pod of a class may have."""
        return {ONLINE: self.online, BATCH: self.batch}.get(base, self.system).ceiling


class Member(msgspec.Struct, frozen=True):
    """A pod and where it belongs."""

    pod: state.PodState
    base: int
    limit: int = 0
    """The most that it may send, 0 for no limit of its own."""
    request: int = 0
    """What it requests, 0 for nothing."""

    @property
    def own(self) -> bool:
        """Whether it has a class of its own."""
        return bool(self.limit or self.request)


class Granted(msgspec.Struct, frozen=True):
    """What is left to the classes, and what pods have for sure."""

    shares: Shares
    rates: Mapping[str, int] = {}
    """Bytes per second by uid."""
    problems: tuple[str, ...] = ()


def shares(classes: strategy_settings.Classes, total_bits: int) -> Shares:
    """Return what the classes get; raises BandwidthError where it is more than there is."""
    total = total_bits // bandwidth.BITS
    wanted = [classes.network.get(named, _NONE) for named in (qos.QoS.LS, qos.QoS.BE)]
    sure = sum(bandwidth.share(one.egress_request, total_bits) for one in wanted if one.enable)
    if sure > total:
        raise bandwidth.BandwidthError(
            f"networkQOS: lsClass and beClass request {sure} bytes/s, and the node has {total}"
        )
    online, batch = (_speed(one, total_bits) for one in wanted)
    rest = max(total - sure, LEAST)
    return Shares(total, Speed(rest, max(total, rest)), online, batch)


def _speed(wanted: strategy_settings.Network, total_bits: int) -> Speed:
    total = max(total_bits // bandwidth.BITS, LEAST)
    if not wanted.enable:
        return Speed(LEAST, total)
    rate = max(bandwidth.share(wanted.egress_request, total_bits), LEAST)
    ceiling = bandwidth.share(wanted.egress_limit, total_bits) or total
    return Speed(rate, max(min(ceiling, total), rate))


def tree(found: Shares) -> str:
    """Return the queue of an interface: a line for each class, with the one above it."""
    lines = [
        (ROOT, 0, Speed(found.total, found.total), 0),
        (SYSTEM, ROOT, found.system, _PRIORITY[SYSTEM]),
        # The priority of a class counts only where nothing hangs below it.
        (ONLINE, ROOT, found.online, 0),
        (BATCH, ROOT, found.batch, 0),
        (ONLINE_REST, ONLINE, _rest(found.online, found.online_pods), _PRIORITY[ONLINE]),
        (BATCH_REST, BATCH, _rest(found.batch, found.batch_pods), _PRIORITY[BATCH]),
    ]
    return "\n".join(
        [
            cgroup_properties.OWN_QUEUE,
            *(f"{minor:x} {_below(above, s, p)}" for minor, above, s, p in lines),
            cgroup_properties.TABLES,
        ]
    )


def _rest(speed: Speed, of_pods: int) -> Speed:
    return Speed(max(speed.rate - of_pods, LEAST), speed.ceiling)


def _below(above: int, speed: Speed, priority: int) -> str:
    return f"{above:x} {speed.rate} {speed.ceiling} {priority}"


def decide(picture: state.NodeState, wanted: strategy_settings.Strategies) -> edits.Decision:
    """Return the tree, the classes of pods with a limit, and who belongs where."""
    classes, total = wanted.classes, wanted.system.bandwidth
    if (why := _refusal(classes, total)) is not None:
        return edits.impossible(why)
    members, problems = _members(picture.pods)
    if not any(classes.network.get(q, _NONE).enable for q in (qos.QoS.LS, qos.QoS.BE)) and not any(
        one.own for one in members
    ):
        return edits.switched_off("no class and no pod has network QoS")
    network = picture.network
    if network is None:
        return edits.undecided("the network of this node")
    if (why := unusable(network, picture)) is not None:
        return edits.impossible(why)
    try:
        found = shares(classes, total)
    except bandwidth.BandwidthError as error:
        return edits.impossible(str(error))
    granted = grant(found, members)
    return _plan(picture, network, granted, members, [*problems, *granted.problems])


def grant(found: Shares, members: Iterable[Member]) -> Granted:
    """Return the rates of pods that request bandwidth, those that were bound first before others.

    Together they get no more than the node has, and those of a class no more than its limit: a
    scheduler that counts the resource binds no more, but a pod can name its node itself.
    """
    asking = sorted((one for one in members if one.request), key=_order)
    if not asking:
        return Granted(found)
    used = dict.fromkeys((SYSTEM, ONLINE, BATCH), 0)
    rates: dict[str, int] = {}
    problems = []
    for one in asking:
        rate = min(one.request, one.limit or one.request)
        room = min(found.total - sum(used.values()), found.ceiling(one.base) - used[one.base])
        if rate > room:
            key = one.pod.pod.metadata.key
            problems.append(f"{key}: requests {rate} bytes/s, and {max(room, 0)} are left")
            continue
        rates[one.pod.pod.metadata.uid] = max(rate, LEAST)
        used[one.base] += rate
    rest = found.total - sum(used.values())
    speeds = {}
    for base, speed in ((ONLINE, found.online), (BATCH, found.batch)):
        extra = min(max(speed.rate - used[base], 0), max(rest, 0))
        rest -= extra
        rate = max(used[base] + extra, LEAST)
        speeds[base] = Speed(rate, max(speed.ceiling, rate))
    system = Speed(max(rest, LEAST), found.system.ceiling)
    made = Shares(found.total, system, speeds[ONLINE], speeds[BATCH], used[ONLINE], used[BATCH])
    return Granted(made, rates, tuple(problems))


def _order(one: Member) -> tuple[float, str]:
    pod = one.pod.pod
    return cpu_bindings.bound_at(pod), pod.metadata.uid


def _refusal(classes: strategy_settings.Classes, total: int) -> str | None:
    if classes.network_policy not in ("", POLICY):
        return f"netQOSPolicy is {classes.network_policy}"
    if total <= 0:
        return "the bandwidth of the node is not set (systemStrategy.totalNetworkBandwidth)"
    return None


def unusable(network: state.Network, picture: state.NodeState) -> str | None:
    """Return why the interface is left alone, None where it may be shared out."""
    if network.problem:
        return f"the network cannot be looked at: {network.problem}"
    if not network.interface:
        return "there is no default route"
    own = _addresses(picture)
    if own and not own & network.addresses:
        return "this is not the node's own network: the agent needs hostNetwork"
    if not network.permitted:
        return "queues may not be changed: the agent needs CAP_NET_ADMIN"
    kind, _, handle = network.queue.partition(" ")
    if network.queue != cgroup_properties.OWN_QUEUE and (handle != "0:" or kind not in DEFAULTS):
        return (
            f"{network.interface} has the queue {network.queue!r}, which another program chose; "
            "it stays, and this strategy stands down"
        )
    return None


def _addresses(picture: state.NodeState) -> frozenset[str]:
    known = picture.node.status.addresses if picture.node is not None else ()
    return frozenset(one.address for one in known if one.type == "InternalIP")


def _members(pods: Iterable[state.PodState]) -> tuple[list[Member], list[str]]:
    members, problems = [], []
    for pod in pods:
        if not pod.active:
            continue
        base = _OF.get(pod.qos, 0)
        try:
            limits, request = bandwidth.of_pod(pod), bandwidth.requested(pod)
        except bandwidth.BandwidthError as error:
            problems.append(f"{pod.pod.metadata.key}: {error}")
            limits, request = None, 0
        limit = limits.egress if limits else 0
        if base or limit or request:
            members.append(Member(pod, base or SYSTEM, limit, request))
    return members, problems


def _plan(
    picture: state.NodeState,
    network: state.Network,
    granted: Granted,
    members: list[Member],
    problems: list[str],
) -> edits.Decision:
    where = f"{network.namespace}/{network.interface}"
    found = granted.shares
    wanted = [edits.Edit(_R.NETWORK_QUEUE, where, tree(found), "network QoS of the classes")]
    by_group = _R.NET_CLASS_ID in picture.kernel.roles
    minors = numbers((one.base, one.pod.pod.metadata.uid) for one in members if one.own)
    shared = []
    for one in members:
        uid = one.pod.pod.metadata.uid
        minor = minors.get(uid, _LEAF[one.base])
        if uid in minors:
            wanted.append(_own(where, minor, one, granted))
        if one.pod.pod.spec.host_network:
            shared.append(one)
            wanted += _classified(one.pod, minor) if by_group else ()
        else:
            wanted += _rules(where, minor, one.pod)
    if shared and by_group:
        reason = "pods on the host's network are told apart by their cgroups"
        wanted.append(edits.Edit(_R.NETWORK_RULE, f"{where}/{CGROUP_RULE}", "present", reason))
    pods = wording.count(len(members), "pod", "pods")
    reason = f"{network.interface} is shared by {pods}, {len(minors)} with a limit"
    if granted.rates:
        reason += f", {len(granted.rates)} with bandwidth of their own"
    if shared and not by_group:
        reason += f"; {len(shared)} on the host's network cannot be told apart without net_cls"
    if problems:
        reason += f"; without a limit: {'; '.join(problems[:3])}"
    return edits.Decision(reason, tuple(wanted), figures={"problems": len(problems)})


def numbers(pods: Iterable[tuple[int, str]]) -> Mapping[str, int]:
    """Return the number of the class of each pod, by the class above it and the uid.

    It is the pod's own as far as no other pod has it.
    """
    taken: dict[int, str] = {}
    for base, uid in sorted(set(pods)):
        room = PODS_OF[base]
        place = zlib.crc32(uid.encode()) % len(room)
        while room[place] in taken:
            place = (place + 1) % len(room)
        taken[room[place]] = uid
    return {uid: number for number, uid in taken.items()}


def _own(where: str, minor: int, one: Member, granted: Granted) -> edits.Edit:
    uid, most = one.pod.pod.metadata.uid, granted.shares.ceiling(one.base)
    rate = granted.rates.get(uid, LEAST)
    ceiling = max(min(one.limit or most, most), rate)
    above = ROOT if one.base == SYSTEM else one.base
    value = _below(above, Speed(rate, ceiling), _PRIORITY[one.base])
    what = "requests bandwidth" if one.request else "asks for a limit"
    reason = f"{one.pod.pod.metadata.key} {what}"
    return edits.Edit(_R.NETWORK_LIMIT, f"{where}/{minor:x}", value, reason, uid)


def _rules(where: str, minor: int, pod: state.PodState) -> list[edits.Edit]:
    address = pod.pod.status.pod_ip
    if minor == SYSTEM or not address or not set(address) <= _ADDRESS:
        # What is not put elsewhere is the system's anyway.
        return []
    group = f"{where}/{minor:x}/{address}"
    reason = f"{pod.pod.metadata.key} sends from {address}"
    return [edits.Edit(_R.NETWORK_RULE, group, "present", reason, pod.pod.metadata.uid)]


def _classified(pod: state.PodState, minor: int) -> list[edits.Edit]:
    number = str(MAJOR << 16 | minor)
    groups = [pod.group, pod.sandbox, *(container.group for container in pod.containers)]
    reason = f"{pod.pod.metadata.key} is on the host's network"
    return [edits.Edit(_R.NET_CLASS_ID, group, number, reason) for group in groups if group]
