"""Profiles after the fact: pods that wait follow one, and a quota follows the nodes of one."""

import contextlib

import pytest_asyncio

from api import names, resources
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from manager import app as manager_app
from manager import settings as manager_settings
from process.runtime import clock as clocks

PATIENCE = 60.0
GPU = {"profile-pool": "gpu"}


@pytest_asyncio.fixture(loop_scope="session")
async def access(plane):
    """How the manager reaches an API server that knows our kinds."""
    found = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    clock = clocks.SystemClock()
    async with clients.Client(found, clock=clock, user_agent="admin") as kube:
        await apply.definitions(kube, clock)
    return found


@contextlib.asynccontextmanager
async def managing(here, access, *controllers):
    chosen = manager_settings.Settings(
        config_namespace=here.namespace,
        controllers=controllers,
        feature_gates={"ColocationProfileController": True},
        leader_election=manager_settings.LeaderElectionSettings(enabled=False),
        health=manager_settings.HealthSettings(host="127.0.0.1", port=0),
    )
    async with manager_app.running(chosen, access=access, clock=clocks.SystemClock()) as running:
        yield running


async def test_a_waiting_pod_follows_a_profile_and_a_placed_one_does_not(here, access):
    node = await here.node("n1")
    await here.pod("waits", labels={"app": "x"})
    await here.pod("placed", labels={"app": "x"}, nodeName=node)
    resource = resources.COLOCATION_PROFILES
    profile = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": here.name("late"), "labels": {names.LABEL_CONTROLLER_MANAGED: "true"}},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": here.namespace}},
            "labels": {"late": "yes"},
            "labelSuffixes": {"app": "-b"},
        },
    }
    await here.api.post(resource.path(), profile)
    try:
        async with managing(here, access, "colocationprofile"):
            pod = await here.wait(
                "waits", lambda pod: "late" in pod["metadata"]["labels"], PATIENCE
            )
        assert pod["metadata"]["labels"]["app"] == "x-b"
        assert pod["spec"]["schedulerName"] == "default-scheduler"
        placed = await here.api.get(here.path("pods", "placed"))
        assert placed["metadata"]["labels"] == {"app": "x"}
    finally:
        await here.api.delete(resource.path(name=here.name("late")))


async def test_a_root_quota_is_as_large_as_the_nodes_of_its_profile(here, access):
    await here.node("g1", labels=GPU, cpu="10", memory="100Gi")
    await here.node("g2", labels=GPU, cpu="5", memory="50Gi")
    await here.node("other", cpu="64")
    resource = resources.ELASTIC_QUOTA_PROFILES
    profile = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "gpu-quota-profile"},
        "spec": {
            "quotaName": "gpu-quota",
            "nodeSelector": {"matchLabels": GPU},
            "resourceRatio": "0.8",
        },
    }
    await here.api.post(resource.path(here.namespace), profile)
    path = resources.ELASTIC_QUOTAS.path(here.namespace, "gpu-quota")
    async with managing(here, access, "quotaprofile"):
        quota = await here.api.wait_until(path, bool, PATIENCE)
        # By hand: 0.8 of 15 cores and 150 GiB.
        assert quota["spec"]["min"] == {"cpu": "12", "memory": "120Gi"}
        named = await here.api.wait_until(
            resource.path(here.namespace, "gpu-quota-profile"),
            lambda found: names.LABEL_QUOTA_TREE in found["metadata"].get("labels", {}),
            PATIENCE,
        )
        tree = named["metadata"]["labels"][names.LABEL_QUOTA_TREE]
        assert quota["metadata"]["labels"][names.LABEL_QUOTA_TREE] == tree
        assert quota["metadata"]["labels"][names.LABEL_QUOTA_IS_ROOT] == "true"
        # What somebody else makes of it is set right.
        await here.api.patch(path, {"spec": {"min": {"cpu": "1"}}})
        await here.api.wait_until(path, lambda found: found["spec"]["min"]["cpu"] == "12", PATIENCE)
