"""Give classes, and pods that ask for it, their part of the last-level cache and of bandwidth."""

import math
from collections.abc import Mapping

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import annotations, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from domain import wording

AMD, INTEL = "AuthenticAMD", "GenuineIntel"
AMD_FULL, AMD_SCALE = 2048, 160
GROUPS: Mapping[qos.QoS, str] = {qos.QoS.LSR: "LSR", qos.QoS.LS: "LS", qos.QoS.BE: "BE"}
POD_PREFIX = "koordlet-"
PRESENT, ABSENT = "present", "absent"
YOUNG_SECONDS = 10.0
"""The cgroup of a pod that is not known yet may be that young."""


class CacheError(adjustments.HookError):
    """A part of a cache that no mask can say; the text names what is wrong."""


class _Share(msgspec.Struct, frozen=True):
    range: tuple[annotations.Int64, annotations.Int64] | None = None
    percent: annotations.Int64 | None = None


class _CacheShare(_Share, frozen=True):
    cache_id: annotations.Int64 = msgspec.field(name="cacheID", default=0)


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    schemata: _Share | None = None
    schemata_per_cache: list[_CacheShare] | None = None


class _Wish(msgspec.Struct, frozen=True):
    llc: _Part = _Part()
    mb: _Part = _Part()


_ANYTHING = strategy_settings.Overrides()
_DEFAULT: Mapping[qos.QoS, strategy_settings.Cache] = {
    qos.QoS.BE: strategy_settings.Cache(end_percent=30)
}
"""What a class has where nothing else is said, as published."""


def mask(whole: int, start: int, end: int) -> int:
    """Return the bits of a share of the cache, given in percent of its ways."""
    ways = whole.bit_length()
    if whole <= 0 or whole != (1 << ways) - 1:
        raise CacheError(f"{whole:x} is no full mask of a cache")
    if not 0 <= start < end <= 100:
        raise CacheError(f"range {start}..{end} is no part of 0..100")
    return (1 << math.ceil(ways * end / 100)) - (1 << math.ceil(ways * start / 100))


def bandwidth(percent: int, vendor: str) -> int | None:
    """Return memory bandwidth in the processor's own units, None where it cannot be set."""
    if not 0 < percent <= 100:
        return None
    if vendor == AMD:
        return AMD_FULL if percent == 100 else AMD_SCALE * percent // 100
    return math.ceil(percent / 10) * 10


def line(resource: str, values: Mapping[int, str]) -> str:
    """Return one line of a schemata, by cache id."""
    parts = "".join(f"{cache}={value};" for cache, value in values.items())
    return f"{resource}:{parts}\n"


def decide(
    picture: state.NodeState,
    classes: Mapping[qos.QoS, strategy_settings.Cache],
    *,
    of_pods: bool = True,
    most: strategy_settings.Overrides = _ANYTHING,
) -> edits.Decision:
    """Return the groups, their shares and who belongs to them."""
    machine = picture.caches
    pods = [pod for pod in picture.pods if pod.active]
    own = sum(_wish(pod) is not None for pod in pods) if of_pods else 0
    enabled = {name for name, cache in classes.items() if cache.enable}
    wanted = _orphans(picture) if of_pods else []
    if not enabled and not own and not wanted:
        return edits.switched_off("no class and no pod has cache QoS")
    if picture.kernel.mountable_caches:
        reason = "the cache is divided through it"
        wanted.append(edits.Edit(edits.Role.RESCTRL_MOUNT, "", PRESENT, reason))
    if machine is None:
        why = "the kernel or the processor cannot divide its cache"
        first = "resctrl has to be mounted first"
        return edits.Decision(first if wanted else why, tuple(wanted), unmet="" if wanted else why)
    parts, flaws = _classes(classes if enabled else {}, machine)
    wanted += parts
    found = reconciliation.of_pods(pods, HOOK.bind(rule(classes, machine, most, of_pods=of_pods)))
    wanted += found.wanted
    problems = [*flaws.values(), *found.problems]
    # Not what pods ask for in annotations, and not what a class says that is off.
    unmet = "; ".join(flaw for name, flaw in flaws.items() if name in enabled)
    named = wording.count(len(enabled), "class", "classes")
    reason = f"cache QoS of {named} and {wording.count(own, 'pod', 'pods')}"
    if problems:
        reason += f"; left alone: {'; '.join(problems[:3])}"
    figures = {"problems": len(problems)}
    return edits.Decision(reason, tuple(wanted), figures=figures, unmet=unmet)


