"""Removes explanations that have expired or whose pod is gone."""

import dataclasses
from typing import Any

from kube import controller, store
from manager import apply
from manager.plans import schedule_explanation
from process import clock as clocks


@dataclasses.dataclass(frozen=True, slots=True)
class ScheduleExplanations:
    """What reconciling an explanation needs to see."""

    explanations: store.Store[schedule_explanation.Explained]
    pods: store.Store[Any]
    """Pods that have not ended, by key."""
    writer: apply.Writer
    clock: clocks.Clock

    async def reconcile(self, key: str) -> controller.Outcome:
        """End one explanation if it is time."""
        found = self.explanations.get(key)
        if found is None:
            return controller.Outcome("the explanation is gone", changed=False)
        wanted = schedule_explanation.planned(
            found, pod_exists=found.pod in self.pods, now=self.clock.now()
        )
        return await self.writer.carry_out(wanted)
