"""Which node kube-scheduler names for a pod that waits, and when it takes that back."""

import contextlib

import pytest
import pytest_asyncio

from tests.planes import raw


def is_nominated(node):
    return lambda pod: pod["status"].get("nominatedNodeName", "") == node


async def nominate(here, name, node):
    """Name a node for a pod that waits, as somebody beside the scheduler may."""
    body = {"status": {"nominatedNodeName": node}}
    await here.api.patch(here.path("pods", name, "status"), body)


async def refuse(body):
    return {"NodeNames": [], "FailedAndUnresolvableNodes": dict.fromkeys(body["NodeNames"], "no")}


async def fail(body):
    return {"Error": "the view is stale"}


@pytest.mark.parametrize(
    ("verb", "answer", "reason"),
    [
        pytest.param("filter", refuse, "Unschedulable", id="no node fits and nobody can leave"),
        pytest.param("filter", fail, "SchedulerError", id="the attempt fails"),
        pytest.param("bind", fail, "SchedulerError", id="the bind fails"),
    ],
)
async def test_an_attempt_in_vain_ends_a_nomination(here, extender, verb, answer, reason):
    node = await here.node("a")
    setattr(extender, verb, answer)
    await here.pod("web")
    await here.refused("web", reason=reason)
    await nominate(here, "web", node)
    await here.annotate("web", nudge="1")
    await here.wait("web", is_nominated(""))


class Crowd:
    """Pods on nodes of this test that stay in deletion until the test ends."""

    def __init__(self, here):
        self._here = here
        self._names = []

    async def add(self, name, node, **options):
        body = self._here.pod_body(
            name,
            nodeSelector={"world": self._here.id, "kubernetes.io/hostname": node},
            **options,
        )
        body["metadata"]["finalizers"] = ["koord.sh/test"]
        await self._here.api.post(self._here.path("pods"), body)
        self._names.append(name)
        await self._here.bound(name)

    async def disperse(self):
        for name in self._names:
            path = self._here.path("pods", name)
            await self._here.api.call(
                "PATCH", path, {"metadata": {"finalizers": None}}, kind=raw.MERGE_PATCH
            )

    async def preempted(self, name):
        """Wait until the scheduler has this pod leave."""

        def is_victim(pod):
            reasons = [c.get("reason") for c in pod["status"]["conditions"]]
            return "deletionTimestamp" in pod["metadata"] and "PreemptionByScheduler" in reasons

        await self._here.wait(name, is_victim)


@pytest_asyncio.fixture(loop_scope="session")
async def crowd(here, stock):
    made = Crowd(here)
    yield made
    await made.disperse()


async def test_the_more_important_preemptor_ends_the_nomination_of_another(here, crowd):
    node = await here.node("a", cpu="2")
    await crowd.add("low-1", node)
    await crowd.add("low-2", node)
    async with here.priority(100) as middle, here.priority(1000) as high:
        await here.pod("middle", priorityClassName=middle)
        await here.wait("middle", is_nominated(node))
        await here.pod("high", requests={"cpu": "2"}, priorityClassName=high)
        await here.wait("high", is_nominated(node))
        await here.wait("middle", is_nominated(""))


async def gated(here, name, node, **options):
    """A pod for which a node is named before the scheduler looks at it for the first time."""
    await here.pod(name, schedulingGates=[{"name": "koord.sh/test"}], **options)
    await nominate(here, name, node)
    operations = [{"op": "remove", "path": "/spec/schedulingGates"}]
    await here.api.patch(here.path("pods", name), operations, kind=raw.JSON_PATCH)


async def test_only_for_who_was_preempted_a_nominated_pod_waits(here, crowd):
    node = await here.node("a", cpu="2")
    await crowd.add("leaving", node)
    await crowd.add("other", node)
    await here.remove("leaving")
    async with here.priority(1000) as high:
        await gated(here, "high", node, requests={"cpu": "2"}, priorityClassName=high)
        await crowd.preempted("other")
        leaving = await here.api.get(here.path("pods", "leaving"))
        reasons = [condition.get("reason") for condition in leaving["status"]["conditions"]]
        assert "PreemptionByScheduler" not in reasons


