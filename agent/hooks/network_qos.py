"""Who of the node's pods may send how much when the network is short.

The root of the default interface becomes a tree of classes. Everything that nobody put elsewhere
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

from agent import edits, roles, state, strategies
from agent.hooks import bandwidth
from api.koordinator.metadata import qos

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
"""What the kernel puts at a root by itself; with the handle 0, else somebody chose it."""
CGROUP_RULE: Final = "cgroup"
_R = edits.Role
_NONE = strategies.Network()
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

    def ceiling(self, base: int) -> int:
        """Return the most that a pod of a class may have."""
        return {ONLINE: self.online, BATCH: self.batch}.get(base, self.system).ceiling


class _Member(msgspec.Struct, frozen=True):
    """A pod and where it belongs."""

    pod: state.PodState
    base: int
    limit: int = 0
    """The most that it may send, 0 for no limit of its own."""


def shares(classes: strategies.Classes, total_bits: int) -> Shares:
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


def _speed(wanted: strategies.Network, total_bits: int) -> Speed:
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
        (ONLINE_REST, ONLINE, found.online, _PRIORITY[ONLINE]),
        (BATCH_REST, BATCH, found.batch, _PRIORITY[BATCH]),
    ]
    return "\n".join(
        [
            roles.OWN_QUEUE,
            *(f"{minor:x} {_below(above, s, p)}" for minor, above, s, p in lines),
            roles.TABLES,
        ]
    )


def _below(above: int, speed: Speed, priority: int) -> str:
    return f"{above:x} {speed.rate} {speed.ceiling} {priority}"


def decide(picture: state.NodeState, wanted: strategies.Strategies) -> edits.Decision:
    """Return the tree, the classes of pods with a limit, and who belongs where."""
    classes, total = wanted.classes, wanted.system.bandwidth
    if (why := _refusal(classes, total)) is not None:
        return edits.switched_off(why)
    members, problems = _members(picture.pods)
    if not any(classes.network.get(q, _NONE).enable for q in (qos.QoS.LS, qos.QoS.BE)) and not any(
        one.limit for one in members
    ):
        return edits.switched_off("no class and no pod has network QoS")
    network = picture.network
    if network is None:
        return edits.undecided("the network of this node")
    if (why := unusable(network, picture)) is not None:
        return edits.switched_off(why)
    try:
        found = shares(classes, total)
    except bandwidth.BandwidthError as error:
        return edits.switched_off(str(error))
    return _plan(picture, network, found, members, problems)


def _refusal(classes: strategies.Classes, total: int) -> str | None:
    if classes.network_policy not in ("", POLICY):
        return f"netQOSPolicy is {classes.network_policy}"
    if total <= 0:
        return "nobody says how much bandwidth the node has (systemStrategy.totalNetworkBandwidth)"
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
    if network.queue != roles.OWN_QUEUE and (handle != "0:" or kind not in DEFAULTS):
        return (
            f"{network.interface} has the queue {network.queue!r}, which somebody chose; "
            "it stays, and this strategy stands down"
        )
    return None


def _addresses(picture: state.NodeState) -> frozenset[str]:
    known = picture.node.status.addresses if picture.node is not None else ()
    return frozenset(one.address for one in known if one.type == "InternalIP")


def _members(pods: Iterable[state.PodState]) -> tuple[list[_Member], list[str]]:
    members, problems = [], []
    for pod in pods:
        if not pod.active:
            continue
        base = _OF.get(pod.qos, 0)
        try:
            limits = bandwidth.of_pod(pod)
        except bandwidth.BandwidthError as error:
            problems.append(f"{pod.pod.metadata.key}: {error}")
            limits = None
        limit = limits.egress if limits else 0
        if base or limit:
            members.append(_Member(pod, base or SYSTEM, limit))
    return members, problems


def _plan(
    picture: state.NodeState,
    network: state.Network,
    found: Shares,
    members: list[_Member],
    problems: list[str],
) -> edits.Decision:
    where = f"{network.namespace}/{network.interface}"
    wanted = [edits.Edit(_R.NETWORK_QUEUE, where, tree(found), "network QoS of the classes")]
    by_group = _R.NET_CLASS_ID in picture.kernel.roles
    minors = numbers((one.base, one.pod.pod.metadata.uid) for one in members if one.limit)
    shared = []
    for one in members:
        uid = one.pod.pod.metadata.uid
        minor = minors.get(uid, _LEAF[one.base])
        if uid in minors:
            wanted.append(_limit(where, minor, one, found))
        if one.pod.pod.spec.host_network:
            shared.append(one)
            wanted += _classified(one.pod, minor) if by_group else ()
        else:
            wanted += _rules(where, minor, one.pod)
    if shared and by_group:
        reason = "pods on the host's network are told by their groups"
        wanted.append(edits.Edit(_R.NETWORK_RULE, f"{where}/{CGROUP_RULE}", "present", reason))
    reason = f"{network.interface} is shared by {len(members)} pods, {len(minors)} with a limit"
    if shared and not by_group:
        reason += f"; {len(shared)} on the host's network cannot be told apart without net_cls"
    if problems:
        reason += f"; without a limit: {'; '.join(problems[:3])}"
    return edits.Decision(reason, tuple(wanted), figures={"problems": len(problems)})


def numbers(pods: Iterable[tuple[int, str]]) -> Mapping[str, int]:
    """Return the number of the class of each pod, by the class above it and the uid.

    It is the pod's own as far as nobody else has it.
    """
    taken: dict[int, str] = {}
    for base, uid in sorted(set(pods)):
        room = PODS_OF[base]
        place = zlib.crc32(uid.encode()) % len(room)
        while room[place] in taken:
            place = (place + 1) % len(room)
        taken[room[place]] = uid
    return {uid: number for number, uid in taken.items()}


def _limit(where: str, minor: int, one: _Member, found: Shares) -> edits.Edit:
    ceiling = max(min(one.limit, found.ceiling(one.base)), LEAST)
    above = ROOT if one.base == SYSTEM else one.base
    value = _below(above, Speed(LEAST, ceiling), _PRIORITY[one.base])
    uid = one.pod.pod.metadata.uid
    reason = f"{one.pod.pod.metadata.key} asks for a limit"
    return edits.Edit(_R.NETWORK_LIMIT, f"{where}/{minor:x}", value, reason, uid)


def _rules(where: str, minor: int, pod: state.PodState) -> list[edits.Edit]:
    address = pod.pod.status.pod_ip
    if minor == SYSTEM or not address or not set(address) <= _ADDRESS:
        # What nobody put elsewhere is the system's anyway.
        return []
    group = f"{where}/{minor:x}/{address}"
    reason = f"{pod.pod.metadata.key} sends from {address}"
    return [edits.Edit(_R.NETWORK_RULE, group, "present", reason, pod.pod.metadata.uid)]


def _classified(pod: state.PodState, minor: int) -> list[edits.Edit]:
    number = str(MAJOR << 16 | minor)
    groups = [pod.group, pod.sandbox, *(container.group for container in pod.containers)]
    reason = f"{pod.pod.metadata.key} is on the host's network"
    return [edits.Edit(_R.NET_CLASS_ID, group, number, reason) for group in groups if group]
