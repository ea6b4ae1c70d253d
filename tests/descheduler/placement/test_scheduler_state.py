"""The state on which targets are found is that of the extender, fed by watches of its own."""

import contextlib
import time

import pytest

from api import names, resources
from api.kubernetes import core
from api.wire import durations
from descheduler.framework import protocols
from descheduler.placement import scheduler_state
from descheduler.placement.settings import PlacementSettings
from extender import app
from extender.settings import Settings
from kube.client import access, client
from kube.informers import informer_set, pod_informer
from process.configuration import settings as configuration
from process.runtime import supervise
from simulator.apiserver import apiserver
from tests import loopback, patience
from tests.descheduler import builders
from tests.extender.clusters import device_cluster
from tests.planes import definitions

KINDS = {"NodeMetric", "NodeResourceTopology", "Device", "ElasticQuota", "Reservation", "PodGroup"}
ANYWHERE = {"port": 0, "linger_seconds": 0}


class Plane:
    """A control plane with an administrator."""

    def __init__(self, server, admin, clock):
        self.server, self.admin, self.clock = server, admin, clock

    @property
    def access(self):
        return access.Access(self.server.url, self.server.ca, access.StaticToken(self.server.token))

    async def until(self, what):
        return await patience.until(what, lambda: self.clock.advance(0.1))

    async def node(self, name, cpu="8", **more):
        metadata = {"name": name, **more}
        await self.admin.create(resources.NODES, {"metadata": metadata})
        amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts}
        await self.admin.patch(resources.NODES, name, {"status": status}, subresource="status")

    async def pod(self, name, node, cpu="2", **metadata):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        body = {
            "metadata": {"name": name, **metadata},
            "spec": {"nodeName": node, "containers": [container]},
        }
        made = await self.admin.create(resources.PODS, body, "default")
        scheduled = {"type": "PodScheduled", "status": "True" if node else "False"}
        scheduled["lastTransitionTime"] = made["metadata"]["creationTimestamp"]
        status = {"status": {"conditions": [scheduled]}}
        await self.admin.patch(
            resources.PODS, name, status, namespace="default", subresource="status"
        )
        return made

    async def report(self, node, cpu):
        await self.admin.create(resources.NODE_METRICS, {"metadata": {"name": node}, "spec": {}})
        usage = {"resources": {"cpu": cpu, "memory": "1Gi"}}
        status = {
            "updateTime": durations.moment(self.clock.now()),
            "nodeMetric": {"nodeUsage": usage, "systemUsage": usage},
        }
        await self.admin.patch(
            resources.NODE_METRICS, node, {"status": status}, subresource="status"
        )

    async def configure(self, name, data):
        body = {"metadata": {"name": name, "namespace": names.NAMESPACE}, "data": data}
        await self.admin.create(resources.CONFIG_MAPS, body, names.NAMESPACE)

    @contextlib.asynccontextmanager
    async def state(self, pods=None, namespace=names.NAMESPACE, **chosen):
        """The state of a descheduler, complete."""
        async with (
            client.Client(self.access, clock=self.clock, user_agent="descheduler") as api,
            supervise.Supervisor("descheduler") as supervisor,
        ):
            given = None
            if pods is not None:
                members = informer_set.InformerSet(api, self.clock)
                shared = pod_informer.shared(members, core.Pod)
                given = scheduler_state.Pods(shared, members.synced)
                pods.append(shared)
            found = scheduler_state.SchedulerState(
                PlacementSettings(**chosen), api, self.clock, namespace, given
            )
            if given is not None:
                members.start(supervisor)
            assert found.health() is not None
            found.start(supervisor)
            await self.until(lambda: found.health() is None)
            yield found


