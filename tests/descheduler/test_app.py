import contextlib
import json

import aiohttp
import pytest

from api import names, resources
from api.wire import durations
from descheduler import app, settings
from descheduler.rounds import configured, rounds
from process.configuration import settings as configuration
from tests import builders as objects

FAILED_PODS = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 10s
dryRun: {dry_run}
profiles:
- name: tidy
  plugins:
    deschedule: {{enabled: [{{name: RemoveFailedPods}}]}}
  pluginConfig:
  - name: RemoveFailedPods
    args: {{minPodLifetimeSeconds: 0}}
  - name: MigrationController
    args: {{evictFailedBarePods: true, schedulerNames: [default-scheduler]}}
"""


def file(*, dry_run=False):
    return FAILED_PODS.format(dry_run=str(dry_run).lower())


async def cluster(world):
    await world.create(resources.NODES, objects.a_node("n1"), objects.a_node("n2"))
    await world.create(resources.PODS, objects.a_pod("good", node="n1"))
    await world.create(resources.PODS, objects.a_pod("bad", node="n1", phase="Failed"))


async def fetched(url):
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.json()


async def test_a_round_turns_suggestions_into_jobs(world, tmp_path):
    await cluster(world)
    async with world.descheduler(tmp_path, file(), finds_targets=False) as running:
        (job,) = await world.until(lambda: world.stored(resources.POD_MIGRATION_JOBS))
        await world.until(lambda: running.rounds.last.result == rounds.PLANNED)
        status, page = await fetched(f"{running.health_url}/debug/rounds/last")
        _, configz = await fetched(f"{running.health_url}/configz")
        counted = running.registry.value(
            "koord_descheduler_moves_total",
            {"profile": "tidy", "plugin": "RemoveFailedPods", "result": "created"},
        )
    assert job["spec"]["podRef"]["name"] == "bad"
    assert job["spec"]["mode"] == "EvictDirectly"
    assert job["metadata"]["annotations"][names.ANNOTATION_EVICT_TRIGGER] == "RemoveFailedPods"
    assert counted == 1
    assert status == 200
    assert [move["pod"] for move in page["moves"]] == ["default/bad"]
    assert page["moved"] == 1
    effective = configz["deschedulerconfiguration"]
    assert effective["deschedulingInterval"] == "10s"
    assert effective["leaderElection"]["resourceName"] == "koord-descheduler"
    assert configured.read(json.dumps(effective)).head.descheduling_interval == 10


@pytest.mark.parametrize(
    ("dry_run", "changed", "switch"),
    [
        (True, {}, None),
        (False, {"dry_run": True}, None),
        (False, {"mode": "observe"}, None),
        (False, {}, "observe"),
    ],
    ids=["file", "setting", "mode", "live switch"],
)
async def test_where_nothing_may_move_moves_are_only_reported(
    world, tmp_path, dry_run, changed, switch
):
    await cluster(world)
    if switch:
        metadata = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE}
        data = {"descheduler": switch}
        await world.create(resources.CONFIG_MAPS, {"metadata": metadata, "data": data})
    text = file(dry_run=dry_run)
    async with world.descheduler(tmp_path, text, finds_targets=False, **changed) as running:
        await world.until(lambda: running.rounds.last.result == rounds.PLANNED)
        assert "would move 1 pod" in running.rounds.last.message
        assert running.rounds.last.moved == 0
    assert world.stored(resources.POD_MIGRATION_JOBS) == []


async def test_off_means_no_round_until_it_is_on_again(world, tmp_path):
    await cluster(world)
    metadata = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE}
    body = {"metadata": metadata, "data": {"descheduler": "off"}}
    await world.create(resources.CONFIG_MAPS, body)
    async with world.descheduler(tmp_path, file(), finds_targets=False) as running:
        await world.until(lambda: running.rounds.last.result == rounds.OFF)
        assert world.stored(resources.POD_MIGRATION_JOBS) == []
        await world.admin.patch(
            resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, {"data": {"descheduler": "enforce"}},
            namespace=names.NAMESPACE,
        )  # fmt: skip
        await world.quiet()
        await world.pass_time(11)
        await world.until(lambda: world.stored(resources.POD_MIGRATION_JOBS))


async def test_a_second_replica_stands_by(world, tmp_path):
    await cluster(world)
    (tmp_path / "b").mkdir()
    election = settings.LeaderElectionSettings(enabled=True)
    given = {"finds_targets": False, "leader_election": election}
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        first = await enter(world.descheduler(tmp_path, file(dry_run=True), **given))
        await world.until(lambda: first.leadership.leading)
        second = await enter(world.descheduler(tmp_path / "b", file(dry_run=True), **given))
        await world.until(lambda: first.rounds.last.plan)
        await world.pass_time(20)
        assert not second.leadership.leading
        assert second.rounds.last is rounds.NO_ROUND
        assert second.health.ready
        assert second.health.warnings()["leader"] == "another replica leads"
    (lease,) = world.stored(resources.LEASES)
    assert lease["metadata"]["name"] == "koord-descheduler"


async def test_a_deposed_replica_stands_by_and_leads_again(world, tmp_path):
    await cluster(world)
    election = settings.LeaderElectionSettings(enabled=True)
    given = {"finds_targets": False, "leader_election": election}
    async with world.descheduler(tmp_path, file(dry_run=True), **given) as running:
        await world.until(lambda: running.rounds.last.plan)
        before = running.rounds.last
        spec = {
            "holderIdentity": "another",
            "renewTime": durations.precise_moment(world.clock.now()),
        }
        await world.admin.patch(
            resources.LEASES, "koord-descheduler", {"spec": spec}, namespace=names.NAMESPACE
        )
        await world.pass_time(12)
        assert not running.leadership.leading
        stood_by = running.rounds.last
        await world.pass_time(4)
        assert running.rounds.last is stood_by, "it plans nothing while another one leads"
        # The other one never renews.
        await world.pass_time(30)
        assert running.leadership.leading
        await world.until(lambda: running.rounds.last not in (before, stood_by))


async def test_a_file_that_cannot_be_read_names_field_and_remedy(world, tmp_path):
    with pytest.raises(configuration.SettingsError, match="deschedulingInterval"):
        async with world.descheduler(tmp_path, "deschedulingInterval: soon"):
            pass
    chosen = settings.Settings(configuration=tmp_path / "none.yaml")
    with pytest.raises(configuration.SettingsError, match="name a readable file"):
        async with app.running(chosen, access=world.access, clock=world.clock):
            pass


LOAD = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 10s
profiles:
- name: even
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {cpu: 40}
      highThresholds: {cpu: 60}
      anomalyCondition: {consecutiveAbnormalities: 1, consecutiveNormalities: 1}
  - name: MigrationController
    args: {schedulerNames: [default-scheduler]}
"""


