"""What a Node says of its strategies: nothing before its host was looked at, then the truth."""

import msgspec
import pytest
from aiohttp import web

from agent.model import capability_matrix
from agent.report import published_capabilities
from api import names
from api.kubernetes import core
from kube.client import access, client
from process.runtime.clock import ManualClock
from tests.agent.report import patched_api

NOBODY = capability_matrix.Facts("6.1", 0, "", frozenset())
HOST = capability_matrix.Facts("6.1", 2, "systemd", frozenset({"cpuset", "cpu-quota"}))


class Stand:
    """A Node behind an API server that takes patches, and a host that is looked at."""

    def __init__(self):
        self.annotations, self.facts, self.patches = {}, None, 0
        self.here = True

    def node(self):
        raw = {"metadata": {"name": "n1", "annotations": self.annotations}}
        return msgspec.convert(raw, core.Node) if self.here else None

    async def patch(self, request):
        self.patches += 1
        self.annotations |= (await request.json())["metadata"]["annotations"]
        return web.json_response({"metadata": {}})

    @property
    def verdict(self):
        text = self.annotations.get(names.ANNOTATION_STRATEGIES)
        if text is None:
            return None
        (row,) = (row for row in capability_matrix.read(text) if row.strategy == "cpu-suppress")
        return row.verdict.value


@pytest.fixture
async def stand():
    stand, clock = Stand(), ManualClock()
    async with (
        patched_api.serving(stand.patch) as url,
        client.Client(access.Access(url), clock=clock) as kube,
    ):
        stand.made = published_capabilities.Published(
            kube, clock, "n1", stand.node, lambda: stand.facts
        )
        yield stand


async def test_nothing_is_said_of_a_host_that_nobody_has_looked_at(stand):
    await stand.made.step()
    assert (stand.patches, stand.verdict) == (0, None)
    assert "not examined yet" in stand.made.problem
    stand.facts = HOST
    await stand.made.step()
    assert (stand.verdict, stand.made.problem) == ("works", None)
    assert stand.made.rows == capability_matrix.matrix(HOST)


async def test_a_restart_leaves_what_the_node_says_until_the_host_was_looked_at(stand):
    stand.facts = HOST
    await stand.made.step()
    stand.facts = None
    await stand.made.step()
    assert (stand.patches, stand.verdict) == (1, "works")


async def test_a_node_without_groups_says_so_and_the_same_is_not_written_twice(stand):
    stand.facts = NOBODY
    await stand.made.step()
    await stand.made.step()
    assert (stand.patches, stand.verdict, stand.made.problem) == (1, "unavailable", None)


@pytest.mark.parametrize(
    ("facts", "here", "seconds"),
    [
        (HOST, True, published_capabilities.SECONDS),
        (NOBODY, True, published_capabilities.SOON_SECONDS),
        (None, True, published_capabilities.SOON_SECONDS),
        (HOST, False, published_capabilities.SOON_SECONDS),
    ],
    ids=["complete", "no groups", "not looked at", "no node"],
)
async def test_what_is_missing_is_looked_for_soon(stand, facts, here, seconds):
    stand.facts, stand.here = facts, here
    await stand.made.step()
    assert stand.made.pause == seconds
