"""The real kube-scheduler runs with the configurations that we ship, and with a merged one."""

import contextlib
import pathlib

import pytest
import pytest_asyncio
import yaml

from api import names, resources
from api.kubernetes import scheduler_config
from cli.install import apply, scheduler_merge
from extender import app as extenders
from extender import settings as extender_settings
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.scheduler import completed

SHIPPED = pathlib.Path(__file__).parents[3] / "deploy" / "scheduler"
PATIENCE = 60.0
KIND = {"apiVersion": scheduler_config.API_VERSION, "kind": scheduler_config.KIND}
PACKING = {
    "name": "NodeResourcesFit",
    "args": {
        "apiVersion": scheduler_config.API_VERSION,
        "kind": "NodeResourcesFitArgs",
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu", "weight": 1}],
            "requestedToCapacityRatio": {
                "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
            },
        },
    },
}
OWNED = {
    **KIND,
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "score": {
                    "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
                    "enabled": [{"name": "NodeResourcesFit", "weight": 4}],
                }
            },
            "pluginConfig": [PACKING],
        }
    ],
}


def shipped(mode):
    return yaml.safe_load((SHIPPED / f"{mode}.yaml").read_text())


def merged():
    return scheduler_merge.merge(OWNED, scheduler_config.Options("http://x"), beside=False).document


def calling(config, url):
    """The configuration with the extender at the address of a test, without TLS."""
    for entry in config["extenders"]:
        entry["urlPrefix"] = url
        for key in ("enableHTTPS", "tlsConfig"):
            entry.pop(key, None)
    return config


@pytest.fixture(scope="module")
def plane(real_plane):
    """The configurations are read by the real scheduler only."""
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def defined(real_plane):
    """Our custom resources, without which the extender is not ready."""
    clock = clocks.SystemClock()
    token = accesses.StaticToken(real_plane.token)
    access = accesses.Access(real_plane.server, real_plane.ca, token)
    async with clients.Client(access, clock=clock, user_agent="user") as client:
        await apply.definitions(client, clock)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ours(real_plane, defined):
    """Our extender, listening for the real scheduler."""
    local = {"host": "127.0.0.1", "port": 0, "linger_seconds": 0.0}
    settings = extender_settings.Settings.model_validate({"server": local, "health": local})
    token = accesses.StaticToken(real_plane.token)
    access = accesses.Access(real_plane.server, real_plane.ca, token)
    async with extenders.running(settings, access=access, clock=clocks.SystemClock()) as app:

        async def ready():
            return app.health.ready

        await raw.eventually(ready, PATIENCE)
        yield app


@contextlib.asynccontextmanager
async def scheduling(plane, api, config, token=""):
    """Run the scheduler, with its lease where the configuration wants one."""
    lease = config.get("leaderElection", {})
    namespace = lease.get("resourceNamespace", "kube-system")
    await api.call("POST", resources.NAMESPACES.path(), {"metadata": {"name": namespace}})
    path = resources.LEASES.path(namespace, lease.get("resourceName", "kube-scheduler"))
    # Whoever led in an earlier test is gone; its lease would have to run out first.
    await api.call("DELETE", path)
    await plane.binaries.start_scheduler(config, token=token)
    try:
        yield
    finally:
        await plane.stop_scheduler()
        await api.call("DELETE", path)


def called(app, verb):
    return app.registry.value("koord_extender_verb_seconds_count", {"verb": verb}) or 0


@pytest.mark.parametrize(
    ("before", "config"),
    [
        pytest.param(KIND, shipped("beside"), id="beside"),
        pytest.param(KIND, calling(shipped("in-place"), "http://x"), id="in place"),
        pytest.param(OWNED, merged(), id="merged"),
    ],
)
async def test_this_release_takes_the_file_and_every_weight_in_it(
    control_plane_binaries, tmp_path, before, config
):
    was = await completed.configuration(control_plane_binaries, tmp_path, before)
    now = await completed.configuration(control_plane_binaries, tmp_path, config)
    grown = {k: 10 * v for k, v in completed.weights(was["profiles"][0]).items()}
    for profile in now["profiles"]:
        # What has no weight of its own counts once, and is named to count ten times.
        unnamed = {"VolumeBinding": 10, "DynamicResources": 20}
        assert completed.weights(profile) == {**unnamed, **grown}
    if before is OWNED:
        arguments = [p["args"] for p in now["profiles"][0]["pluginConfig"]]
        assert PACKING["args"]["scoringStrategy"] in [a.get("scoringStrategy") for a in arguments]


@pytest.mark.since(1, 37, reason="the gate GenericWorkload is of this release")
async def test_native_pod_groups_are_off_by_default(real_plane, api):
    """Our own PodGroup is the only one until somebody turns the gate on."""
    group = await api.get("/apis/scheduling.k8s.io")
    served = [
        resource["name"]
        for version in group["versions"]
        for resource in (await api.get(f"/apis/{version['groupVersion']}"))["resources"]
    ]
    assert "priorityclasses" in served
    assert not [name for name in served if "podgroup" in name or "workload" in name]


@pytest.mark.parametrize(
    ("managed", "sentence"),
    [
        pytest.param([names.BATCH_CPU], "is an invalid extended resource name", id="batch"),
        pytest.param(["example.com/gpu"], "duplicate extender managed resource", id="twice"),
    ],
)
async def test_pods_cannot_be_selected_by_managed_resources(
    control_plane_binaries, tmp_path, managed, sentence
):
    config = shipped("beside")
    for entry in config["extenders"]:
        entry["managedResources"] = [{"name": name} for name in managed]
    with pytest.raises(completed.RefusedError, match=sentence):
        await completed.configuration(control_plane_binaries, tmp_path, config)


