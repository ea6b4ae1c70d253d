"""What an extender may do to the victims that the scheduler proposes."""

import contextlib
import json

import pytest
import pytest_asyncio


class Stage:
    """Two full nodes, and a pod that only fits when somebody leaves."""

    def __init__(self, here, extender, priority):
        self.here = here
        self.extender = extender
        self.priority = priority
        self.nodes = {}
        self.pods = {}

    async def fill(self, suffix, *pods):
        """A node that these pods fill, one core each."""
        node = await self.here.node(suffix, cpu=str(len(pods)))
        self.nodes[suffix] = node
        for name in pods:
            pinned = {"world": self.here.id, "kubernetes.io/hostname": node}
            pod = await self.here.pod(name, requests={"cpu": "1"}, nodeSelector=pinned)
            await self.here.bound(name)
            self.pods[name] = pod["metadata"]["uid"]

    async def arrive(self):
        await self.here.pod("high", requests={"cpu": "1"}, priorityClassName=self.priority)

    async def leaves(self, name):
        def going(pod):
            return pod is None or "deletionTimestamp" in pod["metadata"]

        await self.here.wait(name, going)

    async def placed(self):
        """Wait for the pod to be bound; returns it.

        Schedulers that evict beside their loop may miss that a victim has gone already, and would
        wait for minutes unless something nudges the pod.
        """
        for number in range(40):
            await self.here.annotate("high", nudge=str(number))
            with contextlib.suppress(AssertionError):
                return await self.here.bound("high", timeout=2)
        raise AssertionError("nothing places the pod")

    async def stays(self, name):
        pod = await self.here.api.get(self.here.path("pods", name))
        assert "deletionTimestamp" not in pod["metadata"]

    def victims(self, *names):
        return {"Pods": [{"UID": self.pods[name]} for name in names], "NumPDBViolations": 0}


@pytest_asyncio.fixture(loop_scope="session")
async def stage(here, extender):
    async with here.priority(1000) as priority:
        yield Stage(here, extender, priority)


async def test_the_wire_has_these_keys(stage):
    await stage.fill("a", "low")
    await stage.arrive()
    (call, *_) = await stage.extender.called("preempt", "high")
    assert set(call.body) == {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}
    assert call.body["NodeNameToVictims"] is None
    assert call.body["NodeNameToMetaVictims"] == {stage.nodes["a"]: stage.victims("low")}
    assert call.body["Pod"]["spec"]["containers"][0]["name"] == "main"


async def test_a_node_that_is_dropped_keeps_its_pods(stage):
    await stage.fill("a", "first")
    await stage.fill("b", "second")

    async def only_b(body):
        offered = body["NodeNameToMetaVictims"]
        assert set(offered) == set(stage.nodes.values())
        return {"NodeNameToMetaVictims": {stage.nodes["b"]: offered[stage.nodes["b"]]}}

    stage.extender.preempt = only_b
    await stage.arrive()
    await stage.leaves("second")
    pod = await stage.placed()
    assert pod["spec"]["nodeName"] == stage.nodes["b"]
    await stage.stays("first")


async def test_without_nodes_nobody_leaves(stage):
    await stage.fill("a", "low")

    async def nobody(body):
        return {"NodeNameToMetaVictims": {}}

    stage.extender.preempt = nobody
    await stage.arrive()
    await stage.extender.called("preempt", "high")
    await stage.here.refused("high", "preemption: no candidate node for preemption")
    await stage.stays("low")
    assert not stage.extender.of("bind", "high")


async def test_other_pods_of_the_node_may_leave_instead(stage):
    await stage.fill("a", "one", "two")
    node = stage.nodes["a"]

    async def the_other(body):
        (proposed,) = body["NodeNameToMetaVictims"][node]["Pods"]
        (other,) = (n for n, uid in stage.pods.items() if uid != proposed["UID"])
        chosen.append(other)
        return {"NodeNameToMetaVictims": {node: stage.victims(other)}}

    chosen = []
    stage.extender.preempt = the_other
    await stage.arrive()
    await stage.extender.called("preempt", "high")
    await stage.leaves(chosen[0])
    await stage.placed()
    (kept,) = {"one", "two"} - set(chosen)
    await stage.stays(kept)


async def test_a_victim_of_nowhere_stops_preemption(stage):
    await stage.fill("a", "low")
    nobody = "11111111-1111-1111-1111-111111111111"

    async def stranger(body):
        victims = {"Pods": [{"UID": nobody}], "NumPDBViolations": 0}
        return {"NodeNameToMetaVictims": {stage.nodes["a"]: victims}}

    stage.extender.preempt = stranger
    await stage.arrive()
    await stage.here.refused("high", "but the pod is not found on that node")
    await stage.stays("low")


async def test_a_node_without_victims_stops_preemption(stage):
    await stage.fill("a", "low")

    async def none(body):
        return {"NodeNameToMetaVictims": {stage.nodes["a"]: stage.victims()}}

    stage.extender.preempt = none
    await stage.arrive()
    node = stage.nodes["a"]
    await stage.here.refused("high", f'expected at least one victim pod on node "{node}"')
    await stage.stays("low")


@pytest.mark.parametrize(
    "victims",
    [
        pytest.param([], id="a list of nodes"),
        pytest.param({"NODE": 5}, id="a number of victims"),
        pytest.param({"NODE": {"Pods": 5}}, id="a number of pods"),
        pytest.param({"NODE": {"Pods": [{"UID": ["low"]}]}}, id="a list as a uid"),
        pytest.param(
            {"NODE": {"Pods": [{"UID": "low"}], "NumPDBViolations": "some"}},
            id="a word as a number",
        ),
    ],
)
async def test_senseless_victims_stop_preemption(stage, victims):
    await stage.fill("a", "low")

    async def senseless(body):
        text = json.dumps(victims).replace("NODE", stage.nodes["a"])
        return {
            "NodeNameToMetaVictims": json.loads(text.replace('"low"', f'"{stage.pods["low"]}"'))
        }

    stage.extender.preempt = senseless
    await stage.arrive()
    await stage.here.refused("high", "cannot unmarshal")
    await stage.stays("low")


async def test_nodes_that_only_we_refuse_are_not_offered(stage):
    free = await stage.here.node("free")
    await stage.here.known(stage.extender)
    await stage.fill("a", "low")

    async def not_the_free_one(body):
        left = [name for name in body["NodeNames"] if name != free]
        refused = {free: "quota is used up"} if free in body["NodeNames"] else {}
        return {"NodeNames": left, "FailedNodes": refused}

    stage.extender.filter = not_the_free_one
    await stage.arrive()
    (call, *_) = await stage.extender.called("preempt", "high")
    assert list(call.body["NodeNameToMetaVictims"]) == [stage.nodes["a"]]
    pod = await stage.placed()
    assert pod["spec"]["nodeName"] == stage.nodes["a"]