@pytest.fixture
async def plane():
    clock = loopback.LoopbackClock(float(int(time.time())))
    async with apiserver.running(clock=clock) as server:
        who = access.Access(server.url, server.ca, access.StaticToken(server.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await definitions.store(server, admin, KINDS)
            await admin.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
            yield Plane(server, admin, clock)


def seen(raw):
    """A pod as the descheduler sees it."""
    meta = raw["metadata"]
    return builders.pod(meta["name"], raw["spec"]["nodeName"], cpu="2", uid=meta["uid"])


def targets(plane, fork):
    """Where pods without affinity to each other would be placed."""
    return fork.targets(builders.picture_of(now=plane.clock.now()))


async def test_it_is_what_the_extender_knows(plane):
    for number in range(3):
        await plane.node(f"n{number}")
    await plane.pod("a", "n0")
    await plane.pod("b", "n1", labels={names.LABEL_PRIORITY_CLASS: "koord-prod"})
    await plane.pod("waits", "", annotations={names.ANNOTATION_GANG_NAME: "team"})
    await plane.report("n2", "3")
    await plane.admin.create(resources.DEVICES, device_cluster.eight("n1"))
    rules = '{"enable":true,"cpuReclaimThresholdPercent":70}'
    await plane.configure(names.CONFIG_MAP_SLO, {"colocation-config": rules})
    chosen = Settings(server=ANYWHERE, health=ANYWHERE)
    async with (
        app.running(chosen, access=plane.access, clock=plane.clock) as extender,
        plane.state() as own,
        plane.state(pods=[]) as shared,
    ):
        await plane.until(lambda: extender.health.ready)
        wanted = extender.books.cluster.fingerprint()
        assert set(wanted) >= {"n0", "n1", "n2"}
        for one in (own, shared):
            found = one._deciding.cluster
            await plane.until(lambda found=found: found.fingerprint() == wanted)


async def test_a_fork_finds_targets_and_leaves_the_state_alone(plane):
    await plane.node("n0")
    await plane.node("n1")
    await plane.report("n1", "7.9")
    await plane.node("n2", "1")
    pod = seen(await plane.pod("a", "n0"))
    async with plane.state() as state:
        before = state._deciding.cluster.fingerprint()
        first = targets(plane, await state.forked())
        found = first.target(pod, None, ())
        assert isinstance(found, protocols.NoTarget)
        assert "1 Insufficient cpu" in found.reason
        await plane.node("n3")
        known = state._deciding.cluster.node
        await plane.until(lambda: known("n3") is not None and known("n3").allocatable)
        fork = await state.forked()
        after = targets(plane, fork)
        assert after.target(pod, None, ()).node == "n3"
        after.move(pod, "n3")
        assert isinstance(first.target(pod, None, ()), protocols.NoTarget)
        left = state._deciding.cluster.fingerprint()
        assert all(left[name] == before[name] for name in ("n0", "n1", "n2"))
        assert not list(fork.fragments)


async def test_plug_ins_follow_the_settings_of_the_extender_and_the_config_map(plane, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("plugins: {enabled: [BatchFit]}\n")
    await plane.node("n0")
    await plane.node("n1")
    await plane.report("n1", "7.9")
    pod = seen(await plane.pod("a", "n0"))
    async with plane.state(extender_settings=file) as state:
        assert isinstance(
            targets(plane, await state.forked()).target(pod, None, ()), protocols.Target
        )
        profile = (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "profiles: [{schedulerName: default-scheduler, plugins: {filter: {enabled: "
            "[{name: LoadAwareScheduling}]}}}]\n"
        )
        await plane.configure(names.CONFIG_MAP_SCHEDULER, {"scheduler-config.yaml": profile})
        await plane.until(lambda: "LoadAwareScheduling" in state._deciding.reload.plugins)
        assert isinstance(
            targets(plane, await state.forked()).target(pod, None, ()), protocols.NoTarget
        )


@pytest.mark.parametrize(
    ("home", "written", "finds"),
    [
        (names.NAMESPACE, None, False),
        ("default", None, True),
        ("default", "preemption: {mode: observe}\n", True),
        ("default", "namespace: elsewhere\n", False),
    ],
    ids=["another namespace", "its own", "its own, with settings", "the settings name another one"],
)
async def test_quota_holds_no_pod_of_the_namespace_in_which_koord_runs(
    plane, tmp_path, home, written, finds
):
    chosen = {}
    if written is not None:
        chosen["extender_settings"] = tmp_path / "settings.yaml"
        chosen["extender_settings"].write_text(written)
    for name in ("n0", "n1"):
        await plane.node(name)
    used_up = {"metadata": {"name": "team"}, "spec": {"min": {"cpu": "1"}, "max": {"cpu": "1"}}}
    await plane.admin.create(resources.ELASTIC_QUOTAS, used_up, "default")
    pod = seen(await plane.pod("a", "n0", labels={names.LABEL_QUOTA_NAME: "team"}))
    async with plane.state(namespace=home, **chosen) as state:
        found = targets(plane, await state.forked()).target(pod, None, ())
    assert isinstance(found, protocols.Target if finds else protocols.NoTarget)


def test_a_fault_in_the_settings_of_the_extender_is_named(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("plugins: {enable: [BatchFit]}\n")
    with pytest.raises(configuration.SettingsError, match=r"plugins\.enable"):
        scheduler_state._extender(file, names.NAMESPACE)
