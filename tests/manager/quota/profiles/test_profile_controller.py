"""Quotas that follow groups of nodes."""

import json

from api import names, resources
from tests import builders

PROFILE, QUOTA = resources.ELASTIC_QUOTA_PROFILES, resources.ELASTIC_QUOTAS
GPU = {"accelerator": "gpu"}


def quota_profile(**spec):
    return {
        "apiVersion": PROFILE.api_version,
        "kind": PROFILE.kind,
        "metadata": {"name": "gpu-quota-profile"},
        "spec": {
            "quotaName": "gpu-quota",
            "nodeSelector": {"matchLabels": GPU},
            "resourceRatio": "0.8",
            **spec,
        },
    }


def least(world, name="gpu-quota"):
    found = world.stored(QUOTA, name)
    return found and found["spec"]["min"]


async def test_a_quota_follows_the_nodes_of_its_profile(world) -> None:
    await world.node("g1", cpu="10", memory="100Gi", labels=GPU)
    await world.node("n1")
    await world.admin.create(PROFILE, quota_profile(), "default")
    async with world.manager():
        await world.until(lambda: least(world) == {"cpu": "8", "memory": "80Gi"})
        tree = world.stored(QUOTA, "gpu-quota")["metadata"]["labels"][names.LABEL_QUOTA_TREE]
        profile = world.stored(PROFILE, "gpu-quota-profile")
        assert profile["metadata"]["labels"][names.LABEL_QUOTA_TREE] == tree
        await world.node("g2", cpu="10", memory="100Gi", labels=GPU)
        await world.pass_time(11)
        assert least(world) == {"cpu": "16", "memory": "160Gi"}
        stored = [world.stored(QUOTA, "gpu-quota"), world.stored(PROFILE, "gpu-quota-profile")]
        status = stored[1]["status"]
        assert (status["nodes"], status["guaranteed"]["cpu"]) == (2, "16")
        assert [one["status"] for one in status["conditions"]] == ["True"] * 3
        assert "QuotaKept" in world.reasons("gpu-quota-profile")
        await world.pass_time(30)
        assert stored == [
            world.stored(QUOTA, "gpu-quota"), world.stored(PROFILE, "gpu-quota-profile")
        ]  # fmt: skip


async def test_a_quota_that_somebody_changed_is_set_right_at_once(world) -> None:
    await world.node("g1", cpu="10", memory="100Gi", labels=GPU)
    await world.admin.create(PROFILE, quota_profile(), "default")
    async with world.manager():
        await world.until(lambda: least(world))
        change = {"spec": {"min": {"cpu": "1", "nvidia.com/gpu": "3"}}}
        await world.admin.patch(QUOTA, "gpu-quota", change, namespace="default")
        await world.until(lambda: least(world) == {"cpu": "8", "memory": "80Gi"})
        await world.admin.delete(PROFILE, "gpu-quota-profile", "default")
        await world.quiet()
        assert least(world)


async def test_a_quota_that_cannot_be_written_is_told(world) -> None:
    await world.node("g1", labels=GPU)
    await world.admin.create(PROFILE, quota_profile(quotaName="No_Such_Name"), "default")
    async with world.manager():
        await world.until(lambda: "CreateQuotaFailed" in world.reasons("gpu-quota-profile"))
        facts = world.stored(PROFILE, "gpu-quota-profile")["status"]["conditions"]
        assert {one["type"]: one["status"] for one in facts}["Ready"] == "False"


async def quota(world, name, cpu, **labels):
    prefix = "quota.scheduling.koordinator.sh/"
    metadata = {
        "name": name,
        "labels": {prefix + key.replace("_", "-"): value for key, value in labels.items()},
    }
    spec = {"min": {"cpu": cpu}, "max": {"cpu": "1000"}}
    body = {"apiVersion": QUOTA.api_version, "kind": QUOTA.kind, "metadata": metadata}
    await world.admin.create(QUOTA, {**body, "spec": spec}, "default")


def total(world, name):
    """Return what a quota that asks for everything may use."""
    notes = world.stored(QUOTA, name)["metadata"].get("annotations", {})
    return json.loads(notes.get(names.ANNOTATION_QUOTA_RUNTIME, "{}")).get("cpu")


async def greedy(world, quota):
    """Create a pod that asks for more than there is."""
    label = {names.LABEL_QUOTA_NAME: quota}
    raw = builders.a_pod(f"pod-of-{quota}", cpu="500", labels=label)
    await world.admin.create(resources.PODS, raw, "default")


async def test_the_tree_of_a_profile_shares_out_its_pool_and_no_other_tree_does(world) -> None:
    await world.node("g1", cpu="10", labels=GPU)
    await world.node("g2", cpu="10", labels=GPU)
    await world.node("n1", cpu="30")
    await world.admin.create(PROFILE, quota_profile(resourceRatio="0.8"), "default")
    await quota(world, "elsewhere", "1")
    await greedy(world, "elsewhere")
    async with world.manager():
        await world.until(lambda: least(world) and least(world)["cpu"] == "16")
        tree = world.stored(QUOTA, "gpu-quota")["metadata"]["labels"][names.LABEL_QUOTA_TREE]
        await quota(world, "team", "4", tree_id=tree, parent="gpu-quota")
        await greedy(world, "team")
        await world.pass_time(4)
        assert total(world, "team") == "16"
        assert total(world, "elsewhere") == "34", "all nodes, less what the other tree has"
        notes = world.stored(QUOTA, "gpu-quota")["metadata"]["annotations"]
        closed = json.loads(notes[names.ANNOTATION_QUOTA_UNSCHEDULABLE])
        assert closed["cpu"] == "16", "none of the nodes is ready"
        await world.admin.delete(resources.NODES, "g2")
        await world.pass_time(13)
        assert (total(world, "team"), total(world, "elsewhere")) == ("8", "32")
        await world.admin.delete(PROFILE, "gpu-quota-profile", "default")
        await world.admin.delete(QUOTA, "gpu-quota", "default")
        await world.pass_time(4)
        assert total(world, "elsewhere") == "40", "what a tree had goes back with its root"
