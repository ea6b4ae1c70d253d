"""Bindings that arrive after their sender has given up: nothing is ever granted twice."""

import asyncio
import json

import pytest

from api import names
from tests.planes import raw
from tests.planes.stage import LONG, PATIENCE

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


class Late:
    """Takes the first Binding of a pod off the wire; delivers it when the test says so."""

    def __init__(self, gate, pod):
        self._pod = pod
        self.call = None
        gate.before = self._take

    async def _take(self, call):
        if self.call is None and call.is_binding and call.path.split("/")[-2] == self._pod:
            self.call = call
            # No answer ever comes; the sender gives up and its connection goes.
            await asyncio.Event().wait()

    async def taken(self):
        async def seen():
            return self.call is not None

        await raw.eventually(seen, PATIENCE)
        return json.loads(self.call.body)

    async def deliver(self, api):
        return await api.call("POST", self.call.path, json.loads(self.call.body))


async def fenced(here, name):
    """Wait until the extender has fenced a pod."""

    async def seen():
        pod = await here.api.get(here.path("pods", name))
        return pod["metadata"].get("annotations", {}).get(names.ANNOTATION_FENCE)

    return await raw.eventually(seen, PATIENCE)


@pytest.mark.parametrize("by", ["annotation", "status", "nothing"])
async def test_a_binding_is_held_to_the_version_that_it_names(stage, by):
    (node,) = await stage.lending("n0")
    await stage.create("waits", schedulerName="none")
    path = stage.path("pods", "waits")
    old = (await stage.api.get(path))["metadata"]["resourceVersion"]
    if by == "annotation":
        change = {"metadata": {"annotations": {names.ANNOTATION_FENCE: "1"}}}
        await stage.api.call("PATCH", path, change, kind=raw.MERGE_PATCH)
        # What changes nothing moves no version, so a fence has to be another one every time.
        again = await stage.api.call("PATCH", path, change, kind=raw.MERGE_PATCH)
        assert again.body["metadata"]["resourceVersion"] != old
        first = again.body["metadata"]["resourceVersion"]
        again = await stage.api.call("PATCH", path, change, kind=raw.MERGE_PATCH)
        assert again.body["metadata"]["resourceVersion"] == first
    if by == "status":
        change = {"status": {"nominatedNodeName": node}}
        await stage.api.call("PATCH", f"{path}/status", change, kind=raw.MERGE_PATCH)
    binding = {"metadata": {"name": "waits", "resourceVersion": old}}
    binding["target"] = {"kind": "Node", "name": node}
    answer = await stage.api.call("POST", stage.path("pods", "waits", "binding"), binding)
    bound = (await stage.api.get(path))["spec"].get("nodeName", "")
    expected = (201, node) if by == "nothing" else (409, "")
    assert (answer.status, bound) == expected, answer.message


@LONG
async def test_a_binding_that_arrives_late_fails_once_its_place_was_given_away(stage):
    """Two nodes with room for one job each; the place of the late one goes to another."""
    await stage.lending("n0", "n1", cores=4)
    pair = await stage.pair("a")
    await pair.schedule(bind_timeout_seconds=8)
    late = Late(pair.uplink, "late")
    await stage.create("late", cores=4)
    sent = await late.taken()
    first = sent["target"]["name"]
    (other,) = set(stage.nodes) - {first}
    # From here on the scheduler places the late one elsewhere and only the other one there.
    cordon = {"spec": {"unschedulable": True}}
    await stage.api.call("PATCH", f"/api/v1/nodes/{first}", cordon, kind=raw.MERGE_PATCH)
    selector = {names.LABEL_HOSTNAME: first}
    await stage.create("other", cores=4, nodeSelector=selector, tolerations=[UNSCHEDULABLE])
    assert await fenced(stage, "late")
    assert await stage.all_bound("other") == [first]
    answer = await late.deliver(stage.api)
    assert answer.status == 409, answer.message
    assert await stage.all_bound("late") == [other]
    await stage.sound(pair)


@LONG
async def test_a_binding_that_was_faster_than_the_fence_is_kept(stage):
    await stage.lending("n0", "n1", cores=4)
    pair = await stage.pair("a")
    await pair.schedule(bind_timeout_seconds=8)
    late = Late(pair.uplink, "late")
    await stage.create("late", cores=4)
    first = (await late.taken())["target"]["name"]
    answer = await late.deliver(stage.api)
    assert answer.status == 201, answer.message
    assert await stage.all_bound("late") == [first]
    await stage.create("other", cores=4)
    (second,) = await stage.all_bound("other")
    assert second != first
    await stage.sound(pair)


@LONG
async def test_a_killed_extender_leaves_no_place_to_two_pods(stage):
    """The Binding of the killed one arrives while its successor works from a fresh view."""
    await stage.lending("n0", "n1", cores=4)
    pair = await stage.pair("a")
    await pair.schedule(bind_timeout_seconds=8)
    late = Late(pair.uplink, "late")
    await stage.create("late", cores=4)
    await late.taken()
    await pair.extender.kill()
    answer = await late.deliver(stage.api)
    assert answer.status in (201, 409)
    await pair.extender.start()
    await pair.extender.ready()
    await stage.create("other", cores=4)
    assert len(set(await stage.all_bound("late", "other"))) == 2
    await stage.sound(pair)
