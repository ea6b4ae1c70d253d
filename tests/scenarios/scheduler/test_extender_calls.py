"""How a scheduler calls an extender: what it sends, in which order, and what answers do."""

import asyncio

from tests.planes import raw

REASON = "node is loaded above its threshold"
NEVER = "node lends no batch capacity"


def reject_all(reason, key="FailedNodes"):
    async def answer(body):
        return {"NodeNames": [], key: dict.fromkeys(body["NodeNames"], reason)}

    return answer


async def test_the_wire_has_these_keys(here, extender):
    names = {await here.node("a"), await here.node("b")}
    await here.known(extender)
    await here.pod("web")
    pod = await here.bound("web")
    (filter_call,) = extender.of("filter", "web")
    assert set(filter_call.body) == {"Pod", "Nodes", "NodeNames"}
    assert filter_call.body["Nodes"] is None
    assert set(filter_call.body["NodeNames"]) == names
    assert filter_call.body["Pod"]["spec"]["containers"][0]["name"] == "main"
    if here.plane.release >= (1, 36):
        # Older schedulers send these as well.
        assert "managedFields" not in filter_call.body["Pod"]["metadata"]
    (prioritize_call,) = extender.of("prioritize", "web")
    assert set(prioritize_call.body) == {"Pod", "Nodes", "NodeNames"}
    (bind_call,) = extender.of("bind", "web")
    assert bind_call.body == {
        "PodName": "web",
        "PodNamespace": here.namespace,
        "PodUID": pod["metadata"]["uid"],
        "Node": pod["spec"]["nodeName"],
    }


async def test_in_tree_refusals_never_reach_the_extender(here, extender):
    await here.node("small", cpu="1")
    large = await here.node("large")
    await here.known(extender)
    await here.pod("web", requests={"cpu": "2"})
    await here.bound("web")
    assert extender.of("filter", "web")[0].body["NodeNames"] == [large]


async def test_with_one_node_left_nobody_asks_for_scores(here, extender):
    await here.node("a")
    chosen = await here.node("b")
    await here.known(extender)

    async def only_one(body):
        refused = [name for name in body["NodeNames"] if name != chosen]
        return {"NodeNames": [chosen], "FailedNodes": dict.fromkeys(refused, REASON)}

    extender.filter = only_one
    await here.pod("web")
    assert (await here.bound("web"))["spec"]["nodeName"] == chosen
    assert extender.of("filter", "web")
    assert not extender.of("prioritize", "web")


async def test_scores_decide_and_are_not_clamped(here, extender):
    for suffix in ("a", "b", "c"):
        await here.node(suffix)
    wanted = here.nodes[1]
    await here.known(extender)

    async def scores(body):
        return [{"Host": n, "Score": 101 if n == wanted else 100} for n in body["NodeNames"]]

    extender.prioritize = scores
    await here.pod("web")
    assert (await here.bound("web"))["spec"]["nodeName"] == wanted


async def test_hosts_without_a_score_get_nothing(here, extender):
    await here.node("a")
    wanted = await here.node("b")
    await here.known(extender)

    async def one_score(body):
        return [{"Host": wanted, "Score": 50}]

    extender.prioritize = one_score
    await here.pod("web")
    assert (await here.bound("web"))["spec"]["nodeName"] == wanted


async def test_binding_writes_annotations_and_node_at_once(here, extender):
    await here.node("a")
    extender.annotations = {"koord.sh/placement": '{"version": 1}'}
    async with here.api.watch(here.path("pods")) as stream:
        await here.pod("web", annotations={"mine": "kept"})
        event = await stream.until(lambda e: e["object"]["spec"].get("nodeName"))
    annotations = event["object"]["metadata"]["annotations"]
    assert annotations["koord.sh/placement"] == '{"version": 1}'
    assert annotations["mine"] == "kept"


