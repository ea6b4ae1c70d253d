"""What one member of a gang costs the API server, from its creation to its node: writes, bytes."""

import collections

import pytest
from aiohttp import web

from api import names
from tests.extender.gangs.stage import gang_stage

GANGS, MEMBERS = 3, 4
PATCH_BYTES, NOMINATION_BYTES, BINDING_BYTES = 320, 80, 900
"""At most, of the bodies that the extender sends; pods of 7 KB are never sent back."""


class CountingServer(gang_stage.GangServer):
    """Keeps of every write about pods what it was about."""

    def __init__(self):
        super().__init__()
        self.writes = []

    def application(self):
        @web.middleware
        async def kept(request, handler):
            if request.method != "GET" and "/leases/" not in request.path:
                self.writes.append((request.path, await request.read(), request))
            return await handler(request)

        found = super().application()
        found.middlewares.append(kept)
        return found

    def counts(self):
        """By what was written: how often."""
        return collections.Counter(path.rsplit("/", 1)[-1] for path, _, _ in self.writes)

    def bodies(self, pod):
        """The writes about a pod in their order: the part of it, and the bytes."""
        start = f"/api/v1/namespaces/default/pods/{pod}"
        found = [(path.removeprefix(start), body) for path, body, _ in self.writes]
        return [(part, body) for part, body in found if part in ("", "/status", "/binding")]


@pytest.fixture
async def stage():
    server = CountingServer()
    gang_stage.nodes(server, 8)
    async with gang_stage.opened(server) as opened:
        server.writes.clear()
        yield opened


async def started(stage, **notes):
    """Create several gangs, one after the other, and let everything come to rest."""
    for number in range(GANGS):
        stage.gang(f"g{number}", MEMBERS, **notes)
    await stage.until(lambda: all(stage.bound(f"g{n}") == MEMBERS for n in range(GANGS)))
    await stage.rest(40)


async def test_a_member_costs_one_patch_and_its_binding(stage):
    await started(stage)
    pods = {f"g{gang}-{member}": 1 for gang in range(GANGS) for member in range(MEMBERS)}
    assert stage.server.counts() == {**pods, "binding": len(pods)}
    for pod in pods:
        (opening, patch), (part, binding) = stage.server.bodies(pod)
        assert (opening, part) == ("", "/binding")
        assert len(patch) <= PATCH_BYTES
        assert len(binding) <= BINDING_BYTES


async def test_where_nodes_are_sampled_members_cost_no_more(stage):
    gang_stage.nodes(stage.server, 101)
    await stage.until(lambda: stage.app.books.cluster.node("n100") is not None)
    await started(stage)
    assert len(stage.server.writes) == 2 * GANGS * MEMBERS


async def test_where_nodes_are_sampled_a_patch_more_names_the_place_of_one_that_keeps_it(stage):
    gang_stage.nodes(stage.server, 101)
    await stage.until(lambda: stage.app.books.cluster.node("n100") is not None)
    await started(stage, **{names.ANNOTATION_GANG_NETWORK_INDEX: "1"})
    total = GANGS * MEMBERS
    assert stage.server.counts()["status"] == stage.server.counts()["binding"] == total
    assert len(stage.server.writes) == 3 * total
    for gang in range(GANGS):
        (nominated, body), (opened, _), (bound, _) = stage.server.bodies(f"g{gang}-0")
        assert (nominated, opened, bound) == ("/status", "", "/binding")
        assert len(body) <= NOMINATION_BYTES


async def test_patches_ask_for_no_pod_in_the_answer(stage):
    await started(stage)
    patches = [request for *_, request in stage.server.writes if request.method == "PATCH"]
    assert patches
    for one in patches:
        assert "as=PartialObjectMetadata" in one.headers["Accept"]
        assert one.query["fieldValidation"] == "Ignore"


async def test_a_gang_that_waited_costs_one_condition_per_member_and_meaning(stage):
    """That it waits, and that this is over."""
    stage.gang("large", MEMBERS, cpu="9")
    await stage.until(lambda: len(stage.conditions("large")) == MEMBERS)
    await stage.rest(20)
    assert stage.server.counts()["status"] == MEMBERS
    gang_stage.nodes(stage.server, 4, cpu="16")
    await stage.until(lambda: stage.bound("large") == MEMBERS)
    await stage.rest(40)
    told = {one["status"] for one in stage.conditions("large")}
    assert (told, stage.server.counts()["status"]) == ({"True"}, 2 * MEMBERS)
    assert all(one["type"] == names.CONDITION_GANG for one in stage.conditions("large"))
