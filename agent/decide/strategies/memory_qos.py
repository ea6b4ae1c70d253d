"""Protect the memory of a class and say where its reclaim begins, in every group of it."""

from collections.abc import Mapping

import msgspec

from agent.model import annotations, cgroup_properties, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain import wording
from domain.pods import resources

PAGE = 4096
_R = edits.Role
_CLASS_OF_GROUP: Mapping[str, qos.QoS] = {
    "Guaranteed": qos.QoS.LSR,
    "Burstable": qos.QoS.LS,
    "BestEffort": qos.QoS.BE,
}
Values = dict[edits.Role, int | None]


class _Override(msgspec.Struct, frozen=True, rename="camel"):
    """The annotation of a pod."""

    policy: str | None = None
    min_limit_percent: annotations.Int64 | None = None
    low_limit_percent: annotations.Int64 | None = None
    throttling_percent: annotations.Int64 | None = None
    wmark_ratio: annotations.Int64 | None = None
    wmark_scale_permill: annotations.Int64 | None = None
    wmark_min_adj: annotations.Int64 | None = None
    priority_enable: annotations.Int64 | None = None
    priority: annotations.Int64 | None = None
    oom_kill_group: annotations.Int64 | None = None
    page_cache_enable: bool | None = None
    page_cache_limit_percent: annotations.Int64 | None = None
    page_cache_limit_size: annotations.Int64 | None = None
    page_cache_reclaim_sync: bool | None = None


_SHARES = frozenset({"min_percent", "low_percent", "throttling_percent"})
_FIELDS = {
    "min_percent": "min_limit_percent",
    "low_percent": "low_limit_percent",
    "throttling_percent": "throttling_percent",
    "wmark_ratio": "wmark_ratio",
    "wmark_scale": "wmark_scale_permill",
    "wmark_min_adj": "wmark_min_adj",
    "priority_enable": "priority_enable",
    "priority": "priority",
    "oom_group": "oom_kill_group",
    "page_cache_enable": "page_cache_enable",
    "page_cache_percent": "page_cache_limit_percent",
    "page_cache_size": "page_cache_limit_size",
    "page_cache_sync": "page_cache_reclaim_sync",
}


_ANYTHING = strategy_settings.Overrides()


def decide(
    picture: state.NodeState,
    classes: Mapping[qos.QoS, strategy_settings.Memory],
    most: strategy_settings.Overrides = _ANYTHING,
) -> edits.Decision:
    """Return the memory settings of every group."""
    if picture.node is None:
        return edits.undecided("the Node object")
    if not classes and not _annotated(picture):
        return edits.switched_off("memory is set neither for a class nor for a pod")
    wanted: list[edits.Edit] = []
    for group, values in plan(picture, classes, most).items():
        if group:
            wanted += cgroup_properties.numbers(
                group, values, f"memory QoS of {group.rpartition('/')[2]}"
            )
    pods = wording.count(len(picture.pods), "pod", "pods")
    return edits.Decision(f"memory QoS of {pods}", tuple(wanted))


def plan(
    picture: state.NodeState,
    classes: Mapping[qos.QoS, strategy_settings.Memory],
    most: strategy_settings.Overrides = _ANYTHING,
) -> dict[str, Values]:
    """Return the values of every group: those of the classes, of pods and of containers."""
    found: dict[str, Values] = {}
    sums: dict[str, dict[edits.Role, int]] = {}
    allocatable = resources.node_allocatable(picture.node) if picture.node else {}
    unlimited = allocatable.get(names.MEMORY, 0)
    for pod in picture.pods:
        settings = of_pod(pod, classes, most) if pod.active else None
        if settings is None:
            continue
        asked = _asked(pod)
        found[pod.group] = _pod(pod, asked, settings)
        total = sums.setdefault(pod.kubernetes_qos, {})
        for role, percent in (
            (_R.MEMORY_MIN, settings.min_percent),
            (_R.MEMORY_LOW, settings.low_percent),
        ):
            if (amount := _percent(asked, percent)) is not None:
                total[role] = total.get(role, 0) + amount
        for container in pod.inside:
            if container.lasts:
                found[container.group] = _container(pod, container, settings, unlimited)
                _approximate(found[container.group], pod, container, settings, picture.kernel)
    found |= _of_classes(picture, classes, sums)
    return found