async def test_a_pod_leaves_a_hot_node_for_the_node_that_the_scheduler_takes(world, tmp_path):
    await world.create(resources.NODES, *(objects.a_node(f"n{i}", cpu="10") for i in range(3)))
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "web", "apiVersion": "apps/v1"}
    template = {"metadata": {"labels": {"app": "web"}}}
    template["spec"] = {"containers": [{"name": "app", "image": "i"}]}
    selector = {"matchLabels": {"app": "web"}}
    replica_set = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 5, "selector": selector, "template": template},
    }
    await world.create(resources.REPLICA_SETS, replica_set)
    owner["uid"] = world.stored(resources.REPLICA_SETS, "web")["metadata"]["uid"]
    usages = []
    for i in range(4):
        pod = objects.a_pod(f"web-{i}", node="n0", owner=owner, labels={"app": "web"})
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        await world.create(resources.PODS, pod)
        usages.append(objects.a_pod_metric(f"web-{i}", cpu="2", memory="1Gi"))
    for i in range(3):
        metric = objects.a_node_metric(
            f"n{i}",
            system={"cpu": "500m", "memory": "1Gi"},
            pods=usages if i == 0 else [],
            update_time=world.clock.now(),
        )
        await world.create(resources.NODE_METRICS, metric)
    async with world.descheduler(tmp_path, LOAD) as running:
        await world.until(lambda: running.rounds.last.plan)
        assert running.rounds.last.message == "moves 2 pods, spread 34 % → 9 %"
        counted = {one.kind: one.count for one in running.rounds.last.plan.counts if one.count}
        assert counted == {"high": 1, "bothLow": 2}
        found = await world.until(lambda: world.stored(resources.POD_MIGRATION_JOBS))
    notes = [job["metadata"]["annotations"] for job in found]
    assert {one[names.ANNOTATION_EVICT_TRIGGER] for one in notes} == {"LowNodeLoad"}
    assert {one[names.ANNOTATION_MIGRATION_TARGET] for one in notes} == {"n1", "n2"}
    assert {job["spec"]["mode"] for job in found} == {"ReservationFirst"}
