"""What the status of an ElasticQuota says, and what of it has to be written.

The object that a user wrote carries its status: figures as annotations and ``status.used`` in the
group scheduling.sigs.k8s.io, ``used``, ``allocatedQuota`` and ``podAllocatedQuota`` in the two
short groups, and conditions in all of them.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from api import names, resources
from api.koordinator import event_reasons
from api.wire import base, quantity, untrusted
from domain import conditions
from domain.quota import model
from domain.quota.shares import decay
from domain.quota.tree.forest import Forest
from manager.quota import objects
from manager.quota.status import borrowing, root_status
from manager.reconcile import actions

EFFECTIVE: Final = "Effective"
"""Whether the object counts; not where an older one has its name."""
PARENT_FOUND: Final = "ParentFound"
"""Whether it stands below the parent that it names."""
MINIMUMS_FIT: Final = "MinimumsFit"
"""Whether its min covers those of its children together."""
WITHIN_LIMIT: Final = "WithinEntitlement"
"""Whether its pods use no more than they may now."""
TYPES: Final = (EFFECTIVE, PARENT_FOUND, MINIMUMS_FIT, WITHIN_LIMIT)

NAME_CONFLICT: Final = "NameConflict"
PARENT_NOT_FOUND: Final = "ParentNotFound"
PARENT_REFUSED: Final = "ParentRefused"
MINIMUMS_EXCEEDED: Final = "MinimumsExceeded"
OVER_ENTITLEMENT: Final = "OverEntitlement"
_TOLD: Final[Mapping[str, event_reasons.Reason]] = {
    NAME_CONFLICT: NAME_CONFLICT,
    PARENT_NOT_FOUND: PARENT_NOT_FOUND,
    PARENT_REFUSED: PARENT_REFUSED,
    MINIMUMS_EXCEEDED: MINIMUMS_EXCEEDED,
}
"""Reasons that an event tells as well; the others come and go with pods."""
_RESTORED: Final[Mapping[str, event_reasons.Reason]] = {
    EFFECTIVE: "QuotaCounted",
    PARENT_FOUND: "QuotaPlaced",
    MINIMUMS_FIT: "MinimumsCovered",
}
"""Reasons of events about conditions that hold again."""
_MOST_NAMED: Final = 8


Condition = conditions.Condition[str]
"""One fact about a quota."""


@dataclasses.dataclass(frozen=True, slots=True)
class Status:
    """What an object is to say: annotations, lists of resources in its status, and conditions."""

    annotations: Mapping[str, str]
    lists: Mapping[str, Mapping[str, str]]
    conditions: tuple[Condition, ...]


def wanted(found: objects.QuotaObject, forest: Forest) -> Status:
    """Return what the status of an object is to say."""
    quota = found.quota
    counted = forest.quota(quota.name)
    is_root = quota.name == names.ROOT_QUOTA
    if counted is None and not is_root:
        return _of_figures(found, root_status.NO_FIGURES, (_unread(),))
    if counted is not None and counted.identity != quota.identity:
        return _of_figures(found, root_status.NO_FIGURES, (_taken(counted.identity),))
    figures = root_status.figures(forest) if is_root else forest.figures(quota.name)
    conditions = (
        Condition(EFFECTIVE, True, "Counted", "this object is what the quota of its name is"),
        _parent(found, forest),
        _minimums(quota.name, figures or root_status.NO_FIGURES, forest),
        _within(figures or root_status.NO_FIGURES),
    )
    if is_root:
        figures = root_status.shown(figures or root_status.NO_FIGURES, forest)
    return _of_figures(found, figures or root_status.NO_FIGURES, conditions)


def _of_figures(
    found: objects.QuotaObject, figures: model.Figures, conditions: tuple[Condition, ...]
) -> Status:
    used = quantity.texts(figures.used)
    if found.quota.resource is not resources.ELASTIC_QUOTAS:
        usable = {
            key: min(amount, figures.cap.get(key, amount)) for key, amount in figures.limit.items()
        }
        lists = {
            "used": used,
            "allocatedQuota": quantity.texts(usable),
            "podAllocatedQuota": quantity.texts(figures.self_used),
        }
        return Status(_charged(found, figures), lists, conditions)
    annotations = {
        names.ANNOTATION_QUOTA_RUNTIME: figures.runtime,
        names.ANNOTATION_QUOTA_REQUEST: figures.request,
        names.ANNOTATION_QUOTA_CHILD_REQUEST: figures.child_request,
        names.ANNOTATION_QUOTA_GUARANTEED: figures.guaranteed,
        names.ANNOTATION_QUOTA_ALLOCATED: figures.allocated,
        names.ANNOTATION_QUOTA_NON_PREEMPTIBLE_REQUEST: figures.non_preemptible_request,
        names.ANNOTATION_QUOTA_NON_PREEMPTIBLE_USED: figures.non_preemptible_used,
    }
    texts = {key: base.encoded(quantity.texts(amounts)) for key, amounts in annotations.items()}
    return Status(texts, {"used": used}, conditions)


def _charged(found: objects.QuotaObject, figures: model.Figures) -> dict[str, str]:
    """Return the account of admission, where admission has opened one on a short shape."""
    key = names.ANNOTATION_QUOTA_CHILD_REQUEST
    if key not in found.annotations:
        return {}
    return {key: base.encoded(quantity.texts(figures.child_request))}


def charged_as_is(found: objects.QuotaObject, status: Status) -> Status:
    """Return a status that leaves alone the account of admission, which may have raised it."""
    key = names.ANNOTATION_QUOTA_CHILD_REQUEST
    kept = {key: found.annotations[key]} if key in found.annotations else {}
    others = {name: text for name, text in status.annotations.items() if name != key}
    return Status({**others, **kept}, status.lists, status.conditions)


# --- Conditions ---------------------------------------------------------------------------------


def _unread() -> Condition:
    return Condition(EFFECTIVE, False, "NotCounted", "the quota is not counted yet")


def _taken(identity: str) -> Condition:
    note = (
        f"the name is taken by the older ElasticQuota {identity}; this object has no effect, "
        "give it another name or delete one of them"
    )
    return Condition(EFFECTIVE, False, NAME_CONFLICT, note)


def _parent(found: objects.QuotaObject, forest: Forest) -> Condition:
    quota = found.quota
    parent, path = quota.parent, forest.path(quota.name)
    at = path[1] if len(path) > 1 else names.ROOT_QUOTA
    if parent in {at, ""} or model.is_reserved(quota.name):
        return Condition(PARENT_FOUND, True, "Placed", f"its parent is {at}")
    if forest.quota(parent) is None:
        note = f"there is no quota {parent}; this one stands below {at} until there is"
        return Condition(PARENT_FOUND, False, PARENT_NOT_FOUND, note)
    note = (
        f"quota {parent} cannot be its parent, since it is in another tree, below this quota or "
        f"nested too deep; this one stands below {at} until that is corrected"
    )
    return Condition(PARENT_FOUND, False, PARENT_REFUSED, note)


def _minimums(name: str, figures: model.Figures, forest: Forest) -> Condition:
    sums: dict[str, int] = {}
    for child in forest.children(name):
        one = forest.quota(child)
        if one is not None and (name != names.ROOT_QUOTA or not forest.tree(child)):
            for key, amount in one.minimum.items():
                sums[key] = sums.get(key, 0) + amount
    over = {key: sum_ for key, sum_ in sums.items() if sum_ > figures.minimum.get(key, 0)}
    if not over:
        return Condition(MINIMUMS_FIT, True, "Covered", "its min covers that of its children")
    least = {key: figures.minimum.get(key, 0) for key in over}
    what = "the cluster has" if name == names.ROOT_QUOTA else "its own min is"
    scaled = (
        "they are scaled down while they ask for more"
        if forest.rules.scale_min
        else ("not all of them can be kept; raise its min or lower theirs")
    )
    note = f"the children guarantee {_listed(over)} together, {what} {_listed(least)}; {scaled}"
    return Condition(MINIMUMS_FIT, False, MINIMUMS_EXCEEDED, note)


def _within(figures: model.Figures) -> Condition:
    over = {key: used for key, used in figures.used.items() if used > figures.limit.get(key, used)}
    if not over:
        return Condition(WITHIN_LIMIT, True, "Within", "its pods use no more than they may")
    limit = {key: figures.limit[key] for key in over}
    note = (
        f"its pods use {_listed(over)} and may use {_listed(limit)} now; what is above that is "
        "borrowed, and is reclaimed when its owners ask for it"
    )
    return Condition(WITHIN_LIMIT, False, OVER_ENTITLEMENT, note)


def _listed(amounts: Mapping[str, int]) -> str:
    """Write amounts for people, boundedly many."""
    named = sorted(amounts)[:_MOST_NAMED]
    more = f" and {len(amounts) - len(named)} more" if len(amounts) > len(named) else ""
    return ", ".join(model.amount_text(key, amounts[key]) for key in named) + more


# --- Writing ------------------------------------------------------------------------------------


def planned(
    found: objects.QuotaObject, status: Status, now: float, counter: decay.Counter | None = None
) -> actions.Plan:
    """Plan what of a status has to be written; nothing where the object says it already.

    A counter of what was borrowed goes with it when one is due.
    """
    quota = found.quota
    changed = difference(found, status, now)
    if counter is not None:
        parts = {borrowing.FIELD: borrowing.change(found.status.get(borrowing.FIELD), counter)}
        changed = {**changed, "status": {**changed.get("status", {}), **parts}}
    told = tuple(_told(found, status.conditions))
    if not changed:
        return actions.Plan(f"quota {quota.name} says what is so", told)
    body = dict(changed)
    if found.version:
        # Admission adds to a figure by compare-and-swap: what it added must not be overwritten.
        body["metadata"] = {**body.get("metadata", {}), "resourceVersion": found.version}
    step = actions.Merge(quota.resource, quota.name, body, quota.namespace)
    return actions.Plan(f"status of quota {quota.name} written", (step, *told))


def difference(found: objects.QuotaObject, status: Status, now: float) -> dict[str, Any]:
    """Return the merge patch that makes an object say a status; empty where it does already."""
    notes = {
        key: text
        for key, text in status.annotations.items()
        if not _same_text(found.annotations.get(key), text)
    }
    parts: dict[str, Any] = {}
    for field, amounts in status.lists.items():
        change = _list_change(found.status.get(field), amounts)
        if change:
            parts[field] = change
    # No generation: without a subresource, the API server counts writes of the status as well.
    present = found.status.get("conditions")
    facts = conditions.merged(present, status.conditions, now, types=TYPES)
    if facts is not None:
        parts["conditions"] = facts
    body: dict[str, Any] = {"metadata": {"annotations": notes}} if notes else {}
    return {**body, "status": parts} if parts else body


def by_subresource(plan: actions.Plan) -> actions.Plan:
    """Write status apart from the rest, for a CRD that has it as a subresource."""
    steps: list[actions.Step] = []
    for step in plan.steps:
        if not isinstance(step, actions.Merge) or "status" not in step.body:
            steps.append(step)
            continue
        rest = {key: part for key, part in step.body.items() if key != "status"}
        body = {"status": step.body["status"]}
        if set(rest.get("metadata", {})) - {"resourceVersion"}:
            steps.append(actions.Merge(step.resource, step.name, rest, step.namespace))
        else:
            body |= rest
        steps.append(actions.PatchStatus(step.resource, step.name, body, step.namespace))
    return dataclasses.replace(plan, steps=tuple(steps))


def exceeds(present: str, text: str) -> bool:
    """Whether an annotation says more of a resource than another; unreadable ones do not."""
    try:
        one, other = (
            objects.amounts_of(untrusted.parsed(each, "a figure")) for each in (present, text)
        )
    except ValueError:
        return False
    return any(amount > other.get(key, 0) for key, amount in one.items())


def _same_text(present: str | None, text: str) -> bool:
    """Whether two annotations say the same amounts, however they write them."""
    if present is None or present == text:
        return present == text
    try:
        one, other = (untrusted.parsed(each, "a figure") for each in (present, text))
        return _same_list(one, other)
    except ValueError:
        return False


def _same_list(one: Any, other: Any) -> bool:
    return (
        isinstance(one, Mapping)
        and isinstance(other, Mapping)
        and one.keys() == other.keys()
        and all(quantity.equal(value, other[key]) for key, value in one.items())
    )


def _list_change(present: Any, amounts: Mapping[str, str]) -> dict[str, str | None]:
    """Return the merge patch of a resource list; whatever stands there and is none goes."""
    there = present if isinstance(present, Mapping) else {}
    change: dict[str, str | None] = {key: None for key in there if key not in amounts}
    for key, text in amounts.items():
        try:
            same = key in there and quantity.equal(there[key], text)
        except (ValueError, TypeError):
            same = False
        if not same:
            change[key] = text
    return change


def _told(found: objects.QuotaObject, facts: Iterable[Condition]) -> Iterable[actions.Tell]:
    quota = found.quota
    present = found.status.get("conditions")
    for one in conditions.outcomes(present, tuple(facts)):
        reason = _RESTORED.get(one.type) if one.holds else _TOLD.get(one.reason)
        if reason is None or (one.holds and not _is_news(present, one.type)):
            continue
        yield actions.Tell(
            quota.resource,
            quota.name,
            quota.uid,
            reason,
            one.message,
            warning=not one.holds,
            namespace=quota.namespace,
            topic=one.type,
        )


def _is_news(present: Any, kind: str) -> bool:
    """Whether it is worth an event that a condition holds: it did not, or the quota is new."""
    there = present if _is_list(present) else ()
    said = [
        one.get("status") for one in there if isinstance(one, Mapping) and one.get("type") == kind
    ]
    return said != ["True"] if said else kind == EFFECTIVE


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