async def test_nobody_waits_for_room_on_a_node_that_was_closed(here, crowd):
    first, second = await here.node("a", cpu="1"), await here.node("b", cpu="1100m")
    async with here.priority(100) as middle, here.priority(1000) as high:
        await crowd.add("low", first)
        await crowd.add("middle", second, priorityClassName=middle)
        await crowd.add("small", second, requests={"cpu": "100m"}, priorityClassName=high)
        await here.pod("high", priorityClassName=high)
        await here.wait("high", is_nominated(first))
        await here.api.patch(f"/api/v1/nodes/{first}", {"spec": {"unschedulable": True}})
        await here.api.patch(here.path("pods", "small"), {"metadata": {"finalizers": None}})
        await here.remove("small")
        await crowd.preempted("middle")


@pytest.mark.usefixtures("stock")
async def test_fewer_victims_leave_however_small_the_priorities_of_more(here):
    names = {value: f"priority-{value}" for value in (3, 10, 500, 1000)}
    async with contextlib.AsyncExitStack() as stack:
        for value in names:
            names[value] = await stack.enter_async_context(here.priority(value))
        for suffix, pods in (
            ("few", ((500, "1"), (10, "1"))),
            ("many", ((500, "1"), (3, "500m"), (3, "500m"))),
        ):
            node = await here.node(suffix, cpu="2")
            pinned = {"world": here.id, "kubernetes.io/hostname": node}
            for number, (value, cpu) in enumerate(pods):
                name = f"{suffix}-{number}"
                await here.pod(
                    name, requests={"cpu": cpu}, nodeSelector=pinned, priorityClassName=names[value]
                )
                await here.bound(name)
        await here.pod("high", requests={"cpu": "2"}, priorityClassName=names[1000])
        pod = await here.wait(
            "high",
            lambda pod: pod["status"].get("nominatedNodeName") or pod["spec"].get("nodeName"),
        )
        chosen = pod["status"].get("nominatedNodeName") or pod["spec"]["nodeName"]
        assert chosen == here.name("few")


@pytest.mark.usefixtures("stock")
async def test_a_toleration_that_is_added_places_a_waiting_pod(here):
    node = await here.node("a")
    taint = {"key": "team", "value": "data", "effect": "NoSchedule"}
    mine = {"key": "world", "value": here.id, "effect": "NoSchedule"}
    await here.api.patch(
        f"/api/v1/nodes/{node}",
        {"spec": {"taints": [mine, taint]}, "metadata": {"labels": {"team": "data"}}},
    )
    await here.pod("web", nodeSelector={"team": "data"})
    await here.refused("web", "untolerated taint")
    value = {"key": "team", "operator": "Exists", "effect": "NoSchedule"}
    operations = [{"op": "add", "path": "/spec/tolerations/-", "value": value}]
    await here.api.patch(here.path("pods", "web"), operations, kind=raw.JSON_PATCH)
    await here.bound("web")


@pytest.mark.usefixtures("stock")
@pytest.mark.parametrize("end", ["taken back", "deleted"])
async def test_room_of_a_nomination_that_ends_is_given_to_who_waits(here, end):
    node = await here.node("a", cpu="4")
    await here.pod("low", requests={"cpu": "2"})
    await here.bound("low")
    async with here.priority(100, preemptionPolicy="Never") as patient:
        await here.pod("first", requests={"cpu": "4"}, priorityClassName=patient)
        await here.refused("first", "Insufficient cpu")
        await nominate(here, "first", node)
        await here.pod("second", requests={"cpu": "2"})
        await here.refused("second", "Insufficient cpu")
        if end == "deleted":
            await here.remove("first")
        else:
            await nominate(here, "first", None)
        await here.bound("second")
