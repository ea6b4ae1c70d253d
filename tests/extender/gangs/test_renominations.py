"""Members that lost their nomination: they are nominated anew, and their plan goes on."""

import itertools
import json

import pytest
from aiohttp import web

from api import names
from tests.extender.gangs.stage import gang_stage

NODES, MEMBERS = 102, 4
"""kube-scheduler looks at a part of so many nodes."""
RANKED = {names.ANNOTATION_GANG_NETWORK_INDEX: "1"}
"""On members with a rank: each keeps its place."""
FAILURES = {"refused": 403, "broken": 500}


class FailingServer(gang_stage.GangServer):
    """Refuses some Bindings, and counts the nominations of every pod."""

    def __init__(self):
        super().__init__()
        self.failing = {}
        """By name of the pod: how its next Bindings fail."""
        self.nominations = {}
        """By name of the pod: when it was nominated, and to which node."""
        self.now = lambda: 0.0

    async def _post(self, request):
        parts = request.path.strip("/").split("/")
        faults = self.failing.get(parts[-2], []) if parts[-1] == "binding" else []
        if not faults:
            return await super()._post(request)
        fault = faults.pop(0)
        if fault == "cut":
            request.transport.abort()
            return web.Response()
        return web.json_response({"code": FAILURES[fault], "message": "no"}, status=FAILURES[fault])

    async def _patch(self, request):
        status = (await request.json()).get("status", {})
        if "nominatedNodeName" in status:
            name = request.path.strip("/").split("/")[-2]
            entry = self.now(), status["nominatedNodeName"]
            self.nominations.setdefault(name, []).append(entry)
        return await super()._patch(request)


class SamplingStage(gang_stage.Stage):
    """Its scheduler tries the nominated node, then others: its sample never has the planned one.

    As kube-scheduler does it takes the nomination off a pod that it could not place or bind, and
    tries one that no node takes only after the pod has changed.
    """

    def __init__(self, *parts):
        super().__init__(*parts)
        self.server.now = self.time.now
        self.unfit = set()
        """Nodes that kube-scheduler refuses by a reason of its own."""
        self.parked = {}

    async def passing(self, raw):
        name = raw["metadata"]["name"]
        notes = json.dumps(raw["metadata"]["annotations"])
        if self.parked.get(name) == notes:
            return []
        fitting = [node for node in self.fitting(raw) if node not in self.unfit]
        nominated = raw["status"].get("nominatedNodeName")
        found = await self.filtered(raw, [nominated]) if nominated in fitting else []
        kept = {one.pod.name: one.node for one in self.claims()}
        others = [node for node in fitting if node != kept.get(name)]
        found = found or await self.filtered(raw, others)
        if found:
            self.parked.pop(name, None)
        else:
            self.parked[name] = notes
            self.says(name, "Unschedulable", "0/102 nodes are available: 101 planned elsewhere")
        return found

    def failed(self, name):
        super().failed(name)
        self.says(name, "SchedulerError", "binding failed")

    def says(self, name, reason, message):
        """Write why a pod has no node, and take its nomination off."""
        found = self.server.objects["pods"].get(f"default/{name}")
        if found is None or found["spec"].get("nodeName"):
            return
        pod = json.loads(json.dumps(found))
        said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        conditions = {one["type"]: one for one in pod["status"].get("conditions", [])}
        conditions["PodScheduled"] = said
        pod["status"] = {**pod["status"], "conditions": list(conditions.values())}
        pod["status"].pop("nominatedNodeName", None)
        self.server.put("pods", pod)

    async def plans(self, result):
        """Return how many plans have come to this."""
        async with self.session.get(f"{self.app.health_url}/metrics") as answer:
            text = await answer.text()
        start = f'koord_extender_gang_plans_total{{result="{result}"}} '
        return sum(float(line.removeprefix(start)) for line in text.splitlines() if start in line)


@pytest.fixture
async def stage():
    server = FailingServer()
    gang_stage.nodes(server, NODES)
    async with gang_stage.opened(server, kind=SamplingStage) as opened:
        await opened.until(lambda: opened.app.books.cluster.node("n101"), scheduling=False)
        yield opened


