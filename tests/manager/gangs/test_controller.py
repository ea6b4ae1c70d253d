"""Status of PodGroups, losses and restarts as they reach the API server."""

import copy
import json

import pytest

from api import names, resources
from kube.client import client
from manager import settings
from manager.gangs import gang_events, restart_plan
from tests.manager.gangs import ganged

PODS, GROUPS = resources.PODS, resources.POD_GROUPS
ONLY = {"controllers": ("podgroup",)}
RESTART = {"repair": "restart"}


class Gangs:
    """What tests do to gangs, and what they see of them."""

    def __init__(self, world):
        self.world = world

    async def pod(self, name, gang="g", namespace="default", **given):
        given.setdefault("node", "n1")
        raw = ganged.raw_pod(name, gang, namespace, **{"created": 0.0, **given})
        raw["metadata"].pop("creationTimestamp", None)
        status = raw.pop("status")
        await self.world.admin.create(PODS, raw, namespace)
        await self.world.admin.patch(
            PODS, name, {"status": status}, namespace=namespace, subresource="status",
            kind=client.Patch.STRATEGIC,
        )  # fmt: skip

    async def pods(self, count, gang="g", namespace="default", **given):
        for number in range(count):
            await self.pod(f"{gang}-{number}", gang, namespace, **given)

    async def group(self, name="g", least=3, **given):
        raw = ganged.raw_group(name, least=least, **given)
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            raw["metadata"].pop(field)
        await self.world.admin.create(GROUPS, raw, raw["metadata"]["namespace"])

    async def phase(self, name, phase):
        await self.world.admin.patch(
            PODS, name, {"status": {"phase": phase}}, namespace="default", subresource="status"
        )

    async def delete(self, *found, namespace="default"):
        for name in found:
            await self.world.admin.delete(PODS, name, namespace, grace_seconds=0)

    async def budget(self, labels, **spec):
        """Let a disruption budget speak for pods with these labels."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}, **spec},
        }
        await self.world.admin.create(resources.POD_DISRUPTION_BUDGETS, body, "default")

    async def switch(self, mode):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE},
            "data": {"gang-repair": mode},
        }
        await self.world.admin.patch(
            resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, body, namespace=names.NAMESPACE,
            kind=client.Patch.APPLY, field_manager="admin", force=True,
        )  # fmt: skip

    async def owner(self):
        """Create what owns pods, and return the reference to it."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job"}}
        made = await self.world.admin.create(resources.CONFIG_MAPS, body, "default")
        uid = made["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": "job", "uid": uid}

    async def told_of(self, name, reason):
        """Wait until an event is there about an object of this name; return all reasons."""
        await self.until(lambda: reason in self.told(name))
        return self.told(name)

    def status(self, name="g"):
        return self.world.stored(GROUPS, name).get("status", {})

    def condition(self, kind, name="g"):
        found = self.status(name).get("conditions", ())
        return next((one for one in found if one["type"] == kind), None)

    def leaving(self):
        """Return the pods that are being deleted."""
        return sorted(
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in self.world.stored(PODS)
            if pod["metadata"].get("deletionTimestamp")
        )

    async def stop_leaving(self):
        """Let the kubelet finish with the pods that are being deleted."""
        for key in self.leaving():
            namespace, _, name = key.partition("/")
            await self.delete(name, namespace=namespace)

    def told(self, name="g"):
        return self.world.reasons(name)

    async def seconds(self, count):
        await self.world.pass_time(count)

    async def grow_old(self):
        """Let pods be older than any restart that a manager may not know of."""
        await self.world.clock.advance(restart_plan.PAUSE_SECONDS + 1)

    async def until(self, what, *, steps=60, step=0.5):
        """Let time pass until something is true, so many steps of seconds at the most."""
        for _ in range(steps):
            if found := what():
                return found
            await self.world.clock.advance(step)
            await self.world.quiet()
        return what()


@pytest.fixture
def gangs(world):
    return Gangs(world)


