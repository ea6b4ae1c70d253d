"""Gangs in the running extender: all members get their nodes, or none is bound."""

import msgspec
import pytest

from api import names
from domain.gangs import plan_record
from tests.extender.gangs.stage import gang_stage


@pytest.fixture
def server():
    return gang_stage.GangServer()


async def test_gates_open_together_and_every_member_is_bound_on_its_planned_node(server):
    gang_stage.nodes(server, 3)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 5, least=6)
        await stage.rest(3.0)
        assert stage.gated("a") == 5
        said = {one["message"] for one in stage.conditions("a")}
        assert said == {"waits for 1 of 6 members"}
        stage.member("a", 5, least=6)
        await stage.until(lambda: stage.bound("a") == 6)
        await stage.until(lambda: not stage.claims())
        for pod in stage.pods("a"):
            assert names.ANNOTATION_PLAN in pod["metadata"]["annotations"]


async def test_of_two_gangs_that_exclude_each_other_one_runs_and_then_the_other(server):
    gang_stage.nodes(server, 3)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        stage.gang("b", 4)
        await stage.until(lambda: stage.bound("a") == 4 or stage.bound("b") == 4)
        await stage.rest(5.0)
        first, other = ("a", "b") if stage.bound("a") else ("b", "a")
        assert (stage.bound(first), stage.bound(other)) == (4, 0)
        assert stage.gated(other) == 4
        said = stage.conditions(other)
        assert len(said) == 4
        assert {one["reason"] for one in said} == {"InsufficientRoom"}
        assert "there is room for 2 of 4 members" in said[0]["message"]
        assert not stage.claims()
        for pod in stage.pods(first):
            server.delete("pods", f"default/{pod['metadata']['name']}")
        await stage.until(lambda: stage.bound(other) == 4)


async def test_gangs_of_a_group_start_together(server):
    gang_stage.nodes(server, 3)
    both = '["default/a","default/b"]'
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 2, **{names.ANNOTATION_GANG_GROUPS: both})
        await stage.rest(2.0)
        assert stage.gated("a") == 2
        stage.gang("b", 4, **{names.ANNOTATION_GANG_GROUPS: both})
        await stage.until(lambda: stage.bound("a") == 2 and stage.bound("b") == 4)


async def test_a_group_that_does_not_fit_holds_nothing(server):
    gang_stage.nodes(server, 2)
    both = '["default/a","default/b"]'
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 2, **{names.ANNOTATION_GANG_GROUPS: both})
        stage.gang("b", 4, **{names.ANNOTATION_GANG_GROUPS: both})
        await stage.until(lambda: len(stage.conditions("a") + stage.conditions("b")) == 6)
        assert not stage.claims()
        stage.gang("c", 4)
        await stage.until(lambda: stage.bound("c") == 4)
        assert stage.bound("a") == stage.bound("b") == 0


async def test_freed_capacity_is_given_to_a_gang_that_waits(server):
    gang_stage.nodes(server, 1)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        await stage.until(lambda: stage.conditions("a"))
        began = stage.time.now()
        gang_stage.nodes(server, 2)
        await stage.until(lambda: stage.bound("a") == 4)
        assert stage.time.now() - began < 10.0


