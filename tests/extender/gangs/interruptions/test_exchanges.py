"""Members find places wherever kube-scheduler looks, at a part of all nodes, without being told."""

import itertools

import msgspec
import pytest

from api import names
from domain.gangs import plan_record
from extender.gangs.planning import planner
from tests.extender.gangs.stage import gang_stage
from tests.extender.gangs.test_renominations import RANKED, FailingServer

NODES, LOOKED_AT, MEMBERS = 160, 100, 24


class RotatingStage(gang_stage.Stage):
    """Its scheduler looks at some nodes that take a pod, each time at others, as kube-scheduler."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.server.now = self.time.now
        self.start = self.refusals = 0

    async def passing(self, raw):
        fitting = self.fitting(raw)
        nominated = raw["status"].get("nominatedNodeName")
        found = await self.filtered(raw, [nominated]) if nominated in fitting else []
        if found:
            return found
        turned = [*fitting[self.start :], *fitting[: self.start]][:LOOKED_AT]
        self.start = (self.start + LOOKED_AT) % max(1, len(fitting))
        found = await self.filtered(raw, turned)
        self.refusals += not found
        return found

    async def moves(self, place):
        async with self.session.get(f"{self.app.health_url}/metrics") as answer:
            text = await answer.text()
        start = f'koord_extender_gang_moves_total{{place="{place}"}} '
        return sum(float(one.removeprefix(start)) for one in text.splitlines() if start in one)

    def placed(self, gang):
        return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in self.pods(gang)}

    def kept(self):
        return {one.pod.name: one.node for one in self.claims()}


@pytest.fixture
async def stage():
    server = FailingServer()
    gang_stage.nodes(server, NODES)
    async with gang_stage.opened(server, kind=RotatingStage) as opened:
        await opened.until(lambda: opened.app.books.cluster.node("n159"), scheduling=False)
        yield opened


async def planned(stage, gang, **options):
    """Create a gang; return where its plan places every member at first."""
    stage.gang(gang, MEMBERS, cpu="8", **options)
    await stage.until(lambda: len(stage.claims()) == MEMBERS, scheduling=False)
    return stage.kept()


async def at_rest(stage, gang):
    """Wait until a gang is bound; nothing was tried in vain, and nothing is kept any more."""
    await stage.until(lambda: stage.bound(gang) == MEMBERS)
    await stage.rest(1.0)
    assert stage.refusals == 0
    assert stage.nudged(gang) == []
    assert stage.claims() == []


async def test_members_take_free_places_where_kube_scheduler_looks(stage):
    kept = await planned(stage, "a")
    await at_rest(stage, "a")
    assert stage.placed("a") != kept
    assert len(set(stage.placed("a").values())) == MEMBERS
    assert await stage.moves("free") > 0
    assert stage.server.nominations == {}


async def test_members_take_the_places_of_others_where_no_node_is_free(stage):
    make = stage.make
    for number in range(MEMBERS, NODES):
        raw = make.pod(f"filler-{number}", node=f"n{number}", requests={"cpu": "8"})
        stage.server.put("pods", raw)
    kept = await planned(stage, "a")
    stage.server.delete("pods", "default/filler-159")
    await at_rest(stage, "a")
    assert sorted(stage.placed("a").values()) == sorted(kept.values())
    assert stage.server.nominations == {}


async def test_a_member_that_is_about_to_be_bound_keeps_its_place(stage):
    """kube-scheduler calls bind for it while it asks about the next one already."""
    await planned(stage, "a")
    await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
    first, second = (stage.server.objects["pods"][f"default/a-{number}"] for number in (0, 1))
    assert await stage.filtered(first, ["n150"]) == ["n150"]
    assert await stage.filtered(second, ["n150"]) == []
    await stage.time.advance(10.0)
    assert await stage.filtered(second, ["n150"]) == ["n150"], "it did not come"


async def test_members_with_a_rank_keep_their_places_and_are_nominated(stage):
    kept = await planned(stage, "a", **RANKED)
    await at_rest(stage, "a")
    assert stage.placed("a") == kept
    assert len(stage.server.nominations) == MEMBERS


async def test_all_are_nominated_where_so_many_nodes_refuse_that_all_looked_at_may(stage):
    """Only the extender knows that these nodes are taken: it keeps them for another gang."""
    stage.member("b", 0, least=2, cpu="8")
    waiting = stage.app.books.unscheduled
    await stage.until(lambda: waiting.known("uid-b-0"), scheduling=False)
    for number in range(NODES - LOOKED_AT, NODES):
        other = msgspec.structs.replace(waiting.known("uid-b-0"), uid=f"other-{number}")
        stage.app.books.nominate(other, f"n{number}", evidence=planner.EVIDENCE)
    stage.gang("a", MEMBERS, cpu="8")
    await stage.until(lambda: len(stage.kept()) > 1 and stage.gated("a") == 0, scheduling=False)
    assert len(stage.server.nominations) == MEMBERS
    await stage.until(lambda: stage.bound("a") == MEMBERS)
    assert await stage.moves("free") == await stage.moves("exchanged") == 0


async def test_members_with_volumes_of_claims_are_nominated_once_that_is_seen(stage):
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    kept = await planned(stage, "a", spec={"volumes": [volume]})
    await stage.until(lambda: stage.bound("a") == MEMBERS)
    assert stage.placed("a") == kept
    assert stage.server.nominations


async def test_after_a_restart_in_the_middle_every_member_has_a_place_of_its_own():
    """The records on members name the places as they were before some were exchanged."""
    server = FailingServer()
    gang_stage.nodes(server, NODES)
    async with gang_stage.opened(server, kind=RotatingStage) as stage:
        kept = await planned(stage, "a")
        await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
        rest = [f"a-{number}" for number in range(MEMBERS)]
        moved = dict(itertools.pairwise([*rest[:6], rest[0]]))
        now = stage.time.now()
    for name in rest[:5]:
        raw = server.objects["pods"][f"default/{name}"]
        raw["spec"]["nodeName"] = kept[moved[name]]
        server.put("pods", raw)
    async with gang_stage.opened(server, kind=RotatingStage, now=now) as stage:
        await stage.until(lambda: len(stage.claims()) == MEMBERS - 5, scheduling=False)
        places = sorted(stage.kept().values())
        assert places == sorted([kept["a-0"], *(kept[name] for name in rest[6:])])
        notes = {one["metadata"]["annotations"][names.ANNOTATION_PLAN] for one in stage.pods("a")}
        assert len({plan_record.read(text).generation for text in notes}) == 1
        await stage.until(lambda: stage.bound("a") == MEMBERS)
        assert server.evicted == []