class Rule(msgspec.Struct, frozen=True):
    """What the node says of its caches."""

    machine: state.Caches
    classes: Mapping[qos.QoS, strategy_settings.Cache]
    groups: frozenset[str]
    """The resctrl groups of classes that are there."""
    most: strategy_settings.Overrides = _ANYTHING
    of_pods: bool = True
    """Whether pods may have a share of their own."""


def rule(
    classes: Mapping[qos.QoS, strategy_settings.Cache],
    machine: state.Caches,
    most: strategy_settings.Overrides = _ANYTHING,
    *,
    of_pods: bool = True,
) -> Rule:
    """Return what holds for pods; a class whose share cannot be set has no group."""
    on = any(cache.enable for cache in classes.values())
    parts, _ = _classes(classes if on else {}, machine)
    groups = {edit.group for edit in parts if edit.role is edits.Role.RESCTRL_GROUP}
    enabled = {GROUPS[name] for name, one in classes.items() if one.enable and name in GROUPS}
    return Rule(machine, classes, frozenset(groups & enabled), most, of_pods)


def adjust(subject: subjects.Subject, by: Rule) -> adjustments.Adjustment:
    """Return the resctrl group of a container; with a pod, the share of that group."""
    if not subject.pod.active or subject.in_guest:
        return adjustments.NOTHING
    group, made = _belongs(subject.pod, by)
    if subject.level is subjects.Level.POD:
        return adjustments.Adjustment(beside=made) if made else adjustments.NOTHING
    if not group:
        return adjustments.NOTHING
    value = adjustments.Value(group, f"belongs to {group}")
    return adjustments.Adjustment({edits.Role.PROCESS_RESCTRL: value})


HOOK = adjustments.Hook("Resctrl", adjust)


def _group_of(pod: state.PodState, by: Rule) -> tuple[str, tuple[edits.Edit, ...]]:
    """Return the group of a pod and the edits that make it; a CacheError says what is wrong."""
    uid = pod.pod.metadata.uid
    wish = _wish(pod) if by.of_pods else None
    if wish is None:
        class_ = strategy_settings.OWN_CLASS.get(pod.effective_qos, qos.QoS.NONE)
        group = GROUPS.get(class_, "")
        return (group if group in by.groups else ""), ()
    if by.most.bounded:
        wish = _bounded(wish, pod, by.classes, by.most)
    try:
        return f"{POD_PREFIX}{uid}", tuple(_pod(uid, wish, by.machine))
    except CacheError as error:
        raise CacheError(f"pod {uid}: {error}") from error


_belongs = subjects.PerPod(_group_of)


def _classes(
    classes: Mapping[qos.QoS, strategy_settings.Cache], machine: state.Caches
) -> tuple[list[edits.Edit], dict[qos.QoS, str]]:
    """Return the groups of classes with their shares, and what is wrong with the others."""
    wanted: list[edits.Edit] = []
    flaws: dict[qos.QoS, str] = {}
    for name, group in GROUPS.items():
        if name in classes:
            try:
                wanted += _class(group, classes[name], machine)
            except CacheError as error:
                flaws[name] = f"class {group}: {error}"
    return wanted, flaws


def _orphans(picture: state.NodeState) -> list[edits.Edit]:
    """Return the end of groups whose pods are gone, of any origin: there are few groups."""
    if picture.caches is None or not picture.settled:
        return []
    known = {f"{POD_PREFIX}{pod.pod.metadata.uid}" for pod in picture.pods}
    return [
        edits.Edit(edits.Role.RESCTRL_GROUP, name, ABSENT, "its pod is gone")
        for name, made in picture.caches.groups.items()
        if name.startswith(POD_PREFIX) and name not in known and picture.at - made >= YOUNG_SECONDS
    ]


def _class(group: str, cache: strategy_settings.Cache, machine: state.Caches) -> list[edits.Edit]:
    share = mask(machine.mask, cache.start_percent, cache.end_percent)
    masks = dict.fromkeys(machine.ids, f"{share:x}")
    percent = cache.bandwidth_percent
    speed = None if percent is None else bandwidth(percent, machine.vendor)
    speeds = {} if speed is None else dict.fromkeys(machine.ids, str(speed))
    reason = f"class {group}: cache {cache.start_percent}..{cache.end_percent} %"
    return _group(group, masks, speeds, f"{reason}, bandwidth {percent} %")


