"""Removes explanations that have expired or whose pod is gone."""

import dataclasses
from typing import Any

from kube.controllers import controller
from kube.informers import store
from manager.explanation import plan as schedule_explanation
from manager.reconcile import apply
from process.runtime import clock as clocks


@dataclasses.dataclass(frozen=True, slots=True)
class ScheduleExplanations:
    """What reconciling an explanation needs to see."""

    explanations: store.Store[schedule_explanation.Explained]
    pods: tuple[store.Store[Any], ...]
    """Between them every pod that has not ended, by key."""
    writer: apply.Writer
    clock: clocks.Clock
    missing: dict[str, float] = dataclasses.field(default_factory=dict)
    """Since when the pod of an explanation is not seen."""

    async def reconcile(self, key: str) -> controller.Outcome:
        """End one explanation if it is time."""
        found = self.explanations.get(key)
        if found is None:
            self.missing.pop(key, None)
            return controller.Outcome("the explanation is gone", changed=False)
        now = self.clock.now()
        if any(found.pod in pods for pods in self.pods):
            self.missing.pop(key, None)
        else:
            self.missing.setdefault(key, now)
        since = self.missing.get(key)
        wanted = schedule_explanation.planned(found, missing_since=since, now=now)
        return await self.writer.carry_out(wanted)
