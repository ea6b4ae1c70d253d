"""Status of quotas as it reaches the API server."""

import json

from api import names, resources
from kube.client import client
from manager import settings
from manager.quota.status import status_plan
from tests import builders
from tests.manager.quota.conftest import a_quota
from tests.manager.quota.status.running_status import QUOTAS, used

SHORT = resources.ELASTIC_QUOTAS_OF_QUOTA_GROUP
ONLY = {"controllers": ("quotastatus",)}


async def made(world, raw, namespace="default", group=QUOTAS):
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        raw["metadata"].pop(key)
    return await world.admin.create(group, raw, namespace)


async def pod(world, name, quota="", node="", cpu="1", namespace="default"):
    labels = {names.LABEL_QUOTA_NAME: quota} if quota else {}
    raw = builders.a_pod(name, namespace, cpu=cpu, labels=labels, node=node)
    await world.admin.create(resources.PODS, raw, namespace)


def version(world, name, group=QUOTAS):
    return int(world.stored(group, name)["metadata"]["resourceVersion"])


async def test_it_converges_and_then_writes_nothing(world) -> None:
    await world.node("n1")
    await made(world, a_quota("q", least={"cpu": "4"}, most={"cpu": "9"}))
    await made(world, a_quota("team-quota", "default", group=SHORT, most={"cpu": "9"}), group=SHORT)
    await pod(world, "p", "q", "n1", cpu="3")
    async with world.manager(**ONLY):
        await world.until(lambda: used(world, "q") == "3")
        await world.until(lambda: used(world, "team-quota", SHORT) == "0")
        notes = world.stored(QUOTAS, "q")["metadata"]["annotations"]
        assert json.loads(notes[names.ANNOTATION_QUOTA_RUNTIME]) == {"cpu": "3"}
        await world.pass_time(3)
        before = version(world, "q"), version(world, "team-quota", SHORT)
        await world.pass_time(130)
        assert (version(world, "q"), version(world, "team-quota", SHORT)) == before
    async with world.manager(**ONLY):
        await world.pass_time(20)
        assert (version(world, "q"), version(world, "team-quota", SHORT)) == before


async def test_pods_that_come_and_go_are_followed(world) -> None:
    await world.node("n1")
    await made(world, a_quota("q", most={"cpu": "9"}))
    async with world.manager(**ONLY):
        await pod(world, "p", "q", "n1", cpu="2")
        await world.pass_time(2)
        assert used(world, "q") == "2"
        await world.admin.delete(resources.PODS, "p", "default", grace_seconds=0)
        await world.pass_time(2)
        assert used(world, "q") == "0"


async def test_what_somebody_overwrites_is_set_right(world) -> None:
    await world.node("n1")
    await made(world, a_quota("q", group=SHORT, most={"cpu": "9"}), group=SHORT)
    async with world.manager(**ONLY):
        await world.until(lambda: used(world, "q", SHORT) == "0")
        await world.pass_time(2)
        change = {"status": {"used": {"cpu": "7"}, "allocatedQuota": {"gpu": "1"}}}
        await world.admin.patch(SHORT, "q", change, namespace="default")
        await world.pass_time(2)
        status = world.stored(SHORT, "q")["status"]
        assert (status["used"], "gpu" in status["allocatedQuota"]) == ({"cpu": "0"}, False)


async def test_a_conflict_of_names_is_a_condition_and_an_event(world) -> None:
    await made(world, a_quota("q", "default", most={"cpu": "9"}))
    await world.clock.advance(2)
    await made(world, a_quota("q", "default", group=SHORT, most={"cpu": "9"}), group=SHORT)
    async with world.manager(**ONLY):
        await world.until(lambda: world.stored(SHORT, "q")["status"].get("conditions"))
        (condition,) = world.stored(SHORT, "q")["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", status_plan.NAME_CONFLICT)
        await world.until(lambda: status_plan.NAME_CONFLICT in world.reasons("q"))
        await world.admin.delete(QUOTAS, "q", "default")
        await world.pass_time(3)
        conditions = world.stored(SHORT, "q")["status"]["conditions"]
        assert {one["status"] for one in conditions} == {"True"}


