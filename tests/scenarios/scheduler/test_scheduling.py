"""How a scheduler places pods when nobody but itself decides."""

import pytest

pytestmark = pytest.mark.usefixtures("stock")


async def test_a_node_made_through_the_api_takes_pods(here):
    node = await here.node("a")
    await here.pod("web")
    pod = await here.bound("web")
    assert pod["spec"]["nodeName"] == node
    scheduled = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    assert scheduled["status"] == "True"
    # To be placed is no change of what was asked for.
    assert pod["metadata"]["generation"] == 1


async def test_what_other_tests_left_takes_no_room(here):
    stray = here.pod_body("stray", requests={"cpu": "8"})
    stray["spec"] = {"containers": stray["spec"]["containers"]}
    await here.api.post(here.path("pods"), stray)
    await here.node("a")
    await here.refused("stray")
    await here.pod("web")
    await here.bound("web")


async def test_a_pod_that_fits_nowhere_says_why(here):
    await here.node("a", cpu="1")
    await here.node("b", cpu="1")
    await here.heard()
    await here.pod("big", requests={"cpu": "2"})
    await here.refused("big", "0/2 nodes are available: 2 Insufficient cpu.")


async def test_each_reason_is_counted(here):
    await here.node("a", cpu="1")
    await here.node("b", memory="1Gi")
    await here.heard()
    await here.pod("big", requests={"cpu": "2", "memory": "2Gi"})
    await here.refused("big", "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.")


async def test_extended_resources_are_counted(here):
    await here.node("a", more={"kubernetes.io/batch-cpu": "2000"})
    await here.pod("first", requests={"kubernetes.io/batch-cpu": "1500"})
    await here.bound("first")
    await here.pod("second", requests={"kubernetes.io/batch-cpu": "1500"})
    await here.refused("second", "1 Insufficient kubernetes.io/batch-cpu")


async def test_a_cordoned_node_is_skipped_and_a_taint_needs_a_toleration(here):
    cordoned = await here.node("a")
    tainted = await here.node("b")
    await here.api.patch(f"/api/v1/nodes/{cordoned}", {"spec": {"unschedulable": True}})
    taint = {"key": "team", "value": "data", "effect": "NoSchedule"}
    marked = {"metadata": {"labels": {"team": "data"}}, "spec": {"taints": [taint]}}
    await here.api.patch(f"/api/v1/nodes/{tainted}", marked)
    toleration = {"key": "team", "operator": "Equal", "value": "data", "effect": "NoSchedule"}
    # The scheduler hears of nodes in order: it knows of both changes once it knows the label.
    await here.pod("chosen", nodeSelector={"team": "data"}, tolerations=[toleration])
    await here.bound("chosen")
    await here.pod("stranger")
    message = await here.refused("stranger", "1 node(s) were unschedulable")
    assert "1 node(s) had untolerated taint" in message
    await here.pod("insider", tolerations=[toleration])
    assert (await here.bound("insider"))["spec"]["nodeName"] == tainted


async def test_affinity_and_selector_narrow_the_choice(here):
    await here.node("a", labels={"zone": "east"})
    west = await here.node("b", labels={"zone": "west"})
    expression = {"key": "zone", "operator": "In", "values": ["west"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    await here.pod("west", affinity=affinity)
    assert (await here.bound("west"))["spec"]["nodeName"] == west
    await here.pod("nowhere", nodeSelector={"zone": "north"})
    await here.refused("nowhere", "node(s) didn't match Pod's node affinity/selector")


async def test_a_waiting_pod_is_placed_when_a_node_arrives(here):
    await here.pod("early")
    await here.refused("early")
    node = await here.node("a")
    assert (await here.bound("early"))["spec"]["nodeName"] == node


async def test_a_waiting_pod_is_placed_when_another_leaves(here):
    await here.node("a", cpu="2")
    await here.pod("first", requests={"cpu": "2"})
    await here.bound("first")
    await here.pod("second", requests={"cpu": "2"})
    await here.refused("second")
    await here.remove("first")
    await here.bound("second")


async def test_a_gated_pod_waits_for_its_gate(here):
    await here.node("a")
    await here.pod("gated", schedulingGates=[{"name": "koord.sh/quota"}])
    await here.refused("gated", reason="SchedulingGated")
    path = here.path("pods", "gated")
    operations = [{"op": "remove", "path": "/spec/schedulingGates"}]
    await here.api.patch(path, operations, kind="application/json-patch+json")
    await here.bound("gated")


async def test_pods_of_another_scheduler_are_left_alone(here):
    await here.node("a")
    await here.pod("other", schedulerName="somebody-else")
    await here.pod("ours")
    await here.bound("ours")
    pod = await here.api.get(here.path("pods", "other"))
    assert "nodeName" not in pod["spec"]


async def test_the_higher_priority_evicts_the_lower(here):
    await here.node("a", cpu="2")
    async with here.priority(1000) as high:
        await here.pod("low", requests={"cpu": "2"})
        await here.bound("low")
        await here.pod("high", requests={"cpu": "2"}, priorityClassName=high)
        await here.wait("low", lambda pod: pod is None or "deletionTimestamp" in pod["metadata"])
        await here.api.call("DELETE", here.path("pods", "low"), query={"gracePeriodSeconds": "0"})
        await here.bound("high")
        await here.told("low", "Preempted")


async def test_a_failed_placement_is_an_event(here):
    await here.node("a", cpu="1")
    await here.pod("big", requests={"cpu": "2"})
    await here.refused("big")
    seen = await here.told("big", "FailedScheduling")
    assert seen["note"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert seen["type"] == "Warning"
