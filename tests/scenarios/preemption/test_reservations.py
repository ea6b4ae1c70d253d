"""Reservations that may preempt: pods leave for one, and none leaves for what another one keeps."""

import contextlib
import json

import pytest_asyncio

from api import names, resources
from cli.install import apply
from process.runtime import clock as clocks
from tests.planes import foundation, raw
from tests.planes.processes import restarting
from tests.scenarios.preemption import foreseen
from tests.scenarios.reservations.test_reservation_placing import (
    PATIENCE,
    SCHEDULERS,
    Placing,
    unregistered,
)

CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": name,
            "pluginConfig": [{"name": "Reservation", "args": {"enablePreemption": True}}],
        }
        for name in SCHEDULERS[1:]
    ],
}
ARGUMENTS = resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SCHEDULER)


@pytest_asyncio.fixture(loop_scope="session")
async def placing(plane, here, tmp_path):
    """Extender, manager and webhook, where Reservations preempt, and a scheduler."""
    async with contextlib.AsyncExitStack() as stack:
        kube, access = await stack.enter_async_context(foundation.laid(plane, clocks.SystemClock()))
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.CONFIG_MAP_SCHEDULER, "namespace": names.NAMESPACE},
            "data": {names.CONFIG_MAP_SCHEDULER: json.dumps(CONFIGURATION)},
        }
        await apply.one(kube, document)
        stack.push_async_callback(here.api.call, "DELETE", ARGUMENTS)
        stack.push_async_callback(unregistered, here.api)
        system = await stack.enter_async_context(
            restarting.running(access, tmp_path, controllers=["reservation"])
        )
        await plane.start_scheduler(
            system.extender.url, filter_timeout_seconds=30, scheduler_names=SCHEDULERS
        )
        stack.push_async_callback(plane.stop_scheduler)
        made = Placing(here, system)
        made.kube = kube
        stack.push_async_callback(made.clear)
        yield made


async def leaving(placing, *pods):
    """Which of these pods are leaving, or have left."""
    found = (await placing.here.api.get(placing.here.path("pods")))["items"]
    staying = {
        pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]
    }
    return set(pods) - staying


async def test_pods_leave_for_a_reservation_and_beside_it_and_owners_stay(placing):
    here = placing.here
    async with here.priority(1000) as high:
        node = await here.node("a", cpu="8")
        for name in ("first", "second"):
            await here.pod(name, requests={"cpu": "4"}, terminationGracePeriodSeconds=30)
            await here.bound(name)
        template = {"spec": {"priorityClassName": high, "terminationGracePeriodSeconds": 30}}
        await placing.reserve("r", requests={"cpu": "3"}, template=template, allocateOnce=False)
        (gone,) = await raw.eventually(lambda: leaving(placing, "first", "second"), PATIENCE)
        await here.remove(gone)
        assert (await placing.available("r"))["status"]["nodeName"] == node
        await placing.no_stand_ins()
        (stays,) = {"first", "second"} - {gone}
        assert await leaving(placing, stays) == set()

        # One CPU is free and three are kept: kube-scheduler sees room enough, and the other pod
        # of low priority leaves rather than that anything of the Reservation is taken.
        owner = {"labels": {"owner": here.id}}
        await here.pod("owner", requests={"cpu": "1"}, **owner)
        await here.bound("owner")
        before = await foreseen.state(placing.kube)
        await here.pod("high", requests={"cpu": "3"}, priorityClassName=high)
        (last,) = await raw.eventually(lambda: leaving(placing, stays, "owner"), PATIENCE)
        assert last == stays
        tried = await here.api.get(here.path("pods", "high"))
        assert foreseen.victims(before, tried) == {stays}
        await here.remove(stays)
        await here.bound("high")
        assert await leaving(placing, "owner") == set()
        await here.pod("rest", requests={"cpu": "2"}, **owner)
        assert (await here.bound("rest"))["spec"]["nodeName"] == node
