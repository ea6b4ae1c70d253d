"""With several profiles each pod moves as the profile says that wants it to move."""

import pathlib

import pytest
import yaml

from api import names, resources
from tests import builders as objects

SHIPPED = pathlib.Path(__file__).parents[2] / "deploy/examples/koord-descheduler-config.yaml"
OF_HOT_SPOTS = {"defaultJobTTL": "20m", "defaultDeleteOptions": {"gracePeriodSeconds": 7}}
OF_FAILED_PODS = {"evictionPolicy": "Delete", "evictAllBarePods": True}


def shipped(*, reverse=False):
    """The example with more arguments; failed pods need not be a day old."""
    (text,) = yaml.safe_load(SHIPPED.read_text())["data"].values()
    found = yaml.safe_load(text)
    for profile, more in zip(found["profiles"], (OF_HOT_SPOTS, OF_FAILED_PODS), strict=True):
        for one in profile["pluginConfig"]:
            if one["name"] == "MigrationController":
                one["args"] |= more
            if one["name"] == "RemoveFailedPods":
                one["args"] = {"minPodLifetimeSeconds": 0}
    if reverse:
        found["profiles"].reverse()
    return yaml.safe_dump(found)


async def cluster(world, phase):
    """Two nodes, and a pod without an owner on one of them."""
    await world.create(resources.NODES, objects.a_node("n1"), objects.a_node("n2"))
    await world.create(resources.PODS, objects.a_pod("bare", node="n1", phase=phase))


@pytest.mark.parametrize("reverse", [False, True], ids=["as shipped", "in the other order"])
async def test_a_job_is_created_and_carried_out_as_its_profile_says(world, tmp_path, reverse):
    await cluster(world, "Failed")
    async with world.descheduler(tmp_path, shipped(reverse=reverse), finds_targets=False):
        (job,) = await world.until(lambda: world.stored(resources.POD_MIGRATION_JOBS))
        await world.pass_time(2)
    assert world.stored(resources.PODS, "bare") is None
    assert job["metadata"]["annotations"][names.ANNOTATION_MIGRATION_PROFILE] == "failed-pods"
    assert job["metadata"]["labels"] == {names.LABEL_EVICT_POLICY: "Delete"}
    assert {**job["spec"], "podRef": ""} == {"podRef": "", "mode": "EvictDirectly", "ttl": "5m0s"}


@pytest.mark.parametrize(
    ("profile", "moves"),
    [("", False), ("x" * 10_000, False), ("hot-spots", False), ("failed-pods", True)],
    ids=["none", "unknown", "another one", "one that allows it"],
)
async def test_a_job_that_a_person_creates_may_do_what_the_profile_may_that_it_names(
    world, tmp_path, profile, moves
):
    await cluster(world, "Running")
    notes = {names.ANNOTATION_MIGRATION_PROFILE: profile} if profile else {}
    spec = {"podRef": {"namespace": "default", "name": "bare"}}
    job = {"metadata": {"name": "j", "annotations": notes}, "spec": spec}
    await world.create(resources.POD_MIGRATION_JOBS, job)

    async with world.descheduler(tmp_path, shipped(), finds_targets=False):
        await world.pass_time(2)
    pod = world.stored(resources.PODS, "bare")
    status = world.stored(resources.POD_MIGRATION_JOBS, "j")["status"]
    assert ("deletionTimestamp" in pod["metadata"]) is moves
    assert (status["reason"] == "ForbiddenMigratePod") is not moves
