"""What a watch and a list say when the API server has forgotten what they ask for."""

import pytest

pytestmark = pytest.mark.disturbs


@pytest.fixture
def maps(here):
    return here.path("configmaps")


async def create(here, maps, name, **data):
    return await here.api.post(maps, {"metadata": {"name": name}, "data": data})


async def test_a_version_that_is_too_old_is_expired(here, maps):
    old = (await create(here, maps, "a", x="1"))["metadata"]["resourceVersion"]
    await here.api.patch(f"{maps}/a", {"data": {"x": "2"}})
    await here.plane.forget_history()
    async with here.api.watch(maps, resourceVersion=old) as stream:
        event = await stream.next()
        assert event["type"] == "ERROR"
        assert event["object"]["code"] == 410
        assert event["object"]["reason"] == "Expired"
        assert await stream.next() is None


async def test_a_page_of_a_forgotten_list_is_expired(here, maps):
    for name in ("a", "b"):
        await create(here, maps, name)
    page = await here.api.get(maps, limit="1")
    await create(here, maps, "c")
    await here.plane.forget_history()
    query = {"limit": "1", "continue": page["metadata"]["continue"]}
    answer = await here.api.call("GET", maps, query=query)
    assert (answer.status, answer.reason) == (410, "Expired")