def of_pod(
    pod: state.PodState,
    classes: Mapping[qos.QoS, strategy_settings.Memory],
    most: strategy_settings.Overrides = _ANYTHING,
) -> strategy_settings.Memory | None:
    """Return what holds for a pod: its annotation, as far as it may loosen what its class has."""
    class_ = pod.effective_qos
    every = classes.get(strategy_settings.OWN_CLASS.get(class_, class_))
    wished = _wished(pod, class_, every)
    if wished is None or wished is every or not most.bounded:
        return wished
    default = strategy_settings.DEFAULT_MEMORY.get(class_, strategy_settings.NO_MEMORY)
    found = _ranked(wished, (every or default, default), class_, most.memory)
    return found if class_ is not qos.QoS.BE or every is None else _as_tight(found, every)


def _ranked(
    wished: strategy_settings.Memory,
    known: tuple[strategy_settings.Memory, ...],
    class_: qos.QoS,
    most: strategy_settings.Memory,
) -> strategy_settings.Memory:
    """Bound what protects a pod at the cost of others: by its class, and the node's ceiling."""
    batch = class_ is qos.QoS.BE

    def highest(field: str, *, ceiling: bool = True) -> int:
        values = [getattr(one, field) for one in (*known, *((most,) if ceiling else ()))]
        return max((value for value in values if value is not None), default=0)

    shifts = [one.wmark_min_adj for one in (*known, most) if one.wmark_min_adj is not None]
    return msgspec.structs.replace(
        wished,
        min_percent=_least(wished.min_percent, highest("min_percent", ceiling=not batch)),
        low_percent=_least(wished.low_percent, highest("low_percent", ceiling=not batch)),
        priority=_least(wished.priority, highest("priority")),
        wmark_min_adj=None
        if wished.wmark_min_adj is None
        else max(wished.wmark_min_adj, min(shifts, default=0)),
    )


def _least(value: int | None, most: int) -> int | None:
    return None if value is None else min(value, most)


def _as_tight(
    wished: strategy_settings.Memory, every: strategy_settings.Memory
) -> strategy_settings.Memory:
    """Keep best effort reclaimed and throttled no later than its class is."""
    found = wished
    for field in ("throttling_percent", "wmark_ratio"):
        of_class, own = getattr(every, field), getattr(wished, field)
        # Zero is off, which is the latest of all.
        if of_class and own is not None and not 0 < own <= of_class:
            found = msgspec.structs.replace(found, **{field: of_class})
    for field in ("page_cache_percent", "page_cache_size"):
        of_class, own = getattr(every, field), getattr(wished, field)
        if of_class is not None and own is not None and own > of_class:
            found = msgspec.structs.replace(found, **{field: of_class})
    if every.page_cache_enable and wished.page_cache_enable is False:
        found = msgspec.structs.replace(found, page_cache_enable=True)
    return found


def _wished(
    pod: state.PodState, class_: qos.QoS, every: strategy_settings.Memory | None
) -> strategy_settings.Memory | None:
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_MEMORY_QOS)
    own = _REMEMBERED.if_readable(written) if written else None
    if own is None:
        return every
    if own.policy == "none":
        return strategy_settings.NO_MEMORY
    if own.policy == "auto":
        every = strategy_settings.DEFAULT_MEMORY.get(class_, strategy_settings.NO_MEMORY)
    given = {
        field: value
        for field, name in _FIELDS.items()
        if (value := getattr(own, name)) is not None
        # A negative share of one pod would lower the sum over all pods.
        and not (field in _SHARES and value < 0)
    }
    return msgspec.structs.replace(every or strategy_settings.Memory(), **given)


_REMEMBERED = annotations.Reader(names.ANNOTATION_MEMORY_QOS, _Override, lambda own: own)


def _annotated(picture: state.NodeState) -> bool:
    key = names.ANNOTATION_MEMORY_QOS
    return any(key in pod.pod.metadata.annotations for pod in picture.pods)


def _percent(amount: int, percent: int | None) -> int | None:
    return None if percent is None else amount * percent // 100


def _protection(asked: int, settings: strategy_settings.Memory) -> Values:
    """Return what is never reclaimed and what is reclaimed last."""
    least, low = _percent(asked, settings.min_percent), _percent(asked, settings.low_percent)
    if least is not None and low is not None and 0 < low < least:
        low = least
    return {_R.MEMORY_MIN: least, _R.MEMORY_LOW: low}


def _priorities(settings: strategy_settings.Memory) -> Values:
    return {
        _R.MEMORY_PRIORITY: settings.priority,
        _R.MEMORY_PRIORITY_OOM: settings.priority_enable,
        _R.MEMORY_OOM_GROUP: settings.oom_group,
    }


