"""Puts preemption for gangs together, from the parts of gangs and of preemption for pods."""

from collections.abc import Awaitable, Callable

from extender.gangs import in_force
from extender.gangs.preemption import execution, notices, places, preemptor
from extender.preemption import assembly, writes
from extender.settings import GangSettings
from kube.client import client as clients
from kube.controllers import recorder
from process.configuration import switches
from process.runtime import metrics


def built(
    gangs: in_force.Parts,
    preempting: assembly.Preemption,
    settings: GangSettings,
    client: clients.Client,
    told: tuple[metrics.Registry, recorder.EventRecorder],
) -> preemptor.GangPreemptor:
    """Return what preempts for gangs, under the switches of preemption for pods."""
    said = notices.Notices(*told)
    writing = writes.Writes(client, gangs.pods, gangs.clock)
    evicting = execution.Execution(writing, gangs.clock, preempting.budgets, said, settings.writers)
    kept = places.Places(gangs.books, client, gangs.pods, gangs.clock)
    parts = preemptor.Parts(
        preempting.settings,
        _mode(gangs.enforces, preempting.switches),
        _doubt(gangs.doubt, preempting),
        preempting.budgets,
        preempting.preemptions,
        kept,
        evicting,
        said,
    )
    return preemptor.GangPreemptor(gangs, parts)


def _mode(
    filtering: Callable[[], bool], preempting: switches.Switches
) -> Callable[[], switches.Mode]:
    """Return how far anything may go: nothing where plans are not enforced."""
    return lambda: preempting.mode if filtering() else switches.Mode.OFF


def _doubt(
    doubt: Callable[[], Awaitable[str]], preempting: assembly.Preemption
) -> Callable[[], Awaitable[str]]:
    async def asked() -> str:
        return preempting.unsynced() or await doubt()

    return asked
