"""Withdraws the webhooks when no endpoint answers, and puts them back."""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping

from api import resources
from kube.controllers import controller
from kube.informers import store
from manager.admission import reach, registered
from manager.admission import registration_plan as registration
from manager.reconcile import actions, apply
from process.runtime import clock as clocks
from process.runtime import metrics

Ask = Callable[[registered.Target], Awaitable[str | None]]
"""Returns why no webhook answers there, nothing when one does, None when that is unknown."""


Stores = Mapping[resources.Resource, store.Store[registered.Registered]]
"""The store of each kind of configuration."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """How this is done."""

    withdraw: bool
    """Whether configurations may be changed."""
    period_seconds: float
    patience: reach.Patience


class Figures:
    """What is counted."""

    def __init__(self, registry: metrics.Registry) -> None:
        self.probes = registry.counter(
            "koord_manager_webhook_probes_total", "Probes of the webhook by result.", ("result",)
        )
        self.withdrawn = registry.gauge(
            "koord_manager_webhook_withdrawn",
            "1 while a webhook configuration is withdrawn because no webhook answers.",
            ("configuration",),
        )


class Registrations:
    """Looks at both configurations again and again, and at whether a webhook answers."""

    def __init__(
        self,
        stores: Stores,
        ask: Ask,
        rules: Rules,
        writer: apply.Writer,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._stores = stores
        self._ask = ask
        self._rules = rules
        self._writer = writer
        self._clock = clock
        self._figures = Figures(registry)
        self._standing = reach.Standing()

    async def reconcile(self, key: str) -> controller.Outcome:
        """Probe the webhook, and reconcile both configurations."""
        await self._probe(key)
        period = self._rules.period_seconds
        done: list[controller.Outcome] = []
        for resource, seen in self._stores.items():
            late = self._writer.unseen(resource, key, seen)
            if late is not None:
                return late
            found = seen.get(key)
            done.append(await self._writer.carry_out(self._planned(resource, found)))
            withdrawn = found is not None and found.note is not None
            self._figures.withdrawn.labels(resource.plural).set(int(withdrawn))
        changed = any(one.changed for one in done)
        said = "; ".join(dict.fromkeys(one.message for one in done))
        return controller.Outcome(said, requeue_after=period, changed=changed)

    async def _probe(self, key: str) -> None:
        targets = [found.target() for seen in self._stores.values() if (found := seen.get(key))]
        target = next((one for one in targets if one is not None), None)
        if target is None:
            # Nothing is registered, so no webhook can be away; a new registration begins anew.
            self._standing = reach.Standing(times=self._standing.times)
            return
        problem = await self._ask(target)
        if problem is None:
            self._figures.probes.labels("unknown").inc()
            return
        self._figures.probes.labels("failed" if problem else "answered").inc()
        self._standing = reach.probed(
            self._standing, problem, self._clock.monotonic(), self._rules.patience
        )

    def _planned(
        self, resource: resources.Resource, found: registered.Registered | None
    ) -> actions.Plan:
        return registration.planned(
            registration.Seen(
                resource, found, self._standing, self._rules.withdraw, self._clock.now()
            )
        )
