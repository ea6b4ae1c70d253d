"""Quotas that follow groups of nodes."""

from api import names, resources

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
        version = world.stored(QUOTA, "gpu-quota")["metadata"]["resourceVersion"]
        await world.pass_time(30)
        assert world.stored(QUOTA, "gpu-quota")["metadata"]["resourceVersion"] == version


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
