"""Keeps a root quota as large as the nodes that a profile selects."""

from collections.abc import Iterator
from typing import Final

from api import resources
from api.koordinator import event_reasons
from api.kubernetes import selectors
from kube.client import errors
from kube.controllers import controller
from kube.informers import store
from manager.model import projections
from manager.quota.profiles import profile_plan as quota_profile
from manager.quota.profiles import profile_status
from manager.reconcile import apply
from process.runtime import clock as clocks

REST_SECONDS: Final = 10.0
"""Pause between two looks at all nodes; what changes meanwhile is summed up in one go."""
_RETRY_SECONDS: Final = 2.0
_REFUSALS: Final = (errors.BadRequest, errors.Forbidden, errors.NotFound, errors.Invalid)
"""What does not pass by itself, so that its author should know; all else is tried again."""
CREATE_FAILED: Final = "CreateQuotaFailed"
UPDATE_FAILED: Final = "UpdateQuotaFailed"


class QuotaProfiles:
    """What reconciling the quota of a profile needs to see."""

    def __init__(
        self,
        profiles: store.Store[quota_profile.Profile],
        quotas: store.Store[quota_profile.Quota],
        nodes: store.Store[projections.Node],
        writer: apply.Writer,
        clock: clocks.Clock,
    ) -> None:
        self._profiles = profiles
        self._quotas = quotas
        self._nodes = nodes
        self._writer = writer
        self._clock = clock
        self._looked: dict[str, float] = {}
        """When the nodes of a profile were summed up last."""

    async def reconcile(self, key: str) -> controller.Outcome:
        """Bring the quota of one profile about; a profile that is gone leaves its quota."""
        wanted = self._profiles.get(key)
        if wanted is None:
            self._looked.pop(key, None)
            return controller.Outcome("the profile is gone; its quota stays", changed=False)
        unseen = self._unseen(wanted)
        if unseen is not None:
            return unseen
        if wanted.spec is None:
            outcome = controller.Outcome("the profile cannot be read", changed=False)
            return await self._tell(wanted, None, None, outcome)
        self._looked[key] = self._clock.monotonic()
        sums = quota_profile.summed(
            wanted,
            wanted.spec,
            (quota_profile.Node(one.labels, one.offered, one.schedulable) for one in self._nodes),
        )
        outcome, failure = await self._keep(wanted, wanted.spec.quota_name, sums)
        return await self._tell(wanted, sums, failure, outcome)

    async def _keep(
        self, wanted: quota_profile.Profile, name: str, sums: quota_profile.Sums
    ) -> tuple[controller.Outcome, tuple[event_reasons.Reason, str] | None]:
        """Write the quota; return what was done, and why it could not be done."""
        there = self._quotas.get(f"{wanted.namespace}/{name}")
        try:
            return await self._writer.carry_out(quota_profile.planned(wanted, there, sums)), None
        except _REFUSALS as error:
            reason: event_reasons.Reason = CREATE_FAILED if there is None else UPDATE_FAILED
            note = f"quota {name} could not be written: {error}"
            outcome = controller.Outcome(note, requeue_after=_RETRY_SECONDS, changed=False)
            return outcome, (reason, note)

    async def _tell(
        self,
        wanted: quota_profile.Profile,
        sums: quota_profile.Sums | None,
        failure: tuple[event_reasons.Reason, str] | None,
        outcome: controller.Outcome,
    ) -> controller.Outcome:
        """Write the status of a profile; the CRD of another installation has none."""
        plan = profile_status.planned(wanted, sums, failure, self._clock.now())
        try:
            written = await self._writer.carry_out(plan)
        except errors.NotFound:
            return outcome
        return controller.Outcome(
            f"{outcome.message}; {written.message}",
            outcome.requeue_after,
            changed=outcome.changed or written.changed,
        )

    def _unseen(self, wanted: quota_profile.Profile) -> controller.Outcome | None:
        name = wanted.spec.quota_name if wanted.spec is not None else ""
        return self._writer.unseen(
            resources.ELASTIC_QUOTAS, name, self._quotas, wanted.namespace
        ) or self._writer.unseen(
            resources.ELASTIC_QUOTA_PROFILES, wanted.name, self._profiles, wanted.namespace
        )

    def due(self, change: store.Change[projections.Node]) -> Iterator[tuple[str, float]]:
        """Yield the profiles that a changed node concerns, and the seconds until they may look."""
        before, after = change.old, change.new
        if before is not None and after is not None and _offer(before) == _offer(after):
            return
        now = self._clock.monotonic()
        for key, profile in self._profiles.items():
            if profile.spec is not None and any(
                selectors.matches(profile.spec.node_selector, node.labels)
                for node in (before, after)
                if node is not None
            ):
                yield key, max(0.0, self._looked.get(key, -REST_SECONDS) + REST_SECONDS - now)


def _offer(node: projections.Node) -> tuple[dict[str, str], dict[str, int], bool]:
    return node.labels, node.offered, node.schedulable


def profiles_of(change: store.Change[quota_profile.Quota]) -> list[str]:
    """Return the profiles whose quota has changed."""
    seen = change.new or change.old
    if seen is None:
        return []
    namespace, _, _name = change.key.partition("/")
    owner = seen.labels.get(quota_profile.OWNER)
    return [f"{namespace}/{owner}"] if owner else []
