"""Conditions of an object in the form of ``metav1.Condition``: what is to be said, what changed.

All types are worded so that True is good. Pure.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from api.wire import durations

R = TypeVar("R", bound=str)

_MOST_FOREIGN: Final = 32
"""Conditions of other clients that are kept; a list holds 64 at most."""


class Condition(NamedTuple, Generic[R]):
    """One observed fact; the moment is added in writing."""

    type: str
    holds: bool
    reason: R
    message: str


def merged(
    present: Any,
    ours: Sequence[Condition[Any]],
    now: float,
    *,
    types: Collection[str],
    generation: int | None = None,
) -> list[dict[str, Any]] | None:
    """Return all conditions with ours among them; None where they stand there already.

    `present` is what somebody wrote there, of whatever shape. Conditions of our `types` that are
    not said any more go, those of others stay. `generation` is that of the object that was looked
    at; None where the API server counts writes of the status as well.
    """
    there = _listed(present)
    before = {one["type"]: one for one in there}
    kept = [dict(one) for one in there if one["type"] not in types][:_MOST_FOREIGN]
    after = [*kept, *(_written(one, before.get(one.type), now, generation) for one in ours)]
    return None if isinstance(present, list | tuple) and after == list(present) else after


def outcomes(present: Any, ours: Sequence[Condition[R]]) -> Iterator[Condition[R]]:
    """Yield the conditions that an event tells of: what has changed, and what does not hold."""
    before = {one["type"]: one for one in _listed(present)}
    for one in ours:
        said = before.get(one.type, {})
        if not one.holds or (said.get("status"), said.get("reason")) != ("True", one.reason):
            yield one


def _listed(present: Any) -> list[Mapping[str, Any]]:
    if not isinstance(present, list | tuple):
        return []
    return [one for one in present if isinstance(one, Mapping) and isinstance(one.get("type"), str)]


def _written(
    one: Condition[Any], before: Mapping[str, Any] | None, now: float, generation: int | None
) -> dict[str, Any]:
    status = "True" if one.holds else "False"
    since = durations.moment(now)
    if before is not None and before.get("status") == status:
        since = before.get("lastTransitionTime") or since
    observed = {} if generation is None else {"observedGeneration": generation}
    return {
        "type": one.type,
        "status": status,
        "reason": one.reason,
        "message": one.message,
        "lastTransitionTime": since,
        **observed,
    }