async def test_a_held_bind_does_not_stop_other_pods(here, extender):
    await here.node("a")
    release = asyncio.Event()

    async def hold(body):
        if body["PodName"] == "held":
            await release.wait()
        return await extender.write_binding(body)

    extender.bind = hold
    await here.pod("held")
    await extender.called("bind", "held")
    await here.pod("other")
    await here.bound("other")
    held = await here.api.get(here.path("pods", "held"))
    assert "nodeName" not in held["spec"]
    release.set()
    await here.bound("held")


async def test_capacity_of_a_held_bind_is_taken(here, extender):
    await here.node("a", cpu="2")
    release = asyncio.Event()

    async def hold(body):
        await release.wait()
        return await extender.write_binding(body)

    extender.bind = hold
    await here.pod("held", requests={"cpu": "2"})
    await extender.called("bind", "held")
    await here.pod("late", requests={"cpu": "2"})
    await here.refused("late", "1 Insufficient cpu")
    release.set()
    await here.bound("held")


async def test_refused_nodes_are_grouped_by_reason(here, extender):
    for suffix in ("a", "b"):
        await here.node(suffix)
    await here.node("small", cpu="1")
    await here.known(extender)
    extender.filter = reject_all(REASON)
    await here.pod("web", requests={"cpu": "2"})
    await here.refused("web", f"0/3 nodes are available: 1 Insufficient cpu, 2 {REASON}.")


async def test_unresolvable_refusals_look_the_same_to_people(here, extender):
    await here.node("a")
    extender.filter = reject_all(NEVER, "FailedAndUnresolvableNodes")
    await here.pod("web")
    await here.refused("web", f"0/1 nodes are available: 1 {NEVER}.")


async def test_preemption_is_asked_about_where_in_tree_capacity_is_short(here, extender):
    node = await here.node("a", cpu="2")
    async with here.priority(1000) as high:
        low = await here.pod("low", requests={"cpu": "2"})
        await here.bound("low")
        await here.pod("high", requests={"cpu": "2"}, priorityClassName=high)
        await here.wait("low", lambda pod: pod is None or "deletionTimestamp" in pod["metadata"])
        (call, *_) = extender.of("preempt", "high")
        assert call.body["NodeNameToVictims"] is None
        victims = call.body["NodeNameToMetaVictims"]
        assert victims[node]["Pods"] == [{"UID": low["metadata"]["uid"]}]
        assert victims[node]["NumPDBViolations"] == 0


async def test_preemption_is_never_asked_about_nodes_only_we_refuse(here, extender):
    await here.node("a", cpu="2")
    async with here.priority(1000) as high:
        await here.pod("low", requests={"cpu": "1"})
        await here.bound("low")
        extender.filter = reject_all(REASON)
        await here.pod("high", requests={"cpu": "1"}, priorityClassName=high)
        await here.refused("high", REASON)
        assert not extender.of("preempt")


async def test_a_refused_pod_is_tried_again_when_one_annotation_changes(here, extender):
    await here.node("a")

    async def until_nudged(body):
        if "koord.sh/nudge" in body["Pod"]["metadata"].get("annotations", {}):
            return await extender.accept(body)
        return {"NodeNames": [], "FailedNodes": dict.fromkeys(body["NodeNames"], REASON)}

    extender.filter = until_nudged
    await here.pod("web")
    await here.refused("web")
    await here.annotate("web", **{"koord.sh/nudge": "1"})
    await here.bound("web")


async def test_a_refused_pod_is_tried_again_when_only_its_status_changes(here, extender):
    await here.node("a")
    extender.filter = reject_all(REASON)
    await here.pod("web")
    await here.refused("web", REASON)
    # To be told why is such a change itself; to be told the same again is none.
    before = len(await extender.called("filter", "web", 2))
    condition = {"type": "koord.sh/Test", "status": "False", "reason": "Test", "message": "waits"}
    body = {"status": {"conditions": [condition]}}
    path = here.path("pods", "web", "status")
    await here.api.patch(path, body, kind=raw.STRATEGIC_PATCH)
    await extender.called("filter", "web", before + 1)


