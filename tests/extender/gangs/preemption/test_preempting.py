"""Gangs that preempt, in the running extender over HTTP: all victims leave or none does."""

import json

import pytest

from api import names, resources
from tests.extender.clusters import quota_cluster
from tests.extender.conftest import NOW, Make
from tests.extender.gangs.preemption.preempting_stage import EvictingServer, kept
from tests.extender.gangs.stage import gang_stage


@pytest.fixture
def server():
    made = EvictingServer()
    gang_stage.nodes(made, 4)
    make = Make()
    made.running(make, "low", ["n0", "n0", "n1", "n1"])
    made.running(make, "same", ["n2", "n2", "n3", "n3"], priority=10)
    return made


LOW = [f"low-{number}" for number in range(4)]


async def test_a_gang_takes_the_place_of_a_whole_gang_of_lower_priority(server):
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10)
        await stage.until(lambda: sorted(server.leaving) == LOW)
        assert sorted(server.dry) == LOW
        [record] = server.records()
        found = json.loads(record)
        assert sorted(found["victims"]) == [f"uid-{name}" for name in LOW]
        assert set(kept(stage.app)) == {f"high-{number}" for number in range(4)}
        assert set(kept(stage.app).values()) == {"n0", "n1"}
        # A gang of lower priority gets nothing of what is being freed, nor do its members.
        stage.gang("late", 4, priority=5)
        await stage.rest(3.0)
        assert stage.gated("high") == stage.gated("late") == 4
        await stage.until(
            lambda: {one["reason"] for one in stage.conditions("high")} == {"Preempting"}
        )
        server.leave()
        await stage.until(lambda: stage.bound("high") == 4)
        await stage.until(lambda: not stage.claims() and not server.records())
        assert stage.bound("same") == 4
        assert stage.bound("late") == 0
        assert len(server.leaving) == 4
        await stage.until(lambda: len(server.said("Preempted")) == 4)
        said = server.said("Preempted")[0]
        assert "for the gang of default/high-0, of priority 10, above its own 0" in said["note"]
        assert "evicts 4 of lower priority: default/low-" in server.said("Preempting")[0]["note"]
        value = stage.app.registry.value
        assert value("koord_extender_gang_preemptions_total", {"result": "placed"}) == 1


async def test_no_pod_is_evicted_where_the_plug_in_does_not_preempt():
    server = EvictingServer(preempts=False)
    gang_stage.nodes(server, 1)
    server.running(Make(), "low", ["n0", "n0"])
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 2, priority=10)
        await stage.until(lambda: stage.conditions("high"))
        await stage.rest(5.0)
        assert server.leaving == server.dry == []


@pytest.mark.parametrize(
    ("data", "says"), [("observe", True), ("off", False)], ids=["observe", "off"]
)
async def test_the_switch_of_preemption_counts_for_gangs(server, data, says):
    server.config("koord-switches", {"preemption": data})
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10)
        await stage.until(lambda: stage.conditions("high"))
        await stage.rest(4.0)
        assert server.leaving == server.dry == []
        assert not kept(stage.app)
        if says:
            await stage.until(lambda: server.said("WouldPreempt"))
        assert bool(server.said("WouldPreempt")) is says


REFUSALS = {
    "a dry run": ("dry", []),
    "no answer to a dry run": ("cut", []),
    "the eviction itself": ("real", LOW[1:]),
}


@pytest.mark.parametrize(("when", "gone"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refused_eviction_gives_everything_back(server, when, gone):
    server.guarded["low-0"] = when
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10)
        await stage.until(lambda: server.said("PreemptionFailed"))
        await stage.until(lambda: not server.records())
        assert not kept(stage.app)
        assert sorted(server.leaving) == gone
        assert "low-0 may not be evicted now" in server.said("PreemptionFailed")[0]["note"]
        await stage.rest(8.0)
        assert sorted(server.leaving) == gone
        assert stage.bound("same") == 4


async def test_a_budget_that_does_not_allow_all_of_them_spares_all_of_them(server):
    for name in LOW:
        server.objects["pods"][f"default/{name}"]["metadata"]["labels"]["app"] = "low"
    server.put(
        "poddisruptionbudgets",
        {
            "metadata": {"name": "low", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "low"}}},
            "status": {"disruptionsAllowed": 3},
        },
    )
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10)
        await stage.until(lambda: stage.conditions("high"))
        await stage.rest(5.0)
        assert server.leaving == server.dry == []


