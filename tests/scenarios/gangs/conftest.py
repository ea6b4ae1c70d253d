"""An extender that plans gangs, and the scheduler that calls it."""

import contextlib

import pytest_asyncio

from api import names
from cli.dev import all_in_one
from extender import app, settings
from process.runtime import clock as clocks
from tests.planes import foundation, raw

PLUGINS = {"enabled": ["BatchFit", "Coscheduling"]}
GATE = {"name": names.GATE_GANG}


class Ganging:
    """One test's gangs."""

    def __init__(self, here, extender):
        self.here, self.extender = here, extender
        self._made = []

    async def gang(self, name, count, *, cpu="1", least=None, group="", more=None, **spec):
        """Create the members of a gang, gated as the webhook does."""
        notes = {
            names.ANNOTATION_GANG_NAME: name,
            names.ANNOTATION_GANG_MIN_AVAILABLE: str(least or count),
        }
        notes |= more or {}
        if group:
            notes[names.ANNOTATION_GANG_GROUPS] = group
        for number in range(count):
            await self.here.pod(
                f"{name}-{number}",
                requests={"cpu": cpu},
                annotations=notes,
                schedulingGates=[GATE],
                labels={"gang": name},
                **spec,
            )
            self._made.append(f"{name}-{number}")

    async def pods(self, name):
        answer = await self.here.api.get(self.here.path("pods"))
        return [one for one in answer["items"] if one["metadata"]["name"].startswith(f"{name}-")]

    async def bound(self, name):
        return sum(bool(one["spec"].get("nodeName")) for one in await self.pods(name))

    async def all_bound(self, name, count, timeout=60.0):
        async def there():
            return await self.bound(name) == count

        await raw.eventually(there, timeout)

    async def says(self, name, count, reason, sentence):
        """Wait until so many members say why they wait."""

        async def said():
            found = [
                one["message"]
                for pod in await self.pods(name)
                for one in pod["status"].get("conditions", ())
                if one["type"] == names.CONDITION_GANG and one["reason"] == reason
            ]
            return len(found) == count and all(sentence in message for message in found)

        await raw.eventually(said, 60.0)

    async def remove(self, name):
        for pod in await self.pods(name):
            await self.here.remove(pod["metadata"]["name"])

    def claims(self):
        books = self.extender.books
        return [one for one in books.nominations.values() if one.evidence == "gang"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def planning(plane):
    """The processes, for all tests of a module."""
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        laid = foundation.laid(plane, clock)
        _, access = await stack.enter_async_context(laid)
        chosen = settings.Settings.model_validate(
            {"server": all_in_one.local(), "health": all_in_one.local(), "plugins": PLUGINS}
        )
        extender = await stack.enter_async_context(app.running(chosen, access=access, clock=clock))

        async def ready():
            return extender.health.ready

        await raw.eventually(ready, 60.0)
        await plane.start_scheduler(extender.url, filter_timeout_seconds=30)
        stack.push_async_callback(plane.stop_scheduler)
        yield extender


@pytest_asyncio.fixture(loop_scope="session")
async def ganging(here, planning):
    """The vocabulary of one test."""
    return Ganging(here, planning)
