"""From the creation of a Reservation to the node that it holds, through kube-scheduler itself."""

import contextlib
import copy
import json

import pytest
import pytest_asyncio

from api import names, resources
from process.runtime import clock as clocks
from tests.planes import foundation, raw
from tests.planes.processes import restarting

KIND, PODS = resources.RESERVATIONS, resources.PODS
SCHEDULERS = ("default-scheduler", "koord-scheduler")
PATIENCE = 60.0


class Placing:
    """Extender, manager and webhook with a scheduler, and the Reservations of one test."""

    def __init__(self, here, system):
        self.here, self.system = here, system
        self.made = []

    def body(self, suffix="r", *, requests=None, template=None, **spec):
        name = self.here.name(suffix)
        pod = copy.deepcopy(self.here.pod_body("template", requests=requests))
        pod["spec"] |= (template or {}).pop("spec", {}) if template else {}
        labels = {"owner": self.here.id}
        metadata = {"labels": labels, "namespace": self.here.namespace}
        return {
            "apiVersion": KIND.api_version,
            "kind": KIND.kind,
            "metadata": {"name": name},
            "spec": {
                "template": {"metadata": metadata, "spec": pod["spec"]},
                "owners": [{"labelSelector": {"matchLabels": labels}}],
                **spec,
            },
        }

    async def reserve(self, suffix="r", **options):
        body = self.body(suffix, **options)
        self.made.append(body["metadata"]["name"])
        return await self.here.api.post(KIND.path(), body)

    async def until(self, suffix, says):
        """Wait until a Reservation is as it should be; return it."""
        path = KIND.path(name=self.here.name(suffix))
        return await self.here.api.wait_until(path, lambda found: says(found), PATIENCE)

    async def available(self, suffix="r"):
        def says(found):
            return found and found.get("status", {}).get("phase") == "Available"

        return await self.until(suffix, says)

    async def stand_ins(self):
        found = await self.here.api.get(PODS.path(self.here.namespace))
        return [
            one
            for one in found["items"]
            if names.LABEL_STAND_IN in one["metadata"].get("labels", {})
        ]

    async def no_stand_ins(self):
        await raw.eventually(lambda: self._none(), PATIENCE)

    async def _none(self):
        return not await self.stand_ins()

    async def clear(self):
        for name in self.made:
            await self.here.api.call("DELETE", KIND.path(name=name))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(plane, tmp_path_factory):
    """Extender, manager and webhook, and a scheduler that calls them."""
    clock, folder = clocks.SystemClock(), tmp_path_factory.mktemp("placing")
    async with contextlib.AsyncExitStack() as stack:
        _, access = await stack.enter_async_context(foundation.laid(plane, clock))
        system = await stack.enter_async_context(
            restarting.running(access, folder, controllers=["reservation"])
        )
        api = await stack.enter_async_context(raw.connected(plane.server, plane.ca, plane.token))
        await plane.start_scheduler(
            system.extender.url, filter_timeout_seconds=30, scheduler_names=SCHEDULERS
        )
        stack.push_async_callback(plane.stop_scheduler)
        stack.push_async_callback(unregistered, api)
        yield system


@pytest_asyncio.fixture(loop_scope="session")
async def placing(here, system):
    made = Placing(here, system)
    yield made
    await made.clear()


async def unregistered(api):
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        await api.call("DELETE", resource.path(name="koord-webhook"))


async def test_a_reservation_takes_a_node_and_no_pod_is_left(placing):
    node = await placing.here.node("a", cpu="8")
    await placing.reserve(requests={"cpu": "3", "memory": "1Gi"})
    found = await placing.available()
    status = found["status"]
    assert status["nodeName"] == node
    assert status["allocatable"] == {"cpu": "3", "memory": "1Gi"}
    kinds = [(one["type"], one["status"], one["reason"]) for one in status["conditions"]]
    assert kinds == [("Scheduled", "True", "Scheduled"), ("Ready", "True", "Available")]
    await placing.no_stand_ins()


async def test_it_waits_with_a_reason_and_takes_what_becomes_free(placing):
    await placing.here.node("a", cpu="4")
    await placing.here.pod("job", requests={"cpu": "3"})
    await placing.here.bound("job")
    await placing.reserve(requests={"cpu": "3"})

    def waits(found):
        conditions = (found or {}).get("status", {}).get("conditions") or ()
        return any("Insufficient cpu" in one["message"] for one in conditions)

    found = await placing.until("r", waits)
    assert found["status"]["phase"] == "Pending"
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Scheduled", "False")
    assert condition["reason"] == "Unschedulable"
    await placing.here.remove("job")
    await placing.available()
    await placing.no_stand_ins()


async def test_two_that_together_do_not_fit_are_not_both_placed(placing):
    await placing.here.node("a", cpu="4")
    for suffix in ("r", "s"):
        await placing.reserve(suffix, requests={"cpu": "3"})

    async def settled():
        found = [await placing.here.api.get(KIND.path(name=placing.here.name(s))) for s in "rs"]
        phases = [one.get("status", {}).get("phase") for one in found]
        told = [one.get("status", {}).get("conditions") for one in found]
        return sorted(map(str, phases)) == ["Available", "Pending"] and all(told)

    await raw.eventually(settled, PATIENCE)


async def test_a_stand_in_goes_with_its_reservation(placing):
    await placing.reserve(template={"spec": {"nodeSelector": {"world": "nowhere"}}})
    await raw.eventually(placing.stand_ins, PATIENCE)
    await placing.clear()
    await placing.no_stand_ins()


@pytest.mark.parametrize("where", ["named", "elsewhere"])
async def test_the_node_that_a_template_names_is_taken_or_none(placing, where):
    await placing.here.node("a")
    node = await placing.here.node("b")
    wanted = node if where == "named" else placing.here.name("missing")
    await placing.reserve(template={"spec": {"nodeName": wanted}})
    if where == "named":
        assert (await placing.available())["status"]["nodeName"] == node
        return

    def waits(found):
        return bool((found or {}).get("status", {}).get("conditions"))

    found = await placing.until("r", waits)
    assert not found["status"].get("nodeName")


async def test_its_owner_finds_it_and_others_get_what_is_left_only_when_it_is_gone(placing):
    here = placing.here
    node = await here.node("a", cpu="4")
    await placing.reserve(requests={"cpu": "3"}, allocateOnce=False)
    await placing.available()
    await here.pod("other", requests={"cpu": "2"})
    await here.refused("other", "Insufficient cpu by node")
    pod = await here.pod("owner", requests={"cpu": "2"}, labels={"owner": here.id})
    bound = await here.bound("owner")
    assert bound["spec"]["nodeName"] == node
    note = json.loads(bound["metadata"]["annotations"][names.ANNOTATION_RESERVATION_ALLOCATED])
    assert note["name"] == here.name("r")

    def used(found):
        return found["status"].get("allocated") == {"cpu": "2"}

    (owner,) = (await placing.until("r", used))["status"]["currentOwners"]
    assert owner == {
        "namespace": here.namespace,
        "name": "owner",
        "uid": pod["metadata"]["uid"],
    }
    await here.remove("owner")
    await placing.until("r", lambda found: not found["status"].get("allocated"))
    await here.refused("other", "Insufficient cpu by node")
    await placing.clear()
    assert (await here.bound("other"))["spec"]["nodeName"] == node