async def test_an_extender_that_dies_after_the_first_eviction_leaves_its_places_to_the_next(server):
    server.evictions_left = 1
    async with gang_stage.opened(server, gangs={"writers": 1}) as stage:
        stage.gang("high", 4, priority=10)
        await stage.until(lambda: len(server.leaving) == 1)
        first = kept(stage.app)
        assert len(first) == 4
        server.cut = True
        now = stage.time.now()
    server.cut, server.evictions_left = False, None
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(kept(stage.app)) == 4)
        assert kept(stage.app) == first
        await stage.until(lambda: sorted(server.leaving) == LOW)
        server.leave()
        await stage.until(lambda: stage.bound("high") == 4)
        assert stage.bound("same") == 4
        assert sorted(server.leaving) == LOW
        await stage.until(lambda: not stage.claims() and not server.records())


async def test_places_are_given_back_when_the_gang_is_gone_or_preemption_is_switched_off(server):
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10)
        await stage.until(lambda: len(server.leaving) == 4)
        server.delete("pods", "default/high-3")
        await stage.until(lambda: not kept(stage.app))
        gone = len(server.leaving)
        await stage.rest(3.0)
        assert len(server.leaving) == gone
    server.leave()


async def test_a_forged_record_evicts_no_pod_and_keeps_places_for_its_own_members_only(server):
    for name in LOW:
        server.delete("pods", f"default/{name}")
    make = Make()
    server.running(make, "else", ["n0", "n0", "n1", "n1"], priority=10)
    forged = {
        "v": 2,
        "id": "x",
        "group": "default/high",
        "places": {"uid-high-0": "n0", "uid-same-0": "n1"},
        "victims": ["uid-same-0", "uid-else-0"],
        "at": NOW,
        "until": NOW + 3000.0,
    }
    notes = {names.ANNOTATION_PREEMPTION: json.dumps(forged)}
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10, **notes)
        await stage.until(lambda: stage.conditions("high"))
        # It names pods that are no members: it is not read at all.
        assert not kept(stage.app)
        forged["places"] = {"uid-late-0": "n0"}
        forged["group"] = "default/late"
        notes = {names.ANNOTATION_PREEMPTION: json.dumps(forged)}
        stage.gang("late", 4, priority=10, **notes)
        await stage.until(lambda: kept(stage.app) == {"late-0": "n0"})
        # Victims that no extender evicts are not waited for: then it is searched anew, in vain.
        await stage.until(lambda: not kept(stage.app))
        assert server.leaving == server.dry == []


class TeamServer(EvictingServer):
    """Every pod belongs to one quota."""

    def put(self, plural, raw, **more):
        if plural == "pods":
            raw["metadata"]["labels"] = {names.LABEL_QUOTA_NAME: "team"}
        super().put(plural, raw, **more)


async def test_a_gang_whose_node_was_deleted_does_not_end_the_search_for_victims_of_a_quota():
    """Its pods stay bound for a while: garbage collection of pods comes later."""
    server, make = TeamServer(), Make()
    gang_stage.nodes(server, 4)
    server.put(
        f"elasticquotas.{resources.GROUP_SIGS}",
        quota_cluster.written("team", least={"cpu": "8"}, most={"cpu": "8"}),
    )
    server.running(make, "low", ["n0", "n0"])
    server.running(make, "stranded", ["n1", "n1"])
    server.delete("nodes", "n1")
    async with gang_stage.opened(server) as stage:
        failed = stage.app.supervisor.failed
        stage.gang("high", 2, priority=10)
        await stage.until(lambda: len(server.leaving) == 2 or failed.done())
        assert not failed.done(), failed.exception()
        server.leave()
        await stage.until(lambda: stage.bound("high") == 2)
