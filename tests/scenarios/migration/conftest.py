"""Extender, manager and descheduler, and the scheduler that calls the first of them."""

import contextlib

import pytest_asyncio

from process.runtime import clock as clocks
from tests.planes import foundation
from tests.planes.migration import migrating, reserving


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(plane, tmp_path_factory):
    """The processes, for all tests of a module."""
    async with contextlib.AsyncExitStack() as stack:
        laid = foundation.laid(plane, clocks.SystemClock())
        kube, access = await stack.enter_async_context(laid)
        running = await stack.enter_async_context(
            reserving.running(access, ("ElasticQuota", "Coscheduling"))
        )
        folder = tmp_path_factory.mktemp("migration")
        hosted = await stack.enter_async_context(migrating.descheduling(access, folder))
        await plane.start_scheduler(
            running.extender.url,
            filter_timeout_seconds=30,
            scheduler_names=reserving.SCHEDULERS,
        )
        stack.push_async_callback(plane.stop_scheduler)
        yield kube, running, hosted


@pytest_asyncio.fixture(loop_scope="session")
async def moving(here, system):
    """The vocabulary of one test."""
    kube, running, hosted = system
    made = migrating.Migrating(here, running, kube, hosted)
    yield made
    await made.clear()