async def test_the_status_of_a_pod_group_follows_its_pods(gangs, world) -> None:
    await gangs.group(least=2)
    async with world.manager(**ONLY):
        assert await gangs.until(lambda: gangs.status().get("phase") == "Pending")
        owner = await gangs.owner()
        for name in ("a", "b"):
            await gangs.pod(name, group=True, node="", owner=owner)
        assert await gangs.until(lambda: gangs.status()["phase"] == "Scheduling")
        assert gangs.status()["occupiedBy"] == "default/job"
        assert gangs.status()["scheduleStartTime"]
        for name in ("a", "b"):
            uid = world.stored(PODS, name)["metadata"]["uid"]
            await world.admin.bind("default", name, uid=uid, node="n1", annotations={})
        assert await gangs.until(lambda: gangs.status()["phase"] == "Scheduled")
        assert gangs.status()["scheduled"] == 2
        assert gangs.condition("Quorum")["status"] == "True"
        for name in ("a", "b"):
            await gangs.phase(name, "Running")
        assert await gangs.until(lambda: gangs.status()["phase"] == "Running")
        await gangs.seconds(3)
        before = world.stored(GROUPS, "g")
        await gangs.seconds(60)
        assert world.stored(GROUPS, "g") == before, "nothing is written without need"
        for name in ("a", "b"):
            await gangs.phase(name, "Succeeded")
        assert await gangs.until(lambda: gangs.status()["phase"] == "Finished")
        await gangs.delete("a", "b")
        await gangs.seconds(5)
        assert gangs.status()["phase"] == "Finished"
        assert gang_events.BELOW_QUORUM not in gangs.told()
        assert world.stored(GROUPS, "g")["spec"] == {"minMember": 2}


async def test_a_loss_is_told_by_event_condition_and_metric_until_it_ends(gangs, world) -> None:
    await gangs.group(least=3)
    await gangs.pods(3, group=True, owner=await gangs.owner())
    async with world.manager(**ONLY) as running:

        def below():
            return running.registry.value("koord_gangs_below_quorum")

        assert await gangs.until(lambda: gangs.condition("Quorum"))
        assert below() == 0
        await gangs.delete("g-1")
        assert await gangs.until(lambda: gangs.condition("Quorum")["status"] == "False")
        assert below() == 1
        lost = gangs.condition("Quorum")
        assert lost["reason"] == "BelowMinimum"
        assert lost["message"] == "2 of at least 3 pods have a node"
        for name in ("g", "job", "g-0", "g-2"):
            told = await gangs.told_of(name, gang_events.BELOW_QUORUM)
            assert told == [gang_events.BELOW_QUORUM]
        await gangs.seconds(60)
        assert gangs.told() == [gang_events.BELOW_QUORUM], "said once"
        assert gangs.leaving() == [], "nothing asks for a restart"
        await gangs.pod("g-3", group=True)
        assert await gangs.until(lambda: gangs.condition("Quorum")["status"] == "True")
        assert await gangs.until(lambda: gangs.told()[1:]) == [gang_events.QUORUM_RESTORED]
        assert below() == 0


async def test_a_gang_of_annotations_is_restarted_as_a_whole(gangs, world) -> None:
    owner = await gangs.owner()
    await gangs.pods(4, min=4, owner=owner, **RESTART)
    await gangs.pods(2, "other", min=2, **RESTART)
    left = ["default/g-0", "default/g-2", "default/g-3"]
    await gangs.grow_old()
    async with world.manager(**ONLY) as running:
        await gangs.seconds(2)
        await gangs.delete("g-1")
        assert await gangs.until(lambda: gangs.leaving() == left)
        assert await gangs.until(lambda: gang_events.RESTARTED in gangs.told("job"))
        restarts = {"result": "restarted"}
        assert running.registry.value("koord_gang_restarts_total", restarts) == 1
        await gangs.stop_leaving()
        # Its controller makes all of them anew; the next loss comes too soon.
        await gangs.pods(4, min=4, owner=owner, **RESTART)
        await gangs.seconds(5)
        await gangs.delete("g-1")
        assert await gangs.until(lambda: gang_events.RESTART_DELAYED in gangs.told("job"))
        await gangs.seconds(15)
        assert gangs.leaving() == []
        assert await gangs.until(lambda: gangs.leaving() == left, step=20)
        assert running.registry.value("koord_gang_restarts_total", restarts) == 2


