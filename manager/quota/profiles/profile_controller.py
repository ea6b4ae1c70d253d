"""Keeps a root quota as large as the nodes that a profile selects."""

import dataclasses
from typing import Final

from api import resources
from api.koordinator import event_reasons
from kube.client import errors
from kube.controllers import controller
from kube.informers import store
from manager.model import projections
from manager.quota.profiles import profile_plan as quota_profile
from manager.reconcile import actions, apply

_RETRY_SECONDS: Final = 2.0
CREATE_FAILED: Final = "CreateQuotaFailed"
UPDATE_FAILED: Final = "UpdateQuotaFailed"


@dataclasses.dataclass(frozen=True, slots=True)
class QuotaProfiles:
    """What reconciling the quota of a profile needs to see."""

    profiles: store.Store[quota_profile.Profile]
    quotas: store.Store[quota_profile.Quota]
    nodes: store.Store[projections.Node]
    writer: apply.Writer

    async def reconcile(self, key: str) -> controller.Outcome:
        """Bring the quota of one profile about; a profile that is gone leaves its quota."""
        wanted = self.profiles.get(key)
        if wanted is None:
            return controller.Outcome("the profile is gone; its quota stays", changed=False)
        name = wanted.spec.quota_name if wanted.spec is not None else ""
        for resource, named, seen in (
            (resources.ELASTIC_QUOTAS, name, self.quotas),
            (resources.ELASTIC_QUOTA_PROFILES, wanted.name, self.profiles),
        ):
            unseen = self.writer.unseen(resource, named, seen, wanted.namespace)
            if unseen is not None:
                return unseen
        there = self.quotas.get(f"{wanted.namespace}/{name}")
        nodes = (
            quota_profile.Node(node.labels, node.offered, node.schedulable) for node in self.nodes
        )
        planned = quota_profile.planned(wanted, there, nodes)
        try:
            return await self.writer.carry_out(planned)
        except errors.ApiError as error:
            if isinstance(error, errors.Conflict):
                raise
            reason: event_reasons.Reason = CREATE_FAILED if there is None else UPDATE_FAILED
            told = quota_profile.told(wanted, reason, f"quota {name}: {error}")
            await self.writer.carry_out(actions.Plan(str(error), (told,)))
            message = f"quota {name} could not be written: {error}"
            return controller.Outcome(message, requeue_after=_RETRY_SECONDS, changed=False)


def profiles_of(change: store.Change[quota_profile.Quota]) -> list[str]:
    """Return the profiles whose quota has changed."""
    seen = change.new or change.old
    if seen is None:
        return []
    namespace, _, _name = change.key.partition("/")
    owner = seen.labels.get(quota_profile.OWNER)
    return [f"{namespace}/{owner}"] if owner else []