async def test_a_member_that_is_deleted_ends_the_plan_and_releases_everything(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        await stage.until(lambda: len(stage.claims()) == 4, scheduling=False)
        server.delete("pods", "default/a-0")
        await stage.until(lambda: not stage.claims())
        await stage.rest(3.0)
        assert stage.bound("a") == 0
        stage.member("a", 4, least=4)
        await stage.until(lambda: stage.bound("a") == 4)


async def test_a_node_that_goes_ends_the_plan_and_the_gang_is_planned_anew(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        await stage.until(lambda: not stage.gated("a"), scheduling=False)
        server.delete("nodes", "n0")
        await stage.until(lambda: not stage.claims(), scheduling=False)
        await stage.rest(2.0)
        assert stage.bound("a") == 0
        server.put("nodes", stage.make.node("n9", cpu="8", pods="110"))
        await stage.until(lambda: stage.bound("a") == 4)


async def test_a_member_that_kube_scheduler_refuses_releases_all_and_its_node_is_avoided(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 2)
        await stage.until(lambda: not stage.gated("a"), scheduling=False)
        kept = {one.pod.name: one.node for one in stage.claims()}
        raw = server.objects["pods"]["default/a-0"]
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        raw["status"]["conditions"] = [condition | {"message": "volume is elsewhere"}]
        server.put("pods", raw)
        await stage.until(lambda: not stage.claims(), scheduling=False)
        said = await stage.until(lambda: stage.conditions("a"), scheduling=False)
        assert said[0]["reason"] == "PlanFailed"
        assert (
            "kube-scheduler does not place default/a-0: volume is elsewhere" in said[0]["message"]
        )
        await stage.until(lambda: stage.bound("a") == 2)
        (other,) = {"n0", "n1"} - {kept["a-0"]}
        assert server.objects["pods"]["default/a-0"]["spec"]["nodeName"] == other


async def test_a_cut_connection_in_the_middle_of_opening_leaves_no_partial_gang(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        server.stop_after = 2
        stage.gang("a", 4)
        await stage.until(lambda: stage.conditions("a"))
        assert stage.bound("a") == 0
        assert stage.gated("a") == 2
        assert not stage.claims()
        said = stage.conditions("a")[0]["message"]
        assert "was not opened" in said
        server.stop_after = None
        await stage.until(lambda: stage.bound("a") == 4)


async def test_a_restart_in_the_middle_keeps_the_places_and_the_gang_is_bound(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        server.stop_after = 2
        stage.gang("a", 4)
        await stage.until(lambda: stage.gated("a") == 2, scheduling=False)
        now = stage.time.now()
    server.stop_after = None
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("a") == 4)
        await stage.until(lambda: not stage.claims())


async def test_a_restart_resumes_a_plan_whose_gates_are_all_open(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
        kept = {one.pod.name: one.node for one in stage.claims()}
        now = stage.time.now()
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(stage.claims()) == 4, scheduling=False)
        # kube-scheduler may have been refused them meanwhile, and looks again at what changes.
        await stage.until(lambda: len(stage.nudged("a")) == 4, scheduling=False)
        assert stage.time.now() - now < 10
        await stage.until(lambda: stage.bound("a") == 4)
        found = {one["metadata"]["name"]: one["spec"]["nodeName"] for one in stage.pods("a")}
        assert found == kept


async def _interrupted(server, stage, **notes):
    """Bind two of four members as if the extender had died in the middle of its Bindings."""
    stage.gang("a", 4, **notes)
    await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
    for one in stage.claims()[:2]:
        raw = server.objects["pods"][one.pod.key]
        raw["spec"]["nodeName"] = one.node
        server.put("pods", raw, echo=False)
    return stage.time.now()


async def test_a_gang_that_was_bound_in_part_is_completed_after_the_restart(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _interrupted(server, stage)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("a") == 4)
        assert stage.time.now() - now < 10.0
        assert server.evicted == []


@pytest.mark.parametrize("policy", ["only-waiting", "waiting-and-running", "once-satisfied"])
async def test_a_gang_is_completed_also_where_the_completion_is_interrupted(server, policy):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _interrupted(server, stage, **{names.ANNOTATION_GANG_MATCH_POLICY: policy})
    for raw in stage.pods("a"):
        if not raw["spec"].get("nodeName"):
            # As a plan that completed the gang had written it, before that ended as well.
            notes = raw["metadata"]["annotations"]
            found = plan_record.read(notes[names.ANNOTATION_PLAN])
            found = msgspec.structs.replace(found, generation="later", completes=found.generation)
            notes[names.ANNOTATION_PLAN] = plan_record.encode(found)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("a") == 4)
        assert server.evicted == []


async def test_a_gang_that_cannot_be_completed_is_evicted_and_told(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _interrupted(server, stage)
        for number, node in enumerate(("n0", "n1", "n0", "n1")):
            raw = stage.make.pod(f"x{number}", node=node, requests={"cpu": "4"})
            server.put("pods", raw, echo=False)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(server.evicted) == 2)
        assert stage.time.now() - now < 10.0
        assert stage.bound("a") == 0
        await stage.until(lambda: any(e["reason"] == "PartialGang" for e in server.events))


async def _half_a_group(server, stage):
    """Bind one of two gangs that start together as if the extender had died between them."""
    both = {names.ANNOTATION_GANG_GROUPS: '["default/x","default/y"]'}
    for name in "xy":
        stage.gang(name, 2, **both)
    await stage.until(lambda: stage.gated("x") + stage.gated("y") == 0, scheduling=False)
    for one in stage.claims():
        if one.pod.name.startswith("x-"):
            raw = server.objects["pods"][one.pod.key]
            raw["spec"]["nodeName"] = one.node
            server.put("pods", raw, echo=False)
    return stage.time.now()


async def test_a_gang_group_of_which_one_gang_was_bound_is_completed_after_the_restart(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _half_a_group(server, stage)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("y") == 2)
        assert server.evicted == []


async def test_a_gang_whose_group_cannot_be_completed_is_evicted(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _half_a_group(server, stage)
        free = {"n0": 2, "n1": 2}
        for pod in stage.pods("x"):
            free[pod["spec"]["nodeName"]] -= 1
        for number, node in enumerate(name for name, left in free.items() for _ in range(left)):
            raw = stage.make.pod(f"f{number}", node=node, requests={"cpu": "4"})
            server.put("pods", raw, echo=False)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(server.evicted) == 2)
        assert stage.time.now() - now < 10.0
        assert {key.split("/")[1] for key in server.evicted} == {"x-0", "x-1"}
        assert stage.bound("y") == 0


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param('{"v":1,"group":"x","generation":"g","node":"n0","until":9e9}', id="foreign"),
        pytest.param("{" * 5000, id="deep"),
        pytest.param(
            '{"v":1,"group":"default/a","generation":"g","node":"n0","until":1e300}', id="for ever"
        ),
        pytest.param(
            '{"v":1,"group":"default/a","generation":"g","node":"gone","until":1782907230}',
            id="no node",
        ),
    ],
)
async def test_a_record_that_is_not_ours_keeps_no_place(server, plan):
    gang_stage.nodes(server, 1)
    for number in range(2):
        raw = gang_stage.Make().pod(f"a-{number}", requests={"cpu": "8"})
        raw["metadata"]["annotations"] = {
            names.ANNOTATION_GANG_NAME: "a",
            names.ANNOTATION_GANG_MIN_AVAILABLE: "2",
            names.ANNOTATION_PLAN: plan,
        }
        server.put("pods", raw)
    async with gang_stage.opened(server) as stage:
        await stage.until(lambda: len(stage.conditions("a")) == 2)
        assert not stage.claims()
        stage.gang("b", 1, cpu="8")
        await stage.until(lambda: stage.bound("b") == 1)