async def test_a_refused_pod_is_tried_again_when_any_node_changes(here, extender):
    node = await here.node("a")
    extender.filter = reject_all(REASON)
    await here.pod("web")
    await here.refused("web")
    before = len(extender.of("filter", "web"))
    body = {"metadata": {"annotations": {"koord.sh/changed": "1"}}}
    await here.api.patch(f"/api/v1/nodes/{node}", body)
    await extender.called("filter", "web", times=before + 1)


async def test_an_error_is_retried_without_an_event(here, extender):
    await here.node("a")

    async def broken(body):
        return {"Error": "the view is stale"}

    extender.filter = broken
    await here.pod("web")
    message = await here.refused("web", reason="SchedulerError")
    assert "the view is stale" in message
    extender.filter = extender.accept
    await here.bound("web")
    assert len(extender.of("filter", "web")) >= 2


async def test_a_failed_bind_is_told_and_tried_again(here, extender):
    await here.node("a")

    async def fail_once(body):
        if len(extender.of("bind", "web")) == 1:
            return {"Error": "the device is gone"}
        return await extender.write_binding(body)

    extender.bind = fail_once
    await here.pod("web")
    await here.bound("web")
    assert len(extender.of("bind", "web")) == 2
    await here.told("web", "FailedScheduling", "the device is gone")


async def test_a_pod_deleted_in_its_bind_leaves_nothing(here, extender):
    await here.node("a", cpu="2")

    async def capture(body):
        if body["PodName"] == "stand-in":
            await here.remove("stand-in")
            return {"Error": "captured"}
        return await extender.write_binding(body)

    extender.bind = capture
    await here.pod("stand-in", requests={"cpu": "2"})
    await here.wait("stand-in", lambda pod: pod is None)
    await here.pod("web", requests={"cpu": "2"})
    await here.bound("web")


async def test_a_nominated_pod_is_asked_about_with_one_name(here, extender):
    await here.node("a")
    nominated = await here.node("b")
    await here.known(extender)
    await here.pod("web", schedulingGates=[{"name": "koord.sh/gang"}])
    path = here.path("pods", "web")
    body = {"status": {"nominatedNodeName": nominated}}
    await here.api.patch(f"{path}/status", body)
    operations = [{"op": "remove", "path": "/spec/schedulingGates"}]
    await here.api.patch(path, operations, kind="application/json-patch+json")
    pod = await here.bound("web")
    assert pod["spec"]["nodeName"] == nominated
    # Newer API servers clear what has come true.
    hoped = None if here.plane.release >= (1, 35) else nominated
    assert pod["status"].get("nominatedNodeName") == hoped
    assert [call.body["NodeNames"] for call in extender.of("filter", "web")] == [[nominated]]
    assert not extender.of("prioritize", "web")


async def test_a_nomination_that_is_refused_falls_back_to_all_nodes(here, extender):
    other = await here.node("a")
    nominated = await here.node("b")
    await here.known(extender)

    async def refuse_nominated(body):
        left = [name for name in body["NodeNames"] if name != nominated]
        return {"NodeNames": left, "FailedNodes": {nominated: REASON}}

    extender.filter = refuse_nominated
    await here.pod("web", schedulingGates=[{"name": "koord.sh/gang"}])
    path = here.path("pods", "web")
    await here.api.patch(f"{path}/status", {"status": {"nominatedNodeName": nominated}})
    operations = [{"op": "remove", "path": "/spec/schedulingGates"}]
    await here.api.patch(path, operations, kind="application/json-patch+json")
    assert (await here.bound("web"))["spec"]["nodeName"] == other
    asked = [set(call.body["NodeNames"]) for call in extender.of("filter", "web")]
    assert asked == [{nominated}, {nominated, other}]
