"""The reserved quotas of the group scheduling.sigs.k8s.io: made when absent, never overwritten.

`koordinator-root-quota` is the root of the default tree, `koordinator-system-quota` and
`koordinator-default-quota` hold the pods of the system and those without a quota.
"""

import dataclasses
from collections.abc import Callable
from typing import Final

from api import names, resources
from api.wire import quantity
from domain import field_ownership
from domain.quota import model
from kube.controllers import controller
from manager.quota import book
from manager.reconcile import actions, apply

NAME: Final = "quotadefaults"
RESERVED: Final = (names.ROOT_QUOTA, names.SYSTEM_QUOTA, names.DEFAULT_QUOTA)
_MISSING_SECONDS: Final = 60.0
"""Pause before it is looked again whether the CRD has been installed."""


def planned(name: str, namespace: str, rules: model.Rules) -> actions.Plan:
    """Plan a reserved quota that is absent."""
    resource = resources.ELASTIC_QUOTAS
    labels = {names.LABEL_CREATED_BY: field_ownership.MANAGER}
    spec: dict[str, dict[str, str]] = {}
    if name == names.ROOT_QUOTA:
        labels |= {
            names.LABEL_QUOTA_IS_PARENT: "true",
            names.LABEL_QUOTA_LENT: "false",
            names.LABEL_QUOTA_PARENT: "",
        }
    else:
        most = rules.system_max if name == names.SYSTEM_QUOTA else rules.default_max
        spec["max"] = quantity.texts(most)
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }
    made = actions.Create(resource, name, body, namespace)
    return actions.Plan(f"quota {name} made", (made,))


@dataclasses.dataclass(frozen=True, slots=True)
class Defaults:
    """Keeps the reserved quotas there."""

    seen: book.Book
    namespace: Callable[[], str]
    installed: Callable[[], bool]
    """Whether the API server knows ElasticQuota of this group."""
    writer: apply.Writer

    async def reconcile(self, name: str) -> controller.Outcome:
        """Create one reserved quota if no object of any group has its name."""
        if not self.installed():
            note = "the CRD elasticquotas.scheduling.sigs.k8s.io is not installed"
            return controller.Outcome(note, requeue_after=_MISSING_SECONDS, changed=False)
        if self.seen.forest.quota(name) is not None:
            return controller.Outcome(f"quota {name} is there", changed=False)
        return await self.writer.carry_out(planned(name, self.namespace(), self.seen.forest.rules))


def reserved(change: book.Changed) -> tuple[str, ...]:
    """Return the reserved quota that an object was, where it went."""
    if change.kind != book.QUOTA or change.after is not None or change.before is None:
        return ()
    name = change.before.quota.name
    return (name,) if name in RESERVED else ()