@pytest.mark.parametrize("fault", ["refused", "broken", "cut"])
async def test_a_member_whose_binding_fails_is_nominated_anew_and_its_plan_goes_on(stage, fault):
    stage.server.failing["a-0"] = [fault]
    stage.gang("a", MEMBERS, cpu="8", **RANKED)
    await stage.until(lambda: stage.bound("a") == MEMBERS)
    (first, node), (again, same) = stage.server.nominations["a-0"]
    assert node == same
    assert again > first
    assert all(len(stage.server.nominations[f"a-{n}"]) == 1 for n in range(1, MEMBERS))
    assert (await stage.plans("planned"), await stage.plans("failed")) == (1, 0)
    assert stage.server.evicted == []


async def test_a_member_that_was_tried_without_its_node_is_nominated_and_woken(stage):
    stage.gang("a", MEMBERS, cpu="8", **RANKED)
    await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
    stage.says("a-0", "SchedulerError", "binding failed")
    await stage.schedule(most=1)
    assert "a-0" in stage.parked, "it was tried before it was nominated anew"
    await stage.until(lambda: stage.bound("a") == MEMBERS)
    assert len(stage.server.nominations["a-0"]) == 2
    assert [one["metadata"]["name"] for one in stage.nudged("a")] == ["a-0"]
    assert (await stage.plans("planned"), await stage.plans("failed")) == (1, 0)


async def test_a_plan_is_given_up_where_kube_scheduler_refuses_the_nominated_node_itself(stage):
    stage.gang("a", MEMBERS, cpu="8", **RANKED)
    await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
    kept = {one.pod.name: one.node for one in stage.claims()}
    stage.unfit = {kept["a-0"]}
    began = stage.time.now()
    await stage.until(lambda: stage.conditions("a"))
    assert {one["reason"] for one in stage.conditions("a")} == {"PlanFailed"}
    assert stage.time.now() - began < 3.0
    assert [node for _, node in stage.server.nominations["a-0"]] == [kept["a-0"]]
    await stage.until(lambda: stage.bound("a") == MEMBERS)
    found = {one["spec"]["nodeName"] for one in stage.pods("a")}
    assert kept["a-0"] not in found, "it is avoided"


async def test_a_plan_whose_members_are_never_bound_is_given_up_after_some_tries(stage):
    for number in range(MEMBERS):
        stage.server.failing[f"a-{number}"] = ["refused"] * 1000
    stage.gang("a", MEMBERS, cpu="8", **RANKED)
    await stage.until(lambda: stage.conditions("a"))
    assert not stage.claims()
    assert await stage.plans("failed") == 1
    for number in range(MEMBERS):
        moments = [at for at, _ in stage.server.nominations[f"a-{number}"]]
        assert 3 <= len(moments) <= 5
        pauses = [later - at for at, later in itertools.pairwise(moments[1:])]
        assert min(pauses) >= 1.0
    stage.server.failing.clear()
    await stage.until(lambda: stage.bound("a") == MEMBERS)


async def test_after_a_restart_members_that_lost_their_nomination_are_nominated_anew():
    server = FailingServer()
    gang_stage.nodes(server, NODES)
    async with gang_stage.opened(server, kind=SamplingStage) as stage:
        stage.gang("a", MEMBERS, cpu="8", **RANKED)
        await stage.until(lambda: stage.gated("a") == 0, scheduling=False)
        now = stage.time.now()
    async with gang_stage.opened(server, kind=SamplingStage, now=now) as stage:
        for number in range(MEMBERS):
            stage.says(f"a-{number}", "SchedulerError", "the extender was away")
        await stage.until(lambda: stage.bound("a") == MEMBERS)
        assert all(len(one) == 2 for one in server.nominations.values())
        assert await stage.plans("failed") == 0


async def test_where_kube_scheduler_looks_at_all_nodes_nothing_is_nominated():
    server = FailingServer()
    gang_stage.nodes(server, MEMBERS)
    server.failing["a-0"] = ["refused"]
    async with gang_stage.opened(server) as stage:
        stage.gang("a", MEMBERS, cpu="8", **RANKED)
        await stage.until(lambda: stage.bound("a") == MEMBERS)
        await stage.rest(5.0)
    assert server.nominations == {}