async def test_in_observe_mode_gates_open_without_a_plan(server):
    gang_stage.nodes(server, 1)
    async with gang_stage.opened(server, observe=True) as stage:
        stage.gang("a", 3, least=4)
        await stage.rest(3.0)
        assert stage.gated("a") == 3
        stage.member("a", 3, least=4)
        await stage.until(lambda: stage.gated("a") == 0)
        assert not stage.claims()
        assert all(
            names.ANNOTATION_PLAN not in one["metadata"]["annotations"] for one in stage.pods("a")
        )


async def test_figures_of_plans_are_counted(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        stage.gang("b", 4)
        await stage.until(lambda: stage.bound("a") + stage.bound("b") == 4)
        await stage.until(lambda: not stage.claims())
        async with stage.session.get(f"{stage.app.health_url}/metrics") as answer:
            text = await answer.text()
        assert 'koord_extender_gang_plans_total{result="planned"} 1.0' in text
        assert "koord_extender_gang_groups_waiting 1.0" in text


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, id="spread"
        ),
        pytest.param(
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname"}]}}}, id="anti-affinity",
        ),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, id="resource claim"),
    ],
)  # fmt: skip
async def test_what_only_kube_scheduler_knows_is_tried_with_one_member_first(server, spec):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4, spec=spec)
        await stage.until(lambda: stage.gated("a") == 3, scheduling=False)
        assert len(stage.claims()) == 4, "places are kept for all of them"
        await stage.time.advance(1.0)
        assert stage.gated("a") == 3
        await stage.until(lambda: stage.bound("a") == 4)


async def test_members_are_not_nudged_while_kube_scheduler_tries_others(server):
    """It takes them one after the other: a nudge would make it look at a pod once more."""
    gang_stage.nodes(server, 4)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 6)
        await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
        for tried in range(1, 6):
            await stage.schedule(most=1)
            await stage.until(lambda: len(stage.app.books.assumptions) == tried, scheduling=False)  # noqa: B023
            for _ in range(3):
                await stage.time.advance(0.5)
        assert not stage.nudged("a")
        # Now it tries nothing for a while.
        await stage.until(lambda: stage.nudged("a"), scheduling=False)
        assert len(stage.nudged("a")) == 1
        await stage.until(lambda: stage.bound("a") == 6)


async def test_a_clock_that_is_set_back_keeps_no_gang_from_being_planned():
    server = gang_stage.GangServer()
    gang_stage.nodes(server, 1)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        await stage.until(lambda: stage.conditions("a"))
        stage.time.jump(-3600.0)
        gang_stage.nodes(server, 2)
        await stage.rest(60.0)
        assert stage.bound("a") == 4
