"""Keeps the daily sums in one ConfigMap while this replica leads."""

import asyncio
import logging
from typing import Final

from api import names, resources
from api.kubernetes import core
from api.wire import durations, untrusted
from domain.daily_sums import effects, sums
from kube.client import client as clients
from kube.client import errors
from kube.informers import shared_store, store
from manager.daily_sums import rates, scorecards
from manager.model import projections
from process.runtime import clock as clocks

NAME: Final = "dailysums"
PERIOD_SECONDS: Final = 60.0
"""Between two looks."""
WRITE_SECONDS: Final = 300.0
"""Between two writes; what was added since is lost when a replica ends."""
_NODES_A_STEP: Final = 500
_MANAGER: Final = "koord-manager-daily-sums"

logger = logging.getLogger(__name__)


class DailySums:
    """What this looks at, on every replica, and the sums of the leader."""

    def __init__(
        self,
        pods: shared_store.SharedStore[core.Pod],
        nodes: store.Store[projections.Node],
        reports: store.Store[projections.Metric],
        namespace: str,
        clock: clocks.Clock,
    ) -> None:
        self._pods: store.Store[rates.TeamPod] = pods.view(rates.team_pod)
        self._nodes, self._reports = nodes, reports
        self._namespace, self._clock = namespace, clock
        self._evicted: dict[str, int] = {}

    async def run(self, writes: clients.Client) -> None:
        """Work until cancelled; nodes and pods are listed before."""
        days: tuple[sums.Day, ...] | None = None
        today: scorecards.Today | None = None
        stop = self._pods.listen(self._changed)
        self._evicted.clear()
        looked = written = self._clock.monotonic()
        try:
            while True:
                if days is None:
                    days = await self._begin(writes)
                await self._clock.sleep(PERIOD_SECONDS)
                if days is None:
                    continue
                now = self._clock.monotonic()
                # A process that stood still did not look meanwhile.
                seconds = min(now - looked, 2 * PERIOD_SECONDS)
                looked = now
                date = durations.moment(self._clock.now())[:10]
                days = sums.added(days, date, await self._look(), seconds)
                if today is None or today.date != date:
                    today = scorecards.Today(date, sums.effects_of(days, date))
                if self._nodes.synced and self._reports.synced:
                    days = sums.with_effects(days, date, await self._did(today))
                if now - written >= WRITE_SECONDS and await self._write(writes, days):
                    written = now
        finally:
            stop()

    def _changed(self, change: store.Change[rates.TeamPod]) -> None:
        """Count evictions: a pod is counted once, when it is first seen to be disrupted."""
        if change.new is None or not change.new.disrupted:
            return
        if change.old is not None and not change.old.disrupted:
            namespace = change.key.partition("/")[0]
            self._evicted[namespace] = self._evicted.get(namespace, 0) + 1

    async def _look(self) -> sums.Rates:
        """Add up all pods, and let others work in between."""
        counting = rates.Counting(self._nodes.values(), self._report)
        for number, key in enumerate(list(self._pods.keys())):
            pod = self._pods.get(key)
            if pod is not None:
                counting.add(key, pod)
            if number % rates.PODS_A_STEP == rates.PODS_A_STEP - 1:
                await asyncio.sleep(0)
        evicted, self._evicted = self._evicted, {}
        return counting.rates(evicted)

    async def _did(self, today: scorecards.Today) -> effects.Effects:
        """Add up what agents say that they did today, and let others work in between."""
        now = self._clock.now()
        for number, node in enumerate(list(self._nodes.values())):
            report = self._report(node.name)
            if report is not None:
                cores = (node.capacity or node.allocatable).cpu / 1000
                today.take(node.name, report.scorecard, cores, now)
            if number % _NODES_A_STEP == _NODES_A_STEP - 1:
                await asyncio.sleep(0)
        return today.whole()

    def _report(self, node: str) -> projections.Report | None:
        metric = self._reports.get(node)
        return None if metric is None else metric.report

    async def _begin(self, writes: clients.Client) -> tuple[sums.Day, ...] | None:
        """Return the sums that are there; where none are, write at once that they are kept."""
        days = await self._read(writes)
        if days == ():
            await self._write(writes, days)
        return days

    async def _read(self, reads: clients.Client) -> tuple[sums.Day, ...] | None:
        """Return the sums that are there; None where the API server does not say."""
        name = names.CONFIG_MAP_REPORT
        try:
            found = await reads.get(resources.CONFIG_MAPS, name, self._namespace)
            return sums.read(found.get("data"))
        except errors.NotFound:
            return ()
        except untrusted.ReadError as error:
            logger.warning("sums begin anew name=%s error=%s", name, error)
            return ()
        except errors.KubeError as error:
            logger.warning("sums cannot be read name=%s error=%s", name, error)
            return None

    async def _write(self, writes: clients.Client, days: tuple[sums.Day, ...]) -> bool:
        name = names.CONFIG_MAP_REPORT
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": self._namespace,
                "labels": dict(names.INSTALLED),
            },
            "data": {sums.KEY: sums.text(days)},
        }
        try:
            await writes.patch(
                resources.CONFIG_MAPS,
                name,
                body,
                namespace=self._namespace,
                kind=clients.Patch.APPLY,
                field_manager=_MANAGER,
                force=True,
            )
        except errors.KubeError as error:
            # Tried again after the next look, if the term has not ended.
            logger.warning("sums cannot be written name=%s error=%s", name, error)
            return False
        return True
