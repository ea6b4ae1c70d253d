"""What the client sends, and what it makes of the answers."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from api import resources
from kube.client import access, client, errors, transport
from process.runtime import clock as clocks
from process.runtime import metrics
from tests import protobuf_messages as messages
from tests.kube.client.requested import BODY, POD, PODS, Act


async def test_get(server: Any, api: client.Client, pod: Any) -> None:
    server.on("GET", POD, server.json(pod("a", 3)))
    found = await api.get(resources.PODS, "a", "shop")
    assert found["metadata"]["uid"] == "uid-a"
    assert server.seen[0].headers["User-Agent"] == "koord"


async def test_list_reads_all_pages_and_names_what_they_hold(
    server: Any, api: client.Client, pod: Any
) -> None:
    server.on(
        "GET", PODS, server.page([pod("a", 3)], 9, more="next"), server.page([pod("b", 4)], 9)
    )
    listing = await api.list(resources.PODS, labels="app=web", fields="spec.nodeName=n1")
    assert [item["metadata"]["name"] for item in listing.items] == ["a", "b"]
    assert {(item["apiVersion"], item["kind"]) for item in listing.items} == {("v1", "Pod")}
    assert listing.resource_version == "9"
    first, second = server.seen
    assert first.query == {
        "labelSelector": "app=web",
        "fieldSelector": "spec.nodeName=n1",
        "limit": "500",
    }
    assert second.query["continue"] == "next"


async def test_list_whose_pages_expired_is_taken_in_one_piece(
    server: Any, api: client.Client, pod: Any
) -> None:
    server.on(
        "GET",
        PODS,
        server.page([pod("a", 3)], 9, more="next"),
        server.refuse(410, "Expired"),
        server.page([pod("a", 3), pod("b", 4)], 12),
    )
    assert len((await api.list(resources.PODS)).items) == 2
    assert "limit" not in server.seen[-1].query


@pytest.mark.parametrize(
    ("act", "method", "path", "query", "content", "body"),
    [
        pytest.param(
            lambda api: api.create(resources.PODS, BODY, "shop", field_manager="me"),
            *("POST", "/api/v1/namespaces/shop/pods", {"fieldManager": "me"}),
            *("application/json", BODY),
            id="create",
        ),
        pytest.param(
            lambda api: api.update(resources.PODS, BODY, subresource="status"),
            *("PUT", f"{POD}/status", {}, "application/json", BODY),
            id="update status",
        ),
        pytest.param(
            lambda api: api.patch(resources.PODS, "a", {"x": 1}, namespace="shop"),
            *("PATCH", POD, {}, "application/merge-patch+json", {"x": 1}),
            id="merge patch",
        ),
        pytest.param(
            lambda api: api.patch(
                resources.PODS, "a", [{"op": "remove"}], namespace="shop", kind=client.Patch.JSON
            ),
            *("PATCH", POD, {}, "application/json-patch+json", [{"op": "remove"}]),
            id="json patch",
        ),
        pytest.param(
            lambda api: api.patch(
                resources.NODES, "n", b"{}", kind=client.Patch.STRATEGIC, subresource="status"
            ),
            *("PATCH", "/api/v1/nodes/n/status", {}),
            *("application/strategic-merge-patch+json", {}),
            id="strategic patch of a cluster-wide object",
        ),
        pytest.param(
            lambda api: api.patch(
                *(resources.NODE_SLOS, "n", {}),
                kind=client.Patch.APPLY,
                field_manager="me",
                force=True,
                dry_run=True,
            ),
            *("PATCH", "/apis/slo.koordinator.sh/v1alpha1/nodeslos/n"),
            {"fieldManager": "me", "force": "true", "dryRun": "All"},
            *("application/apply-patch+yaml", {}),
            id="apply",
        ),
        pytest.param(
            lambda api: api.delete(
                resources.PODS, "a", "shop", uid="u", resource_version="4", grace_seconds=0
            ),
            *("DELETE", POD, {}, "application/json"),
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u", "resourceVersion": "4"},
                "gracePeriodSeconds": 0,
            },
            id="delete",
        ),
        pytest.param(
            lambda api: api.bind("shop", "a", uid="u", node="n1", annotations={"k": "v"}),
            *("POST", f"{POD}/binding", {}, "application/json"),
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {
                    "name": "a",
                    "namespace": "shop",
                    "uid": "u",
                    "annotations": {"k": "v"},
                },
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
            id="bind",
        ),
        pytest.param(
            lambda api: api.bind("shop", "a", uid="u", node="n1", annotations={}, version="12"),
            *("POST", f"{POD}/binding", {}, "application/json"),
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {
                    "name": "a",
                    "namespace": "shop",
                    "uid": "u",
                    "annotations": {},
                    "resourceVersion": "12",
                },
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
            id="bind at a version",
        ),
        pytest.param(
            lambda api: api.evict("shop", "a", uid="u", dry_run=True),
            *("POST", f"{POD}/eviction", {}, "application/json"),
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "a", "namespace": "shop"},
                "deleteOptions": {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "preconditions": {"uid": "u"},
                    "dryRun": ["All"],
                },
            },
            id="evict",
        ),
    ],
)
async def test_writes(
    server: Any,
    api: client.Client,
    act: Act,
    method: str,
    path: str,
    query: dict[str, str],
    content: str,
    body: Any,
) -> None:
    server.on(method, path, server.json({"kind": "Status"}, 201))
    await act(api)
    (seen,) = server.seen
    assert (seen.method, seen.path, seen.query, seen.body) == (method, path, query, body)
    assert seen.headers["Content-Type"] == content
    assert seen.headers["Accept"] == "application/json"


async def test_a_brief_answer_is_the_metadata_alone(server: Any, api: client.Client) -> None:
    answer = {"kind": "PartialObjectMetadata", "metadata": {"resourceVersion": "7"}}
    server.on("PATCH", POD, server.json(answer))
    assert await api.patch(resources.PODS, "a", {}, namespace="shop", brief=True) == answer
    (seen,) = server.seen
    assert seen.query == {"fieldValidation": "Ignore"}
    # Refusals, and servers that know no such form, answer JSON as ever.
    assert seen.headers["Accept"].split(", ") == [
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json",
    ]


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (418, "", errors.ApiError),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFailure),
        (504, "Timeout", errors.ServerFailure),
    ],
)
async def test_refusals_become_typed_errors_and_writes_are_not_repeated(
    server: Any, api: client.Client, status: int, reason: str, expected: type[errors.ApiError]
) -> None:
    server.on("DELETE", POD, server.refuse(status, reason, "because", Retry_After="7"))
    with pytest.raises(errors.ApiError, match="because") as caught:
        await api.delete(resources.PODS, "a", "shop")
    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.retry_after) == (status, 7.0)
    assert len(server.seen) == 1


async def test_refusal_of_something_in_between(server: Any, api: client.Client) -> None:
    server.on("DELETE", POD, server.text("<h1>bad gateway</h1>", 502))
    with pytest.raises(errors.ServerFailure, match="bad gateway"):
        await api.delete(resources.PODS, "a", "shop")


async def test_a_refusal_in_protobuf_is_said_in_its_words(server: Any, api: client.Client) -> None:
    said = {"status": "Failure", "reason": "Forbidden", "code": 403, "message": "may not"}

    async def refused(_: web.Request) -> web.Response:
        return web.Response(body=messages.body(said, "Status"), status=403)

    server.on("DELETE", POD, refused)
    with pytest.raises(errors.Forbidden, match=r"^403 Forbidden: may not$"):
        await api.delete(resources.PODS, "a", "shop")


@pytest.mark.parametrize("body", ["no json", "[1]"], ids=["text", "array"])
async def test_answers_that_break_the_promise(server: Any, api: client.Client, body: str) -> None:
    server.on("GET", POD, server.text(body))
    with pytest.raises(errors.Malformed):
        await api.get(resources.PODS, "a", "shop")


async def test_retry_after_is_honoured_for_safe_requests(
    server: Any, api: client.Client, clock: clocks.ManualClock, supervisor: Any, pod: Any
) -> None:
    server.on(
        "GET",
        POD,
        server.refuse(429, "TooManyRequests", Retry_After="20"),
        server.refuse(500),
        server.json(pod("a", 3)),
    )
    waiting = supervisor.spawn("get", api.get(resources.PODS, "a", "shop"))
    await server.until(lambda: clock.sleepers == 1)
    assert 20 <= (clock.next_wake or 0) <= 20.2
    await clock.advance(19)
    assert len(server.seen) == 1
    await clock.advance(1.3)
    await server.until(lambda: len(server.seen) == 2 and clock.sleepers == 1)
    await clock.advance(1)
    assert (await waiting)["metadata"]["name"] == "a"


async def test_safe_requests_end_after_some_tries(
    server: Any, connect: Callable[..., client.Client], supervisor: Any, clock: clocks.ManualClock
) -> None:
    server.on("GET", POD, server.drop())
    async with connect(limits=transport.Limits(attempts=3)) as api:
        waiting = supervisor.spawn("get", _error_of(api.get(resources.PODS, "a", "shop")))
        while not waiting.done():
            await clock.advance(1)
        assert isinstance(waiting.result(), errors.Unreachable)


async def _error_of(call: Any) -> BaseException | None:
    try:
        await call
    except errors.KubeError as error:
        return error
    return None


async def test_slow_answer_is_unreachable(
    server: Any, connect: Callable[..., client.Client]
) -> None:
    server.on("DELETE", POD, server.hold())
    async with connect(limits=transport.Limits(request_seconds=0.05)) as api:
        with pytest.raises(errors.Unreachable, match="in time"):
            await api.delete(resources.PODS, "a", "shop")


async def test_stream_that_does_not_begin_is_unreachable(
    server: Any, connect: Callable[..., client.Client]
) -> None:
    server.on("GET", PODS, server.hold())
    async with connect(limits=transport.Limits(stream_seconds=0.05)) as api:
        with pytest.raises(errors.Unreachable) as caught:
            async with api.watch(client.Selection(resources.PODS), {}):
                raise AssertionError("it has begun")
    assert not isinstance(caught.value, errors.Silent)


async def test_no_server_is_unreachable(clock: clocks.ManualClock) -> None:
    limits = transport.Limits(attempts=1)
    async with client.Client(
        access.Access("http://127.0.0.1:1"), clock=clock, limits=limits
    ) as api:
        with pytest.raises(errors.Unreachable, match="get pods"):
            await api.get(resources.PODS, "a", "shop")


async def test_in_flight_limit(
    server: Any, connect: Callable[..., client.Client], supervisor: Any
) -> None:
    server.on("GET", POD, server.hold())
    async with connect(limits=transport.Limits(in_flight=2)) as api:
        for number in range(5):
            supervisor.spawn(f"get-{number}", api.get(resources.PODS, "a", "shop"))
        await server.until(lambda: len(server.seen) == 2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(server.seen) == 2
        await supervisor.stop()


async def test_metrics(server: Any, connect: Callable[..., client.Client], pod: Any) -> None:
    registry = metrics.Registry()
    server.on("GET", POD, server.json(pod("a", 3)))
    async with connect(registry=registry, limits=transport.Limits(attempts=1)) as api:
        await api.get(resources.PODS, "a", "shop")
        server.on("GET", POD, server.drop())
        with pytest.raises(errors.Unreachable):
            await api.get(resources.PODS, "a", "shop")
    labels = {"verb": "get", "resource": "pods"}
    for code in ("200", "0"):
        counted = registry.value("koord_kube_requests_total", {**labels, "code": code})
        assert counted == 1, code
    assert registry.value("koord_kube_request_seconds_count", labels) == 2


async def test_through_a_proxy(server: Any, clock: clocks.ManualClock, pod: Any) -> None:
    server.on("GET", POD, server.json(pod("a", 3)))
    entry = access.Access("http://api.example.com", proxy=server.url)
    async with client.Client(entry, clock=clock) as api:
        await api.get(resources.PODS, "a", "shop")
    assert server.seen[0].headers["Host"] == "api.example.com"


async def test_current_version(server: Any, api: client.Client) -> None:
    server.on("GET", PODS, server.page([], 77))
    assert await api.current_version(resources.PODS) == 77
    assert server.seen[0].query == {"limit": "1"}


async def test_current_version_where_the_first_object_is_nested_without_end(
    server: Any, api: client.Client
) -> None:
    """A tenant wrote it; all that is asked for is the version of the list."""
    deep = b'{"metadata":{"name":"a"},"spec":' + b"[" * 5000 + b"]" * 5000 + b"}"
    answer = b'{"items":[' + deep + b'],"metadata":{"resourceVersion":"77"}}'
    server.on("GET", PODS, server.text(answer.decode()))
    assert await api.current_version(resources.PODS) == 77


@pytest.mark.parametrize("answer", ["[]", "{", '{"metadata":7}'])
async def test_current_version_of_an_answer_that_is_no_list(
    server: Any, api: client.Client, answer: str
) -> None:
    server.on("GET", PODS, server.text(answer))
    with pytest.raises(errors.Malformed):
        await api.current_version(resources.PODS)


async def test_client_must_be_open(connect: Callable[..., client.Client]) -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await connect().get(resources.PODS, "a", "shop")


async def test_a_closed_client_is_out_of_reach(server: Any, api: client.Client) -> None:
    await api.__aexit__(None, None, None)
    with pytest.raises(errors.AccessError, match="closed"):
        await api.get(resources.NODES, "n")
    assert server.seen == []
