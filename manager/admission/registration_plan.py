"""When webhooks are withdrawn because they do not answer, and when they are put back."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from api import names, resources
from api.koordinator import event_reasons
from api.kubernetes.webhooks import webhook_configuration
from api.wire import durations
from manager.admission import reach, registered
from manager.reconcile import actions

HOLD_SECONDS: Final = 600.0
"""How long a withdrawal stands when it is not renewed; then the webhook restores itself."""

_WITHDRAWN: Final = "WebhookWithdrawn"
_RESTORED: Final = "WebhookRestored"
_KEPT: Final = "WebhookUnreachable"


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """What the decision about one configuration looks at."""

    resource: resources.Resource
    found: registered.Registered | None
    standing: reach.Standing
    allowed: bool
    """Whether configurations may be changed at all."""
    now: float


def planned(seen: Seen) -> actions.Plan:
    """Return what is to be done about one configuration."""
    found, away = seen.found, seen.standing.away
    if found is None:
        return actions.Plan("nothing is registered")
    note = found.note
    if note is not None and note.by_hand:
        return actions.Plan(f"withdrawn by a person ({note.reason}); left alone")
    if note is not None:
        if away is False or not seen.allowed:
            return _restored(seen, found, note)
        return _kept_away(seen, found, note)
    if away:
        return _withdrawn(seen, found)
    return actions.Plan("answers" if away is False else "not known yet whether it answers")


def _withdrawn(seen: Seen, found: registered.Registered) -> actions.Plan:
    called = [one for one in found.webhooks if one.get("rules")]
    loose = [one for one in called if one.get("failurePolicy") == registered.IGNORE]
    if not called:
        return actions.Plan("no endpoint answers; nothing is called")
    if not seen.allowed or len(loose) < len(called):
        why = "failurePolicy is Fail" if seen.allowed else "withdrawal is switched off"
        note = f"no endpoint answers; left in place because {why}"
        return actions.Plan(note, (_told(seen, found, _KEPT, note, warning=True),))
    reason = seen.standing.problem
    mark = webhook_configuration.Withdrawal(
        since=durations.moment(seen.now),
        until=durations.moment(seen.now + HOLD_SECONDS),
        reason=reason,
        rules={one["name"]: one["rules"] for one in called},
    )
    text = (
        f"no endpoint answers since {mark.since} ({reason}), so the API server calls no webhook: "
        "pods are created as they are sent and are listed at /debug/admissions; this is put back "
        "when an endpoint answers"
    )
    bare = [_without_rules(one) for one in found.webhooks]
    told = _told(seen, found, _WITHDRAWN, text, warning=True)
    return actions.Plan("withdrawn", (_merge(seen, found, mark, bare), told))


def _kept_away(
    seen: Seen, found: registered.Registered, note: webhook_configuration.Withdrawal
) -> actions.Plan:
    """Renew the note in time, and take out rules that were put back."""
    stray = {one["name"]: one["rules"] for one in found.webhooks if one.get("rules")}
    left = webhook_configuration.moment(note.until) - seen.now
    if not stray and left > HOLD_SECONDS / 2:
        return actions.Plan("stays withdrawn")
    renewed = webhook_configuration.Withdrawal(
        since=note.since,
        until=durations.moment(seen.now + HOLD_SECONDS),
        reason=note.reason,
        rules={**note.rules, **stray},
    )
    bare = [_without_rules(one) for one in found.webhooks] if stray else None
    return actions.Plan("stays withdrawn, renewed", (_merge(seen, found, renewed, bare),))


def _restored(
    seen: Seen, found: registered.Registered, note: webhook_configuration.Withdrawal
) -> actions.Plan:
    whole = [
        {**one, "rules": note.rules[one["name"]]}
        if one.get("name") in note.rules and not one.get("rules")
        else one
        for one in found.webhooks
    ]
    why = "an endpoint answers again" if seen.allowed else "withdrawal is switched off"
    text = f"{why}: put back after it was withdrawn at {note.since} ({note.reason})"
    told = _told(seen, found, _RESTORED, text, warning=False)
    return actions.Plan("restored", (_merge(seen, found, None, whole), told))


def _merge(
    seen: Seen,
    found: registered.Registered,
    mark: webhook_configuration.Withdrawal | None,
    webhooks: list[dict[str, Any]] | None,
) -> actions.Merge:
    """Change the note, and the webhooks with it, only if nothing was changed meanwhile."""
    note = None if mark is None else webhook_configuration.text(mark)
    body: dict[str, Any] = {
        "metadata": {
            "resourceVersion": found.version,
            "annotations": {names.ANNOTATION_WITHDRAWN: note},
        }
    }
    if webhooks is not None:
        body["webhooks"] = webhooks
    return actions.Merge(seen.resource, found.name, body)


def _told(
    seen: Seen,
    found: registered.Registered,
    reason: event_reasons.Reason,
    note: str,
    *,
    warning: bool,
) -> actions.Tell:
    return actions.Tell(seen.resource, found.name, found.uid, reason, note, warning=warning)


def _without_rules(webhook: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in webhook.items() if field != "rules"}