async def test_a_crd_with_a_subresource_for_its_status_is_written_there(world) -> None:
    path = f"elasticquotas.{QUOTAS.group}"
    change = [{"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}}]
    await world.admin.patch(resources.CRDS, path, change, kind=client.Patch.JSON)
    await world.node("n1")
    await made(world, a_quota("q", most={"cpu": "9"}))
    await pod(world, "p", "q", "n1", cpu="3")
    async with world.manager(**ONLY):
        await world.pass_time(6)
        assert used(world, "q") == "3"
        before = version(world, "q")
        await world.pass_time(70)
        assert version(world, "q") == before


async def test_it_can_be_switched_off(world) -> None:
    await world.node("n1")
    await made(world, a_quota("q", most={"cpu": "9"}))
    async with world.manager(controllers=("*", "-quotastatus")):
        await world.pass_time(5)
        assert used(world, "q") is None


async def test_a_deposed_leader_writes_nothing(world) -> None:
    """The lease is taken away: whatever happens afterwards, this manager writes no status."""
    election = settings.LeaderElectionSettings(identity="first")
    await world.node("n1")
    await made(world, a_quota("q", most={"cpu": "9"}))
    async with world.manager(**ONLY, leader_election=election) as running:
        await world.until(lambda: running.leadership.leading)
        await world.until(lambda: used(world, "q") == "0")
        lease = await world.admin.get(resources.LEASES, election.name, election.namespace)
        lease["spec"] |= {"holderIdentity": "second", "leaseDurationSeconds": 3600}
        await world.admin.update(resources.LEASES, lease)
        await world.pass_time(30)
        assert not running.leadership.leading
        before = version(world, "q")
        await pod(world, "p", "q", "n1", cpu="2")
        await world.pass_time(10)
        assert version(world, "q") == before


async def test_quotas_come_and_go_under_load(world) -> None:
    await world.node("n1")
    async with world.manager(**ONLY):
        for number in range(8):
            await made(world, a_quota(f"q{number}", most={"cpu": "99"}))
            await pod(world, f"p{number}", f"q{number}", "n1", cpu=str(number + 1))
            if number % 3 == 2:
                await world.admin.delete(QUOTAS, f"q{number}", "default")
            await world.clock.advance(0.3)
        await world.pass_time(4)
        left = {f"q{number}": str(number + 1) for number in range(8) if number % 3 != 2}
        assert {name: used(world, name) for name in left} == left


async def configure(world, args):
    """Write the ConfigMap that the extender reads as well."""
    entry = {"name": "ElasticQuota", "args": args}
    document = {"kind": "KubeSchedulerConfiguration", "profiles": [{"pluginConfig": [entry]}]}
    name = names.CONFIG_MAP_SCHEDULER
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": names.NAMESPACE},
        "data": {name: json.dumps(document)},
    }
    options = {"kind": client.Patch.APPLY, "field_manager": "admin", "force": True}
    await world.admin.patch(resources.CONFIG_MAPS, name, body, namespace=names.NAMESPACE, **options)


async def test_quotas_are_counted_as_the_arguments_of_the_plug_in_say(world) -> None:
    await world.node("n1", cpu="10")
    await made(world, a_quota("q", group=SHORT, most={"cpu": "50"}), group=SHORT)
    await pod(world, "p", "q", cpu="20")

    def usable():
        return world.stored(SHORT, "q")["status"].get("allocatedQuota")

    async with world.manager(**ONLY):
        await world.until(lambda: usable() == {"cpu": "10"})
        await configure(world, {"enableRuntimeQuota": False})
        await world.pass_time(3)
        assert usable() == {"cpu": "50"}
        await configure(world, {"enableRuntimeQuota": "perhaps"})
        await world.pass_time(3)
        assert usable() == {"cpu": "50"}, "a document with a fault changes nothing"
        await world.admin.delete(resources.CONFIG_MAPS, names.CONFIG_MAP_SCHEDULER, names.NAMESPACE)
        await world.pass_time(3)
        assert usable() == {"cpu": "10"}
