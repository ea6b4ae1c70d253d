"""What lets pods in and takes loans back: gates, conditions, reclaim, and their live switches."""

import dataclasses

from api import names, resources
from api.kubernetes import core
from domain.pods import disruption_budgets
from domain.quota import model
from kube.client import client as clients
from kube.informers import informer_set, reflector, store
from manager.quota import arguments, book
from manager.quota.overuse import disruptions, reclaim
from manager.quota.waiting import gates
from manager.reconcile import apply
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class Duties:
    """What the leader enforces."""

    namespace: str
    """Where the ConfigMaps of arguments and switches are."""
    opens: gates.Pace | None = None
    """How gates open; None where this manager opens none."""
    opens_mode: switches.Mode = switches.Mode.ENFORCE
    reclaims: reclaim.Pace | None = None
    """How borrowers are evicted; None where this manager evicts none."""
    reclaims_mode: switches.Mode = switches.Mode.ENFORCE


class Enforcement:
    """Its informers and switches, on every replica; its work, on the leader."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        seen: book.Book,
        duties: Duties,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._book = seen
        self._duties = duties
        self._clock = clock
        self._registry = registry
        self._gates_live = switches.Switches(gates.SWITCH, duties.opens_mode)
        self._reclaim_live = switches.Switches(reclaim.SWITCH, duties.reclaims_mode)
        self._gates: gates.Gates | None = None
        self.arguments = arguments.Arguments(self._rules)
        seen.set_rules(self.arguments.rules)
        written, switched = (
            members.add(reflector.config_map(name, duties.namespace))
            for name in (names.CONFIG_MAP_SCHEDULER, names.CONFIG_MAP_SWITCHES)
        )
        self._budgets = members.add(
            reflector.Projection(
                resources.POD_DISRUPTION_BUDGETS,
                disruption_budgets.WatchedBudget,
                disruption_budgets.project,
            )
        )
        written.listen(lambda change: self.arguments.take(change.new))
        switched.listen(self._switch)

    async def run(self, writer: apply.Writer, reader: clients.Client) -> None:
        """Work until cancelled; everything is listed before."""
        async with supervise.Supervisor("quota-enforcement") as tasks:
            if (pace := self._duties.opens) is not None:
                opening = gates.Gates(
                    self._book, self._gates_live, pace, self._clock, self._registry
                )
                self._gates = opening
                tasks.start("gates", lambda: opening.run(writer))
            if (paced := self._duties.reclaims) is not None:
                budgets = disruptions.Disruptions(self._budgets, reader)
                taking = reclaim.Reclaim(
                    self._book,
                    self._reclaim_live,
                    self.arguments,
                    paced,
                    self._clock,
                    self._registry,
                )
                tasks.start("reclaim", lambda: taking.run(writer, budgets))
            await tasks.stopped()

    def _rules(self, rules: model.Rules) -> None:
        self._book.set_rules(rules)

    def _switch(self, change: store.Change[core.ConfigMap]) -> None:
        data = change.new.data if change.new else None
        self._gates_live.take(data)
        self._reclaim_live.take(data)
        if self._gates is not None:
            self._gates.look()
