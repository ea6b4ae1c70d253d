"""The controllers behind Deployments, ReplicaSets and Jobs, through the API like everybody.

Pods are created over HTTP, so that admission webhooks see them.
"""

import asyncio
import functools
import logging

from process.runtime import clock as clocks
from process.runtime import supervise
from simulator import link
from simulator.apiserver.storage import lifecycle
from simulator.controllers import workload_plans

PATHS = {
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "pods": "/api/v1",
}
RETRY_SECONDS = 1.0

_logger = logging.getLogger(__name__)


class Workloads:
    """Keeps copies of what it watches and carries out what the plans say."""

    def __init__(self, client: link.Link, clock: clocks.Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, dict[str, link.Object]] = {plural: {} for plural in PATHS}
        self._synced: set[str] = set()
        self._gone: set[str] | None = None
        """What has been deleted while an object is being made."""
        self._stirred = asyncio.Event()

    async def run(self) -> None:
        """Watch and act until cancelled."""
        async with supervise.Supervisor("workloads") as supervisor:
            for plural in PATHS:
                supervisor.start(plural, functools.partial(self._watch, plural))
            supervisor.start("acting", self._act_for_ever)
            await supervisor.stopped()

    async def _watch(self, plural: str) -> None:
        def replace(items: list[link.Object]) -> None:
            self._known[plural] = {item["metadata"]["uid"]: item for item in items}
            self._synced.add(plural)
            self._stirred.set()

        def show(kind: str, item: link.Object) -> None:
            uid = item["metadata"]["uid"]
            if kind == "DELETED":
                if self._gone is not None:
                    self._gone.add(uid)
                self._known[plural].pop(uid, None)
            else:
                self._known[plural][uid] = item
            self._stirred.set()

        await self._client.follow(f"{PATHS[plural]}/{plural}", replace, show)

    async def _act_for_ever(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            if self._synced != set(PATHS):
                continue
            try:
                await self._act()
            except link.LinkError as error:
                _logger.info("workloads will be looked at again reason=%s", error)
                await self._clock.sleep(RETRY_SECONDS)
                self._stirred.set()

    async def _act(self) -> None:
        world = workload_plans.World(
            deployments=tuple(self._known["deployments"].values()),
            replica_sets=tuple(self._known["replicasets"].values()),
            jobs=tuple(self._known["jobs"].values()),
            pods=tuple(self._known["pods"].values()),
        )
        for step in workload_plans.steps(world, lifecycle.timestamp(self._clock.now())):
            await self._carry_out(step)

    async def _carry_out(self, step: workload_plans.Step) -> None:
        path = f"{PATHS[step.plural]}/namespaces/{step.namespace}/{step.plural}"
        match step:
            case workload_plans.Create():
                await self._make(step, path)
            case workload_plans.Delete():
                body = {"preconditions": {"uid": step.uid}}
                await self._unless_gone("DELETE", f"{path}/{step.name}", body)
            case workload_plans.Patch():
                end = f"/{step.subresource}" if step.subresource else ""
                await self._unless_gone("PATCH", f"{path}/{step.name}{end}", step.body)

    async def _make(self, step: workload_plans.Create, path: str) -> None:
        self._gone = gone = set[str]()
        try:
            made = await self._client.call("POST", path, step.body)
        finally:
            self._gone = None
        # Remembered at once: the watch may be late, and nothing may be made twice.
        if made["metadata"]["uid"] not in gone:
            self._known[step.plural].setdefault(made["metadata"]["uid"], made)

    async def _unless_gone(self, verb: str, path: str, body: link.Object) -> None:
        kind = link.MERGE_PATCH if verb == "PATCH" else "application/json"
        try:
            await self._client.call(verb, path, body, kind=kind)
        except link.LinkError as error:
            if error.code not in (404, 409):
                raise
