"""Production and jobs share nodes: production finds room, gangs start whole or not at all."""

from api import names, resources
from tests.planes import raw
from tests.planes.gangs import ganging


async def team(gangs, name, least, most, parent=""):
    """Create a quota of cores, and wait until the extender knows it; returns its name."""
    kind, name = resources.ELASTIC_QUOTAS, gangs.here.name(name)
    labels = {names.LABEL_QUOTA_PARENT: parent} if parent else {}
    amounts = [{"cpu": str(cores), "memory": "1Ti"} for cores in (least, most)]
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": gangs.here.namespace, "labels": labels},
        "spec": dict(zip(("min", "max"), amounts, strict=True)),
    }
    await gangs.api.post(kind.path(gangs.here.namespace), body)
    gangs.also(kind.path(gangs.here.namespace, name))

    async def known():
        return await gangs.system.knows(name)

    await raw.eventually(known, ganging.PATIENCE)
    return {names.LABEL_QUOTA_NAME: name}


async def test_production_preempts_jobs_of_low_priority_beside_a_gang_that_trains(gangs):
    here = gangs.here
    await here.node("a", cpu="8")
    spark, training = await team(gangs, "spark", 2, 4), await team(gangs, "training", 2, 4)
    async with here.priority(-10) as low, here.priority(100000) as high:
        for number in range(4):
            body = {"requests": {"cpu": "1"}, "labels": spark, "priorityClassName": low}
            await here.pod(f"spark-{number}", **body)
        await gangs.gang("training", 4, labels=training)
        await gangs.whole("training", 4)
        await gangs.whole("spark", 4)
        await here.pod("production-0", requests={"cpu": "2"}, priorityClassName=high)
        await gangs.whole("production", 1)
    assert len(await gangs.bound("training")) == 4
    await gangs.whole("spark", 2)
    # Teams stay within their quotas: a second gang of one waits whole, although there is room.
    await here.node("b", cpu="4")
    await gangs.gang("more", 2, labels=training)
    await gangs.waits("more", "quota")
    await gangs.never("more")
    await gangs.remove("training")
    await gangs.whole("more", 2)


async def test_production_with_a_reservation_and_a_pod_group_starts_and_development_shrinks(gangs):
    here = gangs.here
    await here.node("a", cpu="8")
    await _reserve(gangs, "4")
    async with here.priority(-10) as low, here.priority(100000) as high:
        # Development takes all that is left, and waits for more.
        for number in range(4):
            await here.pod(f"development-{number}", requests={"cpu": "1"}, priorityClassName=low)
        await gangs.whole("development", 4)
        await gangs.gang("later", 3, priorityClassName=low)
        await gangs.waits("later")
        await gangs.pod_group("production", 4)
        more = {"form": "PodGroup", "labels": {"app": "production"}, "priorityClassName": high}
        await gangs.gang("production", 4, **more)
        await gangs.whole("production", 4)
        assert len(await gangs.bound("development")) == 4, "production had reserved its cores"
        await here.pod("web-0", requests={"cpu": "2"}, priorityClassName=high)
        await gangs.whole("web", 1)
    await gangs.whole("development", 2)
    assert len(await gangs.bound("production")) == 4
    await gangs.never("later")


async def _reserve(gangs, cores):
    kind, name = resources.RESERVATIONS, gangs.here.name("production")
    spec = gangs.here.pod_body("any", requests={"cpu": cores})["spec"]
    metadata = {"namespace": gangs.here.namespace}
    owners = [{"labelSelector": {"matchLabels": {"app": "production"}}}]
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {
            "template": {"metadata": metadata, "spec": spec},
            "owners": owners,
            "allocateOnce": False,
        },
    }
    await gangs.api.post(kind.path(), body)
    gangs.also(kind.path(name=name))

    def is_available(found):
        return (found or {}).get("status", {}).get("phase") == "Available"

    await gangs.api.wait_until(kind.path(name=name), is_available, ganging.PATIENCE)
