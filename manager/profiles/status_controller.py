"""Keeps the status of every ClusterColocationProfile up to what admission makes of it."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from api import resources
from domain.pods import profile_effects
from kube.controllers import controller
from kube.informers import store
from manager.profiles import status_plan
from manager.reconcile import apply
from process.runtime import clock as clocks

NAME: Final = "profilestatus"


def priority_class(raw: Mapping[str, Any]) -> profile_effects.PriorityClass:
    """Project a PriorityClass."""
    value = raw.get("value", 0)
    name = str(raw["metadata"]["name"])
    return profile_effects.PriorityClass(name, value if isinstance(value, int) else 0)


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileStatus:
    """What reconciling the status of a profile needs to see."""

    profiles: store.Store[status_plan.ProfileObject]
    classes: store.Store[profile_effects.PriorityClass]
    writer: apply.Writer
    clock: clocks.Clock

    async def reconcile(self, name: str) -> controller.Outcome:
        """Write what one profile comes to, where its status says something else."""
        found = self.profiles.get(name)
        if found is None:
            return controller.Outcome("the profile is gone", changed=False)
        unseen = self.writer.unseen(resources.COLOCATION_PROFILES, name, self.profiles)
        if unseen is not None:
            return unseen
        plan = status_plan.planned(
            found, self.profiles.values(), dict(self.classes.items()), self.clock.now()
        )
        return await self.writer.carry_out(plan)

    def judged_anew(self, change: store.Change[status_plan.ProfileObject]) -> Iterable[str]:
        """Return the profiles that a changed one concerns: itself, and those before it."""
        before, after = change.old, change.new
        same = before is not None and after is not None and before.profile == after.profile
        return [change.key] if same else [key for key in self._names() if key <= change.key]

    def naming(self, change: store.Change[profile_effects.PriorityClass]) -> Iterable[str]:
        """Return the profiles that name a priority class which came, changed or went."""
        return [
            one.name
            for one in self.profiles.values()
            if one.profile is not None and one.profile.spec.priority_class_name == change.key
        ]

    def _names(self) -> list[str]:
        return list(self.profiles.keys())
