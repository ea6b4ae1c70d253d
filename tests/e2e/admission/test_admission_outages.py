"""What happens while nobody answers reviews, on the real API server."""

import contextlib
import json

import pytest
import pytest_asyncio

from api import resources
from tests.planes import raw
from tests.planes.admission import admitting

PATIENCE = admitting.PATIENCE


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(real_plane, tmp_path_factory):
    folder = tmp_path_factory.mktemp("outages")
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        admitting.standing(real_plane, api, folder) as standing,
    ):
        yield standing


@contextlib.asynccontextmanager
async def hung(stand, _folder):
    stand.webhook.pause()
    try:
        yield
    finally:
        stand.webhook.resume()


@contextlib.asynccontextmanager
async def killed(stand, _folder):
    await stand.webhook.kill()
    try:
        yield
    finally:
        await stand.webhook.start()
        await stand.webhook.ready()


@contextlib.asynccontextmanager
async def swallowed(stand, _folder):
    # The manager asks through the same Service in a cluster; here it has to be told.
    stand.webhook.pause()
    await stand.point(address=admitting.NOWHERE)
    try:
        yield
    finally:
        stand.webhook.resume()
        await stand.point()


@contextlib.asynccontextmanager
async def outlived(stand, folder):
    stand.webhook.pause()
    pair = admitting.expired(await stand.kept())
    async with admitting.serving(pair, folder) as port:
        await stand.point(port)
        try:
            yield
        finally:
            stand.webhook.resume()
            await stand.point()


FAULTS = {"hung": hung, "killed": killed, "black-holed": swallowed, "expired": outlived}


async def named(stand, pod):
    """Wait until the manager says of a pod that it slipped through."""
    events = resources.CORE_EVENTS.path(admitting.USERS)

    async def told():
        query = {"fieldSelector": f"involvedObject.name={pod},reason=AdmissionMissed"}
        return (await stand.api.get(events, **query))["items"]

    (event,) = await raw.eventually(told, PATIENCE)
    return event["message"]


async def happened(stand, *reasons):
    """Tell whether events with these reasons are written, which takes a moment longer."""
    events = await stand.api.get(resources.CORE_EVENTS.path("default"))
    return set(reasons) <= {event["reason"] for event in events["items"]}


async def counted(stand):
    return await stand.manager.figure("koord_manager_webhook_withdrawn") == 2


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_an_outage_delays_pods_by_the_timeout_at_most_and_is_told(stand, fault, tmp_path):
    await stand.works()
    name = f"during-{fault}"
    async with FAULTS[fault](stand, tmp_path):
        created, seconds = await stand.create(name)
        assert not admitting.is_changed(created)
        # Both webhooks together wait three seconds; the rest is for a busy machine.
        assert seconds < 3 + 5
        assert "schedulerName is not 'koord-test'" in await named(stand, name)
        await stand.wait(lambda found: not admitting.is_called(found))
        found = await stand.registered()
        assert admitting.note(found).rules
        assert [hook["name"] for hook in found["webhooks"]]
        _, page = await stand.manager.page("/debug/admissions")
        listed = {row["pod"] for row in json.loads(page)["pods"]}
        assert f"{admitting.USERS}/{name}" in listed
        await raw.eventually(lambda: counted(stand), PATIENCE)
    await stand.wait(admitting.is_called)
    assert admitting.note(await stand.registered()) is None
    await stand.works()
    created, _ = await stand.create(f"after-{fault}")
    assert admitting.is_changed(created)
    await raw.eventually(lambda: happened(stand, "WebhookWithdrawn", "WebhookRestored"), PATIENCE)
