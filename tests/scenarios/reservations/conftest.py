"""Extender and manager that hold Reservations, and the scheduler that calls them."""

import contextlib

import pytest_asyncio

from process.runtime import clock as clocks
from tests.planes import foundation
from tests.planes.migration import reserving


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(plane):
    """The processes, for all tests of a module."""
    async with contextlib.AsyncExitStack() as stack:
        laid = foundation.laid(plane, clocks.SystemClock())
        kube, access = await stack.enter_async_context(laid)
        running = await stack.enter_async_context(reserving.running(access))
        await plane.start_scheduler(
            running.extender.url,
            filter_timeout_seconds=30,
            scheduler_names=reserving.SCHEDULERS,
        )
        stack.push_async_callback(plane.stop_scheduler)
        yield kube, running


@pytest_asyncio.fixture(loop_scope="session")
async def holding(here, system):
    """The vocabulary of one test."""
    kube, running = system
    made = reserving.Reserving(here, running, kube)
    yield made
    await made.clear()
