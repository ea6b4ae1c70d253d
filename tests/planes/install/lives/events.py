"""Events that repeat: an `events.k8s.io/v1` Event is created first and counted afterwards."""

import secrets

from api import resources
from kube.client import access as accesses
from kube.client import client as clients
from kube.controllers import recorder
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.planes import raw
from tests.planes.install.lives import days


async def repeated_event(it, component):
    """An event that repeats is counted half a minute later, which nobody waits for here."""
    plane, clock = it.plane, clocks.SystemClock()
    token = accesses.StaticToken(it.tokens[component])
    access = accesses.Access(plane.server, plane.ca, token)
    about = recorder.Regarding("v1", "Pod", "job", days.USERS)
    note = f"{component} {secrets.token_hex(4)}"
    async with (
        clients.Client(access, clock=clock) as client,
        supervise.Supervisor("events") as tasks,
    ):
        rates = recorder.Rates(rewrite_seconds=0.1)
        events = recorder.Recorder(client, component, clock, instance="test", rates=rates)
        events.start(tasks)
        events.event(about, "Normal", "Repeated", note)

        async def found():
            path = resources.EVENTS.path(days.USERS)
            return [e for e in (await it.api.get(path))["items"] if e["note"] == note]

        async def counted():
            events.event(about, "Normal", "Repeated", note)
            return [e for e in await found() if (e.get("series") or {}).get("count", 0) > 1]

        # Only what was written once can be counted in place.
        await raw.eventually(found, days.PATIENCE)
        await raw.eventually(counted, days.PATIENCE)
