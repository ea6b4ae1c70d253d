"""The status of an ElasticQuotaProfile: its quota, of which nodes, or why there is none. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import resources
from api.koordinator import event_reasons
from domain import conditions, wording
from domain.quota import model
from manager.quota.profiles import profile_plan
from manager.reconcile import actions, outcomes

ACCEPTED: Final = "Accepted"
"""Whether all that it says is followed."""
NODES_SELECTED: Final = "NodesSelected"
"""Whether it selects any node."""
READY: Final = "Ready"
"""Whether its quota is as it should be."""
_TYPES: Final = (ACCEPTED, NODES_SELECTED, READY)
_RESOURCE: Final = resources.ELASTIC_QUOTA_PROFILES
_LONGEST: Final = 1000
_MOST_NAMED: Final = 8


def planned(
    found: profile_plan.Profile,
    sums: profile_plan.Sums | None,
    failure: tuple[event_reasons.Reason, str] | None,
    now: float,
) -> actions.Plan:
    """Plan the status of a profile; `sums` is None where the profile cannot be read.

    `failure` says why its quota could not be written.
    """
    judged = tuple(_judged(found, sums, failure))
    about = (_RESOURCE, found.namespace, found.name, found.uid)
    told = tuple(outcomes.told(about, found.status.get("conditions"), judged))
    said = conditions.merged(
        found.status.get("conditions"), judged, now, types=_TYPES, generation=found.generation
    )
    changed = _figures(found, sums)
    if said is not None:
        changed["conditions"] = said
    if not changed:
        return actions.Plan("its status is true", told)
    body = {"metadata": {"uid": found.uid}, "status": changed}
    step = actions.PatchStatus(_RESOURCE, found.name, body, found.namespace)
    return actions.Plan("its status is written", (step, *told))


def _figures(found: profile_plan.Profile, sums: profile_plan.Sums | None) -> dict[str, Any]:
    if found.spec is None or sums is None:
        return {}
    amounts, before = sums.guaranteed(), found.status.get("guaranteed")
    wanted = {"quotaName": found.spec.quota_name, "nodes": sums.nodes}
    changed: dict[str, Any] = {
        key: value for key, value in wanted.items() if found.status.get(key) != value
    }
    if before != amounts:
        gone = before.keys() - amounts.keys() if isinstance(before, Mapping) else ()
        changed["guaranteed"] = {**dict.fromkeys(gone), **amounts}
    return changed


def _judged(
    found: profile_plan.Profile,
    sums: profile_plan.Sums | None,
    failure: tuple[event_reasons.Reason, str] | None,
) -> Iterator[outcomes.Condition]:
    if found.spec is None or sums is None:
        why = "; ".join(found.doubts)[:_LONGEST]
        yield outcomes.Condition(ACCEPTED, False, profile_plan.UNREADABLE, why)
        note = "the profile cannot be read, so its quota stays as it is"
        yield outcomes.Condition(READY, False, profile_plan.UNREADABLE, note)
        return
    yield _accepted(found, sums)
    yield _selected(sums)
    if failure is not None:
        reason, note = failure
        yield outcomes.Condition(READY, False, reason, note[:_LONGEST])
        return
    amounts = _listed(sums)
    nodes = wording.count(sums.nodes, "node", "nodes")
    note = f"quota {found.spec.quota_name} guarantees {amounts} of {nodes}"
    yield outcomes.Condition(READY, True, "QuotaKept", note)


def _accepted(found: profile_plan.Profile, sums: profile_plan.Sums) -> outcomes.Condition:
    if found.doubts:
        why = "; ".join(found.doubts)[:_LONGEST]
        return outcomes.Condition(ACCEPTED, False, profile_plan.RATIO_IGNORED, why)
    if sums.doubt:
        return outcomes.Condition(ACCEPTED, False, profile_plan.KEYS_IGNORED, sums.doubt[:_LONGEST])
    note = "its quota follows the nodes that it selects"
    return outcomes.Condition(ACCEPTED, True, "QuotaProfileAccepted", note)


def _selected(sums: profile_plan.Sums) -> outcomes.Condition:
    if not sums.nodes:
        note = "no node carries the labels of spec.nodeSelector, so the quota guarantees nothing"
        return outcomes.Condition(NODES_SELECTED, False, "NoNodesSelected", note)
    selected = wording.count(sums.nodes, "node is", "nodes are")
    closed = wording.count(sums.closed_nodes, "of which takes", "of which take")
    note = f"{selected} selected, {closed} no pods now"
    return outcomes.Condition(NODES_SELECTED, True, "NodesSelected", note)


def _listed(sums: profile_plan.Sums) -> str:
    named = sums.keys[:_MOST_NAMED]
    more = f" and {len(sums.keys) - len(named)} more" if len(sums.keys) > len(named) else ""
    return ", ".join(model.amount_text(key, sums.total.get(key, 0)) for key in named) + more
