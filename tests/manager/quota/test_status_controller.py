"""Status of quotas as it reaches the API server, and how often."""

import itertools
import json

import msgspec
import pytest

from api import names, resources
from kube.client import client, errors
from kube.controllers import controller
from kube.informers import store
from manager import settings
from manager.quota import objects
from manager.quota.status import status_controller, status_plan
from manager.reconcile import actions
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from tests import builders
from tests.manager.quota.conftest import Cluster, a_quota

QUOTAS = resources.ELASTIC_QUOTAS
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


def used(world, name, group=QUOTAS):
    found = world.stored(group, name)
    return found and found.get("status", {}).get("used", {}).get("cpu")


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


class Recording:
    """A writer that keeps what it should write, and answers as an API server would."""

    def __init__(self, cluster: Cluster, clock: ManualClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.at: list[float] = []
        self.names: list[str] = []
        self.fails: list[Exception] = []

    def unseen(self, *_args):
        return None

    async def carry_out(self, plan):
        for step in plan.steps:
            if isinstance(step, actions.Merge):
                if self.fails:
                    raise self.fails.pop(0)
                self.at.append(self.clock.monotonic())
                self.names.append(step.name)
                self._store(step)
        return controller.Outcome(plan.message)

    def _store(self, step):
        seen = self.cluster.stores.quotas[step.resource]
        key = f"{step.namespace}/{step.name}"
        there = seen.get(key)
        meta = step.body["metadata"]
        assert meta["resourceVersion"] == there.version
        self.cluster.version += 1
        status = dict(there.status)
        for field, value in step.body.get("status", {}).items():
            if isinstance(value, dict):
                value = {**status.get(field, {}), **value}
                value = {name: text for name, text in value.items() if text is not None}
            status[field] = value
        after = objects.QuotaObject(
            there.quota,
            str(self.cluster.version),
            {**there.annotations, **meta.get("annotations", {})},
            status,
        )
        seen.put(store.Meta(key, there.quota.uid, self.cluster.version), after)


class Running:
    """The status controller beside a cluster that is fed by hand."""

    def __init__(self, cluster: Cluster, pace: status_controller.Pace) -> None:
        self.clock = ManualClock(turns=6)
        self.writer = Recording(cluster, self.clock)
        self.statuses = status_controller.Statuses(
            cluster.book, self.writer, pace, self.clock, metrics.Registry()
        )


@pytest.fixture
def running(cluster: Cluster):
    async def run(body, pace=None):
        world = Running(cluster, pace or status_controller.Pace())
        async with supervise.Supervisor("test") as tasks:
            tasks.start("statuses", world.statuses.run)
            await body(world)

    return run


async def test_no_quota_is_written_more_than_once_a_second(cluster: Cluster, running) -> None:
    cluster.node("n1")
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    async def churn(world: Running) -> None:
        for number in range(100):
            cluster.pod(f"p{number}", quota="q", node="n1")
            await world.clock.advance(0.05)
        await world.clock.advance(3)
        assert cluster.book.quotas["scheduling.sigs.k8s.io/default/q"].status["used"] == {
            "cpu": "100"
        }
        gaps = [after - before for before, after in itertools.pairwise(world.writer.at)]
        assert min(gaps) >= 1.0
        assert 4 <= len(world.writer.at) <= 8

    await running(churn)


async def test_status_yields_to_gates_that_open(cluster: Cluster, running) -> None:
    cluster.node("n1", cpu="10000")
    for number in range(20):
        cluster.quota(a_quota(f"q{number}", most={"cpu": "9999"}))

    async def churn(world: Running) -> None:
        await world.clock.advance(5)
        before = len(world.writer.at)
        for number in range(400):
            name, team = f"p{number}", f"q{number % 20}"
            cluster.pod(name, quota=team, gates=(names.GATE_QUOTA,))
            cluster.pod(name, quota=team)
            cluster.pod(name, quota=team, node="n1")
            await world.clock.advance(0.025)
        assert len(world.writer.at) - before <= 20 + 0.2 * 10 * 10 + 2
        await world.clock.advance(15)
        for number in range(20):
            found = cluster.book.quotas[f"scheduling.sigs.k8s.io/default/q{number}"]
            assert found.status["used"] == {"cpu": "20"}

    await running(churn, status_controller.Pace(per_second=10.0, burst=20))


async def test_thousands_of_quotas_are_written_within_the_rate(cluster: Cluster, running) -> None:
    count, pace = 2_000, status_controller.Pace(per_second=200.0, burst=20)
    read = objects.quota(a_quota("q", most={"cpu": "9"}))
    seen = cluster.stores.quotas[QUOTAS]
    for number in range(count):
        name = f"q{number}"
        parent = names.ROOT_QUOTA if number < 100 else f"q{number % 100}"
        quota = msgspec.structs.replace(
            read, quota=msgspec.structs.replace(read.quota, name=name, uid=name, parent=parent)
        )
        seen.accept(store.Meta(f"default/{name}", name, number + 1), quota)
    cluster.version = count

    async def write(world: Running) -> None:
        for second in range(12):
            await world.clock.advance(1.0)
            assert len(world.writer.at) <= 20 + 200 * (second + 2)
        assert sorted(set(world.writer.names)) == sorted(f"q{n}" for n in range(count))
        written = len(world.writer.at)
        await world.clock.advance(5.0)
        assert len(world.writer.at) == written

    await running(write, pace)


async def test_a_lost_event_is_made_good(cluster: Cluster, running) -> None:
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    async def lose(world: Running) -> None:
        await world.clock.advance(2)
        listener = cluster.book._listeners.pop()
        cluster.pod("p", quota="q", cpu="3")
        await world.clock.advance(5)
        written = len(world.writer.at)
        await world.clock.advance(62)
        cluster.book._listeners.append(listener)
        assert len(world.writer.at) == written + 1
        notes = cluster.book.stores.quotas[QUOTAS].get("default/q").annotations
        assert notes[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"3"}'

    await running(lose)


async def test_a_refused_write_concerns_that_quota_alone(cluster: Cluster, running) -> None:
    for name in ("a", "b"):
        cluster.quota(a_quota(name, most={"cpu": "99"}))

    async def refuse(world: Running) -> None:
        world.writer.fails = [errors.Forbidden(403, "Forbidden", "no")]
        await world.clock.advance(30)
        assert sorted(world.writer.names) == ["a", "b"]

    await running(refuse)


async def test_what_admission_has_added_is_not_taken_back_at_once(
    cluster: Cluster, running
) -> None:
    """A pod that admission let in is known to informers a little later."""
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    def says() -> str:
        found = cluster.book.quotas["scheduling.sigs.k8s.io/default/q"]
        return found.annotations[names.ANNOTATION_QUOTA_CHILD_REQUEST]

    async def admit(world: Running) -> None:
        await world.clock.advance(3)
        cluster.quota(
            a_quota("q", most={"cpu": "99"}, annotations={"child-request": '{"cpu":"5"}'})
        )
        await world.clock.advance(8)
        assert says() == '{"cpu":"5"}'
        await world.clock.advance(5)
        assert says() == '{"cpu":"0"}'
        cluster.pod("p", quota="q", cpu="7")
        await world.clock.advance(2)
        cluster.drop_pod("p")
        await world.clock.advance(2)
        assert says() == '{"cpu":"0"}', "what we have written ourselves is corrected at once"

    await running(admit)


async def test_all_else_is_told_while_admission_is_ahead(cluster: Cluster, running) -> None:
    """As after a change of leader, which does not know whose account stands in the object."""
    written = a_quota("q", most={"cpu": "99"}, annotations={"child-request": '{"cpu":"5"}'})
    cluster.quota(written)

    def found():
        return cluster.book.quotas["scheduling.sigs.k8s.io/default/q"]

    async def follow(world: Running) -> None:
        for cpu in (1, 2, 3):
            cluster.pod("p", quota="q", cpu=str(cpu), node="n")
            await world.clock.advance(2)
            assert found().status["used"] == {"cpu": str(cpu)}
            assert found().annotations[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"5"}'
        await world.clock.advance(6)
        assert found().annotations[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"3"}'

    await running(follow)


async def test_a_field_that_the_api_server_drops_is_not_written_for_ever(
    cluster: Cluster, running
) -> None:
    cluster.quota(a_quota("q", most={"cpu": "99"}))

    async def drop(world: Running) -> None:
        store_all = world.writer._store

        def without_conditions(step):
            step.body.get("status", {}).pop("conditions", None)
            store_all(step)

        world.writer._store = without_conditions
        await world.clock.advance(200)
        assert len(world.writer.at) <= 3
        cluster.pod("p", quota="q", cpu="1")
        await world.clock.advance(100)
        notes = cluster.book.quotas["scheduling.sigs.k8s.io/default/q"].annotations
        assert notes[names.ANNOTATION_QUOTA_CHILD_REQUEST] == '{"cpu":"1"}'
        assert len(world.writer.at) <= 6

    await running(drop)


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