async def test_a_loss_in_the_moment_in_which_a_gang_is_complete_leads_to_a_restart(
    gangs, world
) -> None:
    await gangs.pods(3, min=3, node="", **RESTART)
    await gangs.grow_old()
    async with world.manager(**ONLY) as running:
        await gangs.seconds(2)
        for name in ("g-0", "g-1", "g-2"):
            uid = world.stored(PODS, name)["metadata"]["uid"]
            notes = ganged.binding("one")
            await world.admin.bind("default", name, uid=uid, node="n1", annotations=notes)
        await gangs.phase("g-1", "Failed")
        assert await gangs.until(lambda: gangs.leaving() == ["default/g-0", "default/g-2"], steps=9)
        assert running.registry.value("koord_gang_restarts_total", {"result": "restarted"}) == 1


async def test_the_pod_group_remembers_a_restart_for_the_next_leader(gangs, world) -> None:
    await gangs.group(least=2, notes=RESTART)
    await gangs.pods(2, group=True)
    await gangs.grow_old()
    async with world.manager(**ONLY):
        await gangs.seconds(2)
        await gangs.delete("g-1")
        assert await gangs.until(lambda: gangs.leaving() == ["default/g-0"])
        assert gangs.condition("Restarted")["reason"] == "PodsEvicted"
        await gangs.stop_leaving()
    await gangs.pods(2, group=True)
    async with world.manager(**ONLY):
        assert await gangs.until(lambda: gangs.status()["phase"] == "Running")
        await gangs.delete("g-1")
        for _ in range(10):
            await world.clock.advance(30)
            await world.quiet()
        assert gangs.leaving() == []
        assert await gangs.until(lambda: gangs.leaving() == ["default/g-0"], step=20)


async def test_a_disruption_budget_keeps_the_whole_gang(gangs, world) -> None:
    await gangs.pods(3, min=3, **RESTART)
    for number in range(3):
        body = {"metadata": {"labels": {"kept": "yes"}}}
        await world.admin.patch(PODS, f"g-{number}", body, namespace="default")
    await gangs.budget({"kept": "yes"}, maxUnavailable=0)
    await gangs.grow_old()
    async with world.manager(**ONLY) as running:
        await gangs.seconds(2)
        await gangs.delete("g-1")
        assert await gangs.until(lambda: gang_events.RESTART_DELAYED in gangs.told("g-0"))
        assert gangs.leaving() == []
        refused = {"result": "refused"}
        assert running.registry.value("koord_gang_evictions_total", refused) >= 1
        await world.admin.delete(resources.POD_DISRUPTION_BUDGETS, "budget", "default")
        assert await gangs.until(lambda: gangs.leaving() == ["default/g-0", "default/g-2"])


@pytest.mark.parametrize("mode", ["off", "observe"])
async def test_restarts_can_be_switched_off_and_observed_live(gangs, world, mode) -> None:
    await gangs.pods(3, min=3, **RESTART)
    await gangs.switch(mode)
    await gangs.grow_old()
    async with world.manager(**ONLY) as running:
        await gangs.seconds(2)
        await gangs.delete("g-1")
        assert await gangs.until(lambda: gang_events.BELOW_QUORUM in gangs.told("g-0"))
        await gangs.seconds(10)
        assert gangs.leaving() == []
        would = running.registry.value("koord_gang_restarts_total", {"result": "would-restart"})
        assert (would, gang_events.WOULD_RESTART in gangs.told("g-0")) == (
            (1, True) if mode == "observe" else (0, False)
        )
        await gangs.switch("enforce")
        await gangs.phase("g-0", "Pending")
        assert await gangs.until(lambda: gangs.leaving() == ["default/g-0", "default/g-2"])


async def test_a_tenant_takes_no_pods_of_others_along(gangs, world) -> None:
    await world.admin.create(resources.NAMESPACES, {"metadata": {"name": "other"}})
    groups = json.dumps(["default/g", "other/h"])
    await gangs.pods(2, min=2, groups=groups, **RESTART)
    await gangs.pods(2, "h", "other", min=2, **RESTART)
    await gangs.grow_old()
    async with world.manager(**ONLY):
        await gangs.seconds(2)
        await gangs.delete("g-1")
        assert await gangs.until(lambda: gangs.leaving() == ["default/g-0"])
        await gangs.seconds(30)
        assert gangs.leaving() == ["default/g-0"]


