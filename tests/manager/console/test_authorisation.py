"""No answer of the console holds what the user's token may not list."""

import asyncio

import pytest

from api import resources
from tests.manager.console import conftest


@pytest.fixture
async def filled(world, opened):
    """A console in front of one node with pods of two teams."""
    await world.node("n1", cpu="64")
    await world.configure(colocation_config={"enable": True})
    for team in ("team-a", "team-b"):
        await world.admin.create(resources.PODS, conftest.pod(f"{team}-web", node="n1"), team)
        await world.admin.create(resources.PODS, conftest.pod(f"{team}-waits"), team)
    async with opened() as console:
        await world.report("n1", "3", {"x": "1"})
        await world.quiet()
        yield console


BAD = [
    pytest.param("", "carries no token", id="none"),
    pytest.param("nobody's", "characters that no bearer token has", id="garbage"),
    pytest.param("stale-7f3", "does not accept this token", id="unknown-or-expired"),
    pytest.param("x" * 8193, "more than 8192 characters", id="too-long"),
]


@pytest.mark.parametrize(("token", "why"), BAD)
async def test_who_is_not_known_sees_nothing(filled, token, why) -> None:
    for path in ("/api/session", "/api/nodes", "/api/nodes/n1"):
        status, body = await filled.get(path, token)
        assert (status, set(body)) == (401, {"error", "remedy"})
        assert why in body["error"]
        assert not token or token not in str(body)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("Basic YTpi", id="basic"),
        pytest.param("Bearer", id="empty"),
        pytest.param("Bearer a b", id="blank-inside"),
    ],
)
async def test_other_headers_are_no_token(filled, written) -> None:
    status, body = await filled.get("/api/nodes", "", Authorization=written)
    assert status == 401, body


async def test_headers_that_are_too_large_are_refused(filled) -> None:
    status, _ = await filled.get("/api/nodes", "", Authorization="Bearer " + "x" * 20_000)
    assert status == 400


async def test_a_user_without_rights_is_told_which_are_missing(filled) -> None:
    status, body = await filled.get("/api/nodes", conftest.ANYONE)
    assert status == 403
    assert body["error"] == "anyone may not list nodes"
    shown = await filled.shown("/api/session", conftest.ANYONE)
    assert shown["user"] == "anyone"
    assert shown["pages"]["nodes"] == ["list nodes"]


async def test_figures_are_left_out_one_right_at_a_time(filled) -> None:
    rights = filled.rights
    rights.grant("anyone", resources.NODES)
    shown = await filled.shown("/api/nodes", conftest.ANYONE)
    assert shown["names"] == ["n1"]
    assert set(shown["cpu"]) == {"capacity", "lent"}
    assert "pods" not in shown
    detail = await filled.shown("/api/nodes/n1", conftest.ANYONE)
    assert "lending" not in detail
    assert "list pods in all namespaces" in detail["lendingNeeds"]
    assert (detail["pods"], detail["somePodsHidden"]) == ([], True)
    assert "usage" not in detail


async def test_pods_are_shown_of_namespaces_that_may_be_listed(filled) -> None:
    filled.rights.grant("team-a", resources.NODES)
    filled.rights.grant("team-a", resources.PODS, "team-a")
    shown = await filled.shown("/api/nodes", conftest.TEAM)
    assert "pods" not in shown
    detail = await filled.shown("/api/nodes/n1", conftest.TEAM)
    assert [pod["namespace"] for pod in detail["pods"]] == ["team-a"]
    assert "team-b" not in str(detail)


async def test_who_may_read_everything_sees_everything(filled) -> None:
    shown = await filled.shown("/api/nodes")
    assert shown["pods"] == [2]
    assert shown["cpu"]["requested"] == [4000]
    assert shown["cpu"]["used"] == [3000]
    detail = await filled.shown("/api/nodes/n1")
    assert {pod["namespace"] for pod in detail["pods"]} == {"team-a", "team-b"}
    assert detail["lending"]["state"] == "lends"
    assert detail["usage"]["node"]["cpu"] == 3000


async def test_answers_of_the_api_server_hold_for_a_while_and_no_longer(filled) -> None:
    rights, clock = filled.rights, filled.world.clock
    rights.grant("anyone", resources.NODES)
    await filled.shown("/api/nodes", conftest.ANYONE)
    asked = len(rights.asked)
    await filled.shown("/api/nodes", conftest.ANYONE)
    assert [one for one in rights.asked[asked:] if one[0] == "anyone"] == []
    rights.granted.clear()
    await clock.advance(10.0)
    status, _ = await filled.get("/api/nodes", conftest.ANYONE)
    assert status == 403


async def test_the_same_question_is_asked_once_however_many_ask(filled) -> None:
    filled.rights.grant("anyone", resources.NODES)
    await asyncio.gather(*(filled.shown("/api/nodes", conftest.ANYONE) for _ in range(8)))
    reviews = [one for name, one in filled.rights.asked if name == "anyone"]
    assert len(reviews) == len(set(reviews)) == 3


async def test_too_many_questions_are_throttled(world, opened) -> None:
    async with opened(reviews_per_second=0.01, reviews_burst=50) as console:
        answers = [await console.get("/api/nodes", f"guess-{n}") for n in range(51)]
        assert {status for status, _ in answers[:50]} == {401}
        assert answers[-1][0] == 429


async def test_an_account_that_may_not_ask_says_so(world, opened, rights) -> None:
    async with opened() as console:
        rights.all.clear()
        status, body = await console.get("/api/nodes")
        assert status == 503
        assert "manager.console.enabled" in body["remedy"]


async def test_without_a_token_everybody_is_the_viewer(world, opened, rights) -> None:
    await world.node("n1")
    async with opened(viewer=conftest.VIEWER) as console:
        status, body = await console.get("/api/nodes", "")
        assert (status, body["error"]) == (403, f"{conftest.VIEWER} may not list nodes")
        asked = [one for name, one in rights.asked if name == conftest.VIEWER]
        assert asked[0].resource == "nodes"
        rights.grant(conftest.VIEWER, resources.NODES)
        await world.clock.advance(10.0)
        status, body = await console.get("/api/nodes", "")
        assert (status, body["names"]) == (200, ["n1"])
        # A bad token is no reason to become the viewer.
        status, _ = await console.get("/api/nodes", "expired")
        assert status == 401


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("localhost:1", 200, id="localhost"),
        pytest.param("[::1]:1", 200, id="ipv6"),
        pytest.param("127.0.0.1", 200, id="no-port"),
        pytest.param("rebound.example:80", 403, id="rebound"),
        pytest.param("localhost.example", 403, id="prefix"),
    ],
)
async def test_a_name_that_was_bound_to_this_machine_is_not_the_viewer(
    opened, rights, host, expected
) -> None:
    rights.all.add(conftest.VIEWER)
    async with opened(viewer=conftest.VIEWER) as console:
        status, _ = await console.get("/api/nodes", "", Host=host)
        assert status == expected
        status, _ = await console.get("/api/nodes", conftest.ADMIN, Host=host)
        assert status == 200