def _pod(uid: str, wish: _Wish, machine: state.Caches) -> list[edits.Edit]:
    masks, speeds = {}, {}
    for cache in machine.ids:
        part = _part(wish.llc, cache)
        if part is not None and part.range is not None:
            masks[cache] = f"{mask(machine.mask, *part.range):x}"
        part = _part(wish.mb, cache)
        speed = None if part is None or part.percent is None else part.percent
        value = None if speed is None else bandwidth(speed, machine.vendor)
        if value is not None and machine.vendor in (AMD, INTEL):
            speeds[cache] = str(value)
    # A line that lacks a cache would leave that one as the kernel made it.
    whole = [values if len(values) == len(machine.ids) else {} for values in (masks, speeds)]
    return _group(f"{POD_PREFIX}{uid}", whole[0], whole[1], "the pod's own share of the cache")


def _part(part: _Part, cache: int) -> _Share | None:
    for one in part.schemata_per_cache or ():
        if one.cache_id == cache:
            return one
    return part.schemata


def _group(
    group: str, masks: Mapping[int, str], speeds: Mapping[int, str], reason: str
) -> list[edits.Edit]:
    wanted = [edits.Edit(edits.Role.RESCTRL_GROUP, group, PRESENT, reason)]
    if masks:
        text = line("L3", masks).rstrip("\n")
        wanted.append(edits.Edit(edits.Role.RESCTRL_L3, group, text, reason))
    if speeds:
        text = line("MB", speeds).rstrip("\n")
        wanted.append(edits.Edit(edits.Role.RESCTRL_MB, group, text, reason))
    return wanted


def _bounded(
    wish: _Wish,
    pod: state.PodState,
    classes: Mapping[qos.QoS, strategy_settings.Cache],
    most: strategy_settings.Overrides,
) -> _Wish:
    """Keep a pod's own share within that of its class and the node's ceiling.

    A resctrl group has all of what is not set: what a pod leaves out, its class says.
    """
    named = strategy_settings.OWN_CLASS.get(pod.effective_qos, qos.QoS.NONE)
    own = classes.get(named)
    if own is None or not own.enable:
        own = _DEFAULT.get(named, strategy_settings.Cache())
    start, end = own.start_percent, own.end_percent
    speed = 100 if own.bandwidth_percent is None else own.bandwidth_percent
    if most.cache is not None:
        start, end = min(start, most.cache.start_percent), max(end, most.cache.end_percent)
        speed = max(speed, most.cache.bandwidth_percent or 0)
    bounds = _Share((start, end), speed)
    plain = _Share((own.start_percent, own.end_percent), own.bandwidth_percent)
    return _Wish(_within(wish.llc, bounds, plain), _within(wish.mb, bounds, plain))


def _within(part: _Part, bounds: _Share, plain: _Share) -> _Part:
    each = part.schemata_per_cache
    return _Part(
        _clamped(part.schemata or plain, bounds, plain),
        None if each is None else [_of_cache(one, bounds, plain) for one in each],
    )


def _of_cache(one: _CacheShare, bounds: _Share, plain: _Share) -> _CacheShare:
    share = _clamped(one, bounds, plain)
    return _CacheShare(range=share.range, percent=share.percent, cache_id=one.cache_id)


def _clamped(share: _Share, bounds: _Share, plain: _Share) -> _Share:
    start, end = bounds.range or (0, 100)
    found = plain.range
    if share.range is not None:
        first, last = max(share.range[0], start), min(share.range[1], end)
        # A range that cannot be, or that lies beside what is allowed, is that of the class.
        found = (first, last) if 0 <= first < last <= 100 else plain.range
    speed = plain.percent if share.percent is None else min(share.percent, bounds.percent or 100)
    return _Share(found, speed)


def _wish(pod: state.PodState) -> _Wish | None:
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_RESCTRL)
    return None if written is None else _REMEMBERED.if_readable(written)


_REMEMBERED = annotations.Reader(names.ANNOTATION_RESCTRL, _Wish, lambda wish: wish)