def _reclaim(settings: strategy_settings.Memory) -> Values:
    return {
        _R.MEMORY_WMARK_RATIO: settings.wmark_ratio,
        _R.MEMORY_WMARK_SCALE: settings.wmark_scale,
        _R.MEMORY_WMARK_MIN_ADJ: settings.wmark_min_adj,
    }


def _asked(pod: state.PodState) -> int:
    if pod.qos is qos.QoS.BE:
        lasting = resources.lasting(pod.pod.spec)
        return sum(_memory(container, "requests", pod) for container in lasting)
    return resources.pod_requests(pod.pod).get(names.MEMORY, 0)


def _pod(pod: state.PodState, asked: int, settings: strategy_settings.Memory) -> Values:
    return {
        **_protection(asked, settings),
        **_reclaim(settings),
        **_priorities(settings),
        **_page_cache(pod, settings),
    }


def _container(
    pod: state.PodState,
    container: state.ContainerState,
    settings: strategy_settings.Memory,
    unlimited: int,
) -> Values:
    asked = _memory(container.container, "requests", pod)
    values = _protection(asked, settings)
    if settings.throttling_percent is not None:
        limit = _memory(container.container, "limits", pod) or unlimited
        values[_R.MEMORY_HIGH] = _high(
            asked, limit, settings.throttling_percent, values[_R.MEMORY_MIN]
        )
    return {**values, **_reclaim(settings), **_priorities(settings)}


def _high(asked: int, limit: int, percent: int, least: int | None) -> int:
    """Return where throttling begins, between request and limit; nowhere where it is off."""
    if percent == 0:
        return cgroup_properties.UNLIMITED
    high = (asked * 100 + (limit - asked) * percent) // 100 // PAGE * PAGE
    return least if least is not None and 0 < high < least else high


def _approximate(
    values: Values,
    pod: state.PodState,
    container: state.ContainerState,
    settings: strategy_settings.Memory,
    kernel: state.Kernel,
) -> None:
    """Where no kernel reclaims a batch container in the background, let it reclaim for itself.

    Online containers are left alone: to them, waiting for reclaim is what it should prevent.
    """
    if not kernel.roles or _R.MEMORY_WMARK_RATIO in kernel.roles or pod.qos is not qos.QoS.BE:
        return
    limit = _memory(container.container, "limits", pod)
    if limit and settings.wmark_ratio and values.get(_R.MEMORY_HIGH) == cgroup_properties.UNLIMITED:
        values[_R.MEMORY_HIGH] = limit * settings.wmark_ratio // 100 // PAGE * PAGE


def _memory(container: core.Container, side: str, pod: state.PodState) -> int:
    name = names.BATCH_MEMORY if pod.qos is qos.QoS.BE else names.MEMORY
    return state.core_amount(getattr(container.resources, side), name)


def _page_cache(pod: state.PodState, settings: strategy_settings.Memory) -> Values:
    if pod.qos is qos.QoS.BE:
        lasting = resources.lasting(pod.pod.spec)
        limit = sum(_memory(container, "limits", pod) for container in lasting) or None
    else:
        limit = resources.pod_limits(pod.pod).get(names.MEMORY) or None
    size = settings.page_cache_size
    if size is not None and limit is not None:
        size = min(size, limit)
    if size is None and limit is not None:
        size = _percent(limit, settings.page_cache_percent)
    enable, sync = None, None
    if size is not None:
        enable = int(size > 0)
        sync = int(bool(settings.page_cache_sync)) if size > 0 else None
    if settings.page_cache_enable is not None:
        enable = int(settings.page_cache_enable)
    return {_R.PAGE_CACHE_LIMITED: enable, _R.PAGE_CACHE_SIZE: size, _R.PAGE_CACHE_SYNC: sync}


def _of_classes(
    picture: state.NodeState,
    classes: Mapping[qos.QoS, strategy_settings.Memory],
    sums: Mapping[str, Mapping[edits.Role, int]],
) -> dict[str, Values]:
    """Return what the groups above the pods need: together what the pods below them have."""
    found: dict[str, Values] = {}
    for name, group in picture.qos_groups.items():
        below = list(sums.values()) if name == "Guaranteed" else [sums.get(name, {})]
        values: Values = {}
        for role in (_R.MEMORY_MIN, _R.MEMORY_LOW):
            amounts = [part[role] for part in below if role in part]
            values[role] = sum(amounts) if amounts else None
        settings = classes.get(_CLASS_OF_GROUP[name])
        found[group] = {**values, **(_priorities(settings) if settings else {})}
    return found
