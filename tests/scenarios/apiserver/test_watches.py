"""What watches and lists promise to clients that keep a copy."""

import pytest


@pytest.fixture
def maps(here):
    return here.path("configmaps")


async def create(here, maps, name, labels=None, **data):
    body = {"metadata": {"name": name, "labels": labels or {}}, "data": data}
    return await here.api.post(maps, body)


def named(name):
    return lambda event: event["object"]["metadata"].get("name") == name


async def test_a_watch_goes_on_where_the_list_ended(here, maps):
    await create(here, maps, "before")
    listed = await here.api.get(maps)
    assert "before" in [item["metadata"]["name"] for item in listed["items"]]
    version = listed["metadata"]["resourceVersion"]
    await create(here, maps, "a", labels={"mine": "1"}, x="1")
    await here.api.patch(f"{maps}/a", {"data": {"x": "2"}})
    await here.api.delete(f"{maps}/a")
    # The controllers write to every namespace, whenever they get to it.
    query = {"resourceVersion": version, "labelSelector": "mine=1"}
    async with here.api.watch(maps, **query) as stream:
        events = [await stream.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert {event["object"]["metadata"]["name"] for event in events} == {"a"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert versions[0] > int(version)


async def test_a_watch_without_a_version_starts_with_what_exists(here, maps):
    await create(here, maps, "a")
    async with here.api.watch(maps) as stream:
        event = await stream.until(named("a"))
    assert event["type"] == "ADDED"


@pytest.mark.since(1, 34, reason="before, streamed lists are an optional feature")
async def test_a_streamed_list_ends_with_a_marked_bookmark(here, maps):
    await create(here, maps, "a")
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    async with here.api.watch(maps, **query) as stream:
        names = []
        while (event := await stream.next())["type"] != "BOOKMARK":
            names.append(event["object"]["metadata"]["name"])
    assert "a" in names
    meta = event["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(meta["resourceVersion"]) > 0


async def test_a_watch_ends_when_its_time_is_over(here, maps):
    # The controllers write to every namespace, whenever they get to it.
    query = {"labelSelector": "mine=1", "timeoutSeconds": "1"}
    version = (await here.api.get(maps))["metadata"]["resourceVersion"]
    async with here.api.watch(maps, resourceVersion=version, **query) as stream:
        assert await stream.next() is None


async def test_leaving_a_selection_looks_like_a_deletion(here, maps):
    await create(here, maps, "a", labels={"tier": "web"})
    version = (await here.api.get(maps))["metadata"]["resourceVersion"]
    query = {"resourceVersion": version, "labelSelector": "tier=web"}
    async with here.api.watch(maps, **query) as stream:
        await here.api.patch(f"{maps}/a", {"metadata": {"labels": {"tier": "db"}}})
        assert (await stream.next())["type"] == "DELETED"
        await here.api.patch(f"{maps}/a", {"metadata": {"labels": {"tier": "web"}}})
        assert (await stream.next())["type"] == "ADDED"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("tier=web", {"a"}, id="equals"),
        pytest.param("tier!=web", {"b", "c"}, id="differs or is missing"),
        pytest.param("tier in (web, db)", {"a", "b"}, id="in"),
        pytest.param("tier notin (web)", {"b", "c"}, id="not in"),
        pytest.param("tier", {"a", "b"}, id="exists"),
        pytest.param("!tier", {"c"}, id="is missing"),
        pytest.param("tier=web,zone=x", set(), id="both"),
        pytest.param("tier,zone=x", {"b"}, id="exists and equals"),
    ],
)
async def test_labels_select(here, maps, selector, expected):
    await create(here, maps, "a", labels={"tier": "web", "mine": "1"})
    await create(here, maps, "b", labels={"tier": "db", "zone": "x", "mine": "1"})
    await create(here, maps, "c", labels={"mine": "1"})
    listed = await here.api.get(maps, labelSelector=f"mine=1,{selector}")
    assert {item["metadata"]["name"] for item in listed["items"]} == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("labelSelector", "tier in (web", id="label syntax"),
        pytest.param("fieldSelector", "spec.nothing=1", id="unknown field"),
    ],
)
async def test_a_selector_that_means_nothing_is_refused(here, maps, key, value):
    answer = await here.api.call("GET", maps, query={key: value})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_fields_select_pods_of_a_node(here):
    await here.pod("waiting")
    await here.pod("placed", nodeName="nowhere")
    pods = here.path("pods")
    listed = await here.api.get(pods, fieldSelector="spec.nodeName=nowhere")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["placed"]
    listed = await here.api.get(pods, fieldSelector="spec.nodeName=,status.phase=Pending")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["waiting"]


async def test_pages_are_one_consistent_list(here, maps):
    for number in range(5):
        await create(here, maps, f"m{number}", labels={"mine": "1"})
    query = {"labelSelector": "mine=1", "limit": "2"}
    page = await here.api.get(maps, **query)
    version = page["metadata"]["resourceVersion"]
    await create(here, maps, "m9", labels={"mine": "1"})
    names = [item["metadata"]["name"] for item in page["items"]]
    assert len(names) == 2
    while token := page["metadata"].get("continue"):
        page = await here.api.get(maps, **query, **{"continue": token})
        names += [item["metadata"]["name"] for item in page["items"]]
        assert page["metadata"]["resourceVersion"] == version
    assert names == [f"m{number}" for number in range(5)]


async def test_a_broken_page_token_is_refused(here, maps):
    answer = await here.api.call("GET", maps, query={"limit": "1", "continue": "nonsense"})
    assert answer.status == 400


async def test_lists_name_their_kind(here, maps):
    listed = await here.api.get(maps)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "ConfigMapList")


async def test_people_get_a_table(here, maps):
    await create(here, maps, "a", x="1")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    answer = await here.api.call("GET", f"{maps}/a", accept=accept)
    table = answer.body
    assert table["kind"] == "Table"
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert columns[:2] == ["Name", "Data"]
    assert table["rows"][0]["cells"][:2] == ["a", 1]