async def test_a_job_that_is_deleted_is_no_loss(gangs, world) -> None:
    await gangs.group(least=3, notes=RESTART)
    await gangs.pods(3, group=True)
    async with world.manager(**ONLY) as running:
        assert await gangs.until(lambda: gangs.status().get("phase") == "Running")
        await gangs.delete("g-0", "g-1", "g-2")
        assert await gangs.until(lambda: gangs.status()["phase"] == "Pending")
        await gangs.seconds(5)
        assert gangs.told() == []
        assert running.registry.value("koord_gangs_below_quorum") == 0


async def test_a_hostile_pod_group_stops_no_other(gangs, world) -> None:
    bad = ganged.raw_group("bad", least=2)
    bad["metadata"] = {"name": "bad", "namespace": "default"}
    bad["status"] = {"phase": "Running", "conditions": [{"type": "Quorum", "status": "False"}]}
    bad["spec"] = {"minMember": 2147483647, "scheduleTimeoutSeconds": -5}
    await world.admin.create(GROUPS, bad, "default")
    await gangs.pods(1, "bad", group=True)
    await gangs.group(least=2)
    await gangs.pods(2, group=True)
    async with world.manager(**ONLY):
        assert await gangs.until(lambda: gangs.status().get("phase") == "Running")
        assert await gangs.until(lambda: gangs.status("bad")["phase"] == "Scheduling")
        await gangs.seconds(40)
        assert gangs.leaving() == []


async def test_a_replica_that_stands_by_knows_what_was_complete(gangs, world) -> None:
    """So that it tells of a loss at once when it leads."""
    leads, stands_by = (
        {**ONLY, "leader_election": settings.LeaderElectionSettings(identity=identity)}
        for identity in ("leads", "stands-by")
    )
    await gangs.group(least=2)
    await gangs.pods(2, group=True)
    async with world.manager(**stands_by) as second:
        assert second.leadership.leading
        assert await gangs.until(lambda: gangs.condition("Quorum"))
        async with world.manager(**leads) as first:
            await gangs.seconds(3)
            assert not first.leadership.leading
            await gangs.delete("g-1")
            assert await gangs.until(lambda: gang_events.BELOW_QUORUM in gangs.told())
            assert await gangs.until(lambda: first.registry.value("koord_gangs_below_quorum") == 1)
            assert second.registry.value("koord_gangs_below_quorum") == 1
            assert gangs.told() == [gang_events.BELOW_QUORUM], "only the leader writes"


async def test_what_the_api_server_does_not_keep_is_not_written_again_and_again(
    gangs, world
) -> None:
    """The CRD of somebody else may know no conditions."""
    definition = copy.deepcopy(world.stored(resources.CRDS, "podgroups.scheduling.sigs.k8s.io"))
    versions = definition["spec"]["versions"]
    schema = versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    schema["properties"].pop("conditions")
    schema.pop("x-kubernetes-preserve-unknown-fields")
    changed = {"spec": {"versions": versions}}
    await world.admin.patch(resources.CRDS, definition["metadata"]["name"], changed)
    await gangs.group(least=2)
    await gangs.pods(2, group=True)
    async with world.manager(**ONLY):
        assert await gangs.until(lambda: gangs.status().get("phase") == "Running")
        await gangs.seconds(5)
        assert gangs.condition("Quorum") is None
        before = world.stored(GROUPS, "g")["metadata"]["resourceVersion"]
        await gangs.seconds(60)
        assert world.stored(GROUPS, "g")["metadata"]["resourceVersion"] == before


async def test_the_status_of_each_successor_of_a_pod_group_is_written(gangs, world) -> None:
    """As `kubectl replace --force` makes one, before its predecessor was seen with a status."""
    await gangs.pods(2, group=True)
    async with world.manager(**ONLY):
        for number in range(3):
            await gangs.group(least=2)
            assert await gangs.until(lambda: gangs.status().get("phase"), step=0.1), number
            await world.admin.delete(GROUPS, "g", "default")
