"""Events about conditions: one when an outcome changes, a warning while it does not hold. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from api import resources
from api.koordinator import event_reasons
from domain import conditions
from manager.reconcile import actions

Condition = conditions.Condition[event_reasons.Reason]
"""A condition whose reason is that of an event as well."""


def told(
    about: tuple[resources.Resource, str, str, str], present: Any, ours: Sequence[Condition]
) -> Iterator[actions.Tell]:
    """Yield the events that go with conditions; `about` is resource, namespace, name and uid.

    `present` are the conditions as they stand. The writer says the same only once in a row.
    """
    resource, namespace, name, uid = about
    for one in conditions.outcomes(present, ours):
        yield actions.Tell(
            resource,
            name,
            uid,
            one.reason,
            one.message,
            warning=not one.holds,
            namespace=namespace,
            topic=one.type,
        )
