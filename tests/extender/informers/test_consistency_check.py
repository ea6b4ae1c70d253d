"""The view is proven current after silence."""

import asyncio

import orjson
import pytest

from extender import settings
from extender.informers import consistency_check
from kube.client import errors
from kube.informers import store
from process.runtime import clock


class Server:
    def __init__(self, picture):
        self.version, self.pods, self.error = 100, [], None
        self.compared = 0
        self.asked = 0
        self.picture = picture

    async def current_version(self, resource):
        del resource
        self.asked += 1
        if self.error:
            raise self.error
        return self.version

    async def page(self, selection, query):
        del selection
        self.compared += 1
        await asyncio.sleep(0)
        first = "continue" not in query
        items = self.pods[:1] if first else self.pods[1:]
        more = "next" if first and len(self.pods) > 1 else ""
        return orjson.dumps({"metadata": {"continue": more}, "items": items})


@pytest.fixture
def parts(picture):
    time, pods, server = clock.ManualClock(), store.Store(), Server(picture)
    limits = settings.FreshnessSettings(idle_seconds=10, proof_seconds=0.2)
    return consistency_check.Freshness(server, pods, time, limits), server, pods, time


def _see(picture, pods, raw, version):
    record = picture.record(raw)
    pods.put(store.Meta(record.key, record.uid, version), record)


async def test_the_first_call_and_the_first_after_silence_are_proven(parts):
    fresh, server, pods, time = parts
    pods.bookmark(100)
    assert await fresh.doubt() == ""
    assert server.asked == 1
    await time.advance(9)
    assert await fresh.doubt() == ""
    await time.advance(9)
    assert await fresh.doubt() == ""
    assert server.asked == 1
    await time.advance(11)
    assert await fresh.doubt() == ""
    assert server.asked == 2
    assert server.compared == 0


async def test_a_quiet_watch_is_compared_pod_by_pod(parts, make, picture):
    fresh, server, pods, _ = parts
    server.pods = [make.pod("a", node="n1"), make.pod("b", node="n2")]
    for version, raw in enumerate(server.pods, start=1):
        _see(picture, pods, raw, version)
    server.pods.append(make.pod("waits"))
    server.pods.append(make.pod("ended", node="n1", phase="Failed"))
    assert await fresh.doubt() == ""
    assert server.compared == 2


async def test_a_view_that_is_behind_is_not_trusted_until_the_watch_has_caught_up(
    parts, make, picture
):
    fresh, server, pods, _ = parts
    server.pods = [make.pod("a", node="n1")]
    assert "could not be proven" in await fresh.doubt()
    server.version = 500
    _see(picture, pods, server.pods[0], 100)
    assert await fresh.doubt() == ""
    assert server.asked == 1


async def test_all_who_wait_share_one_proof(parts, make):
    fresh, server, _, _ = parts
    server.pods = [make.pod("a", node="n1")]
    answers = await asyncio.gather(*(fresh.doubt() for _ in range(20)))
    assert all("could not be proven" in answer for answer in answers)
    # One proof of 0.2 s looks at most every 0.02 s; in turn there would be twenty of them.
    assert server.compared <= 11


async def test_whoever_waits_for_a_proof_that_is_interrupted_is_told(parts, make):
    fresh, server, _, _ = parts
    server.pods = [make.pod("a", node="n1")]
    async with asyncio.TaskGroup() as group:
        first = group.create_task(fresh.doubt())
        await asyncio.sleep(0)
        second = group.create_task(fresh.doubt())
        await asyncio.sleep(0)
        first.cancel()
    assert "interrupted" in second.result()


async def test_what_was_newest_long_ago_proves_nothing(parts, make, picture):
    fresh, server, pods, time = parts
    server.pods = [make.pod("a", node="n1")]
    assert "could not be proven" in await fresh.doubt()
    _see(picture, pods, server.pods[0], 100)
    await time.advance(11)
    server.version = 200
    server.pods.append(make.pod("b", node="n1"))
    assert "could not be proven" in await fresh.doubt()
    assert server.asked == 2


async def test_a_pod_too_many_is_a_difference_as_well(parts, make, picture):
    fresh, _, pods, _ = parts
    _see(picture, pods, make.pod("gone", node="n1"), 3)
    assert "could not be proven" in await fresh.doubt()


async def test_a_server_that_does_not_answer_is_no_proof(parts):
    fresh, server, _, _ = parts
    server.error = errors.Unreachable("no answer")
    assert "cannot be compared: no answer" in await fresh.doubt()


async def test_a_list_that_cannot_be_read_is_no_proof(parts):
    fresh, server, _, _ = parts
    server.pods = [7]
    assert "cannot be compared" in await fresh.doubt()


def _deep(raw, levels=3000):
    """A pod whose ownership record is nested so deep that no reader follows it."""
    text = "".join(['{"f":' * levels, "{}", "}" * levels])
    marked = {**raw, "metadata": {**raw["metadata"], "managedFields": ["HERE"]}}
    return orjson.dumps(marked).replace(b'"HERE"', text.encode())


@pytest.mark.parametrize(
    "poison",
    [
        pytest.param(lambda raw: _deep(raw), id="nested too deep"),
        pytest.param(
            lambda raw: orjson.dumps({**raw, "spec": {"nodeName": "n1", "containers": 7}}),
            id="of another shape",
        ),
    ],
)
async def test_one_pod_that_cannot_be_read_does_not_stop_the_proof(parts, make, picture, poison):
    """The watch leaves it out as well, so that the two stay equal."""
    fresh, server, pods, _ = parts
    _see(picture, pods, make.pod("a", node="n1"), 1)
    whole = orjson.dumps(make.pod("a", node="n1"))
    bad = poison(make.pod("bad", node="n2"))

    async def page(_selection, _query):
        return b'{"metadata":{},"items":[' + bad + b"," + whole + b"]}"

    server.page = page
    assert await fresh.doubt() == ""
