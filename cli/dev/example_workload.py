"""The example workload of `koord dev`, applied step by step so that each step shows one thing."""

from collections.abc import Callable, Iterable
from typing import Final

from cli.install import apply
from cli.view import overview, overview_reader
from kube.client import client as clients
from process.runtime import clock as clocks

SECONDS: Final = 120.0
"""The longest that a step is waited for: the story goes on in any cluster."""
ASKED_MILLI: Final = 3000
"""Batch cpu that a pod of the batch job asks for."""
_MEASURED_PERCENT: Final = 35


async def play(kube: clients.Client, clock: clocks.Clock) -> None:
    """Apply first the service, then the batch job, then who must wait.

    Each waits until the agents' reports show what came before. Otherwise nodes would first refuse
    for lack of a report, and events would warn of what is only a matter of seconds.
    """
    await _seen(kube, clock, _reports)
    await apply.everything(kube, apply.documents("online.yaml"))
    await _seen(kube, clock, lambda shown: _is_placed(shown) and _lends(shown))
    await apply.everything(kube, apply.documents("batch.yaml"))
    await _seen(kube, clock, lambda shown: _is_placed(shown) and shown.batch_running > 0)
    await apply.everything(kube, apply.documents("late.yaml"))


async def _seen(
    kube: clients.Client, clock: clocks.Clock, holds: Callable[[overview.Picture], bool]
) -> None:
    deadline = clock.monotonic() + SECONDS
    while clock.monotonic() < deadline and not holds(await overview_reader.read(kube)):
        await clock.sleep(1.0)


def _reports(shown: overview.Picture) -> bool:
    return bool(shown.nodes) and all(row.cpu.used is not None for row in shown.nodes)


def _is_placed(shown: overview.Picture) -> bool:
    return shown.running > 0 and not shown.pending


def _busy(shown: overview.Picture) -> Iterable[overview.NodeRow]:
    return [row for row in shown.nodes if row.pods]


def _lends(shown: overview.Picture) -> bool:
    """Whether reports show what the service uses, and leave enough for a batch pod."""
    return all(
        (row.cpu.used or 0) * 100 > _MEASURED_PERCENT * row.cpu.requested
        and row.cpu.lent >= ASKED_MILLI
        for row in _busy(shown)
    )