async def test_beside_serves_who_names_it_and_leaves_others_alone(plane, api, here, ours):
    await here.node("a")
    config = calling(shipped("beside"), ours.url)
    # The built-in account may not hold a lease elsewhere; an installation brings one that may.
    async with scheduling(plane, api, config, plane.token):
        await here.pod("theirs")
        await here.pod("mine", schedulerName="koord-scheduler")
        pod = await here.bound("mine", PATIENCE)
        assert names.PLACEMENT in pod["metadata"]["annotations"]
        lease = await api.get(resources.LEASES.path(names.NAMESPACE, "koord-scheduler"))
        assert lease["spec"]["holderIdentity"]
    theirs = await api.get(here.path("pods", "theirs"))
    assert "nodeName" not in theirs["spec"]
    assert theirs["status"].get("conditions", []) == []


async def test_in_place_serves_pods_that_name_nobody_and_those_of_manifests(plane, api, here, ours):
    await here.node("a")
    filtered = called(ours, "filter")
    async with scheduling(plane, api, calling(shipped("in-place"), ours.url)):
        await here.pod("ordinary")
        await here.pod("named", schedulerName="koord-scheduler")
        for name in ("ordinary", "named"):
            pod = await here.bound(name, PATIENCE)
            assert names.PLACEMENT in pod["metadata"]["annotations"]
    assert called(ours, "filter") >= filtered + 2


async def test_a_merged_configuration_still_packs(plane, api, here, ours):
    """The owner's arguments decide between nodes that the extender likes alike."""
    full = await here.node("full")
    await here.node("empty")
    await here.pod("first", requests={"cpu": "4", "memory": "1Gi"}, nodeName=full)
    async with scheduling(plane, api, calling(merged(), ours.url)):
        await here.pod("second")
        pod = await here.bound("second", PATIENCE)
    assert pod["spec"]["nodeName"] == full
    assert names.PLACEMENT in pod["metadata"]["annotations"]


def preferring(node, points):
    async def prioritize(body):
        return [{"Host": n, "Score": points if n == node else 0} for n in body["NodeNames"]]

    return prioritize


async def all_known(here, extender):
    """Wait until the scheduler knows all nodes; only then its choice means anything."""

    async def known():
        await here.pod("probe", requests={})
        await here.bound("probe", PATIENCE)
        asked = extender.of("filter", "probe")[-1].body["NodeNames"]
        await here.remove("probe")
        return set(here.nodes) <= set(asked)

    await raw.eventually(known, PATIENCE)


@pytest.mark.parametrize("points", [1, 100])
async def test_scores_weigh_as_documented(plane, api, here, weighed, points):
    """One point decides between equals; a hundred beat half a node of free space, not affinity."""
    liked, free = await here.node("liked"), await here.node("free")
    await here.pod("half", requests={"cpu": "4", "memory": "8Gi"}, nodeName=liked)
    await all_known(here, weighed)
    weighed.prioritize = preferring(liked, points)
    await here.pod("plain")
    pod = await here.bound("plain", PATIENCE)
    # LeastAllocated differs by 50 points of weight 10: 500 are more than 10 and less than 1000.
    assert pod["spec"]["nodeName"] == (liked if points == 100 else free)
    wish = {
        "weight": 1,
        "preference": {
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [free]}]
        },
    }
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    await here.pod("attached", affinity=affinity)
    # NodeAffinity has weight 20: 2000 points, twice as much as the extender can say.
    assert (await here.bound("attached", PATIENCE))["spec"]["nodeName"] == free


@pytest_asyncio.fixture(loop_scope="session")
async def weighed(plane, api, extender):
    """A scripted extender called by a scheduler with the shipped weights."""
    await plane.stop_scheduler()
    async with scheduling(plane, api, calling(shipped("in-place"), extender.url)):
        yield extender


@contextlib.asynccontextmanager
async def ranks(here):
    """Two priorities of this test."""
    async with here.priority(5000) as low, here.priority(5999) as high:
        yield {"low": low, "high": high}


@pytest.mark.parametrize("ignored", [False, True], ids=["as shipped", "ignored"])
async def test_batch_resources_are_counted_and_preempted_in_tree(plane, api, here, ours, ignored):
    """Whatever is to be ignored: kube-scheduler ignores extended resources only, and these are of
    its own domain."""
    await here.node("a", more={names.BATCH_CPU: "4000", names.BATCH_MEMORY: "8Gi"})
    config = calling(shipped("in-place"), ours.url)
    if ignored:
        arguments = {"ignoredResources": [*names.BATCH_RESOURCES]}
        config["profiles"][0]["pluginConfig"] = [{"name": "NodeResourcesFit", "args": arguments}]
    batch = {
        "requests": {names.BATCH_CPU: "4000", names.BATCH_MEMORY: "1Gi"},
        "labels": {"koordinator.sh/priority-class": names.PRIORITY_CLASS_BATCH},
    }
    async with ranks(here) as rank, scheduling(plane, api, config):
        await here.pod("low", priorityClassName=rank["low"], **batch)
        await here.bound("low", PATIENCE)
        await here.pod("equal", priorityClassName=rank["low"], **batch)
        await here.refused("equal", f"Insufficient {names.BATCH_CPU}", timeout=PATIENCE)
        await here.remove("equal")
        await here.pod("high", priorityClassName=rank["high"], **batch)
        await here.wait("low", lambda pod: pod is None, PATIENCE)
        await here.bound("high", PATIENCE)
