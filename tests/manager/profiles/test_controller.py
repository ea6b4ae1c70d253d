"""Waiting pods that follow profiles."""

import pytest

from api import names, resources
from manager import settings


async def colocation_profile(world, *, managed=True, **spec):
    labels = {names.LABEL_CONTROLLER_MANAGED: "true"} if managed else {}
    resource = resources.COLOCATION_PROFILES
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "late", "labels": labels},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
    }
    await world.admin.create(resource, body)


async def pod(world, name, node="", **labels):
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x", **labels}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    if node:
        body["spec"]["nodeName"] = node
    await world.admin.create(resources.PODS, body, "default")


def labels(world, name):
    return world.stored(resources.PODS, name)["metadata"].get("labels", {})


ON = {"feature_gates": {"ColocationProfileController": True}}


@pytest.fixture
async def home(world):
    if not world.stored(resources.NAMESPACES, "default"):
        await world.admin.create(resources.NAMESPACES, {"metadata": {"name": "default"}})


@pytest.mark.usefixtures("home")
async def test_waiting_pods_follow_a_profile_that_came_later(world) -> None:
    await world.node("n1")
    await pod(world, "early")
    await pod(world, "placed", node="n1")
    await pod(world, "other", app="y")
    async with world.manager(**ON):
        await colocation_profile(world, labels={"late": "yes"}, labelSuffixes={"app": "-b"})
        await world.until(lambda: labels(world, "early").get("late") == "yes")
        await pod(world, "next")
        await world.pass_time(31)
        assert labels(world, "next")["late"] == "yes"
        assert "late" not in labels(world, "placed")
        assert "late" not in labels(world, "other")
        await world.pass_time(320)
        assert labels(world, "early")["app"] == "x-b"


@pytest.mark.usefixtures("home")
async def test_nothing_is_changed_unless_it_is_asked_for(world) -> None:
    await pod(world, "early")
    await colocation_profile(world, managed=False, labels={"late": "yes"})
    async with world.manager(**ON):
        await world.pass_time(31)
        assert "late" not in labels(world, "early")
    async with world.manager(**ON, controllers=("*", "-colocationprofile")):
        await world.pass_time(2)
    async with world.manager():
        await world.pass_time(2)
    assert "late" not in labels(world, "early")
    by_default = settings.ColocationProfileSettings(by_default=True)
    async with world.manager(**ON, colocation_profile=by_default):
        await world.until(lambda: labels(world, "early").get("late") == "yes")


@pytest.mark.usefixtures("home")
async def test_a_pod_that_may_not_be_changed_so_is_told_once(world) -> None:
    await pod(world, "early")
    await colocation_profile(
        world, patch={"spec": {"containers": [{"name": "c", "command": ["x"]}]}}
    )
    async with world.manager(**ON):
        await world.until(lambda: "PodNotChanged" in world.reasons("late"))
        await world.pass_time(61)
        assert world.reasons("late").count("PodNotChanged") == 1


@pytest.mark.usefixtures("home")
async def test_pods_are_changed_at_a_limited_pace(world) -> None:
    for number in range(5):
        await pod(world, f"p{number}")
    await colocation_profile(world, labels={"late": "yes"})
    pace = settings.ColocationProfileSettings(burst=2, per_second=0.01, interval_seconds=5)
    async with world.manager(**ON, colocation_profile=pace):
        changed = lambda: [n for n in range(5) if "late" in labels(world, f"p{n}")]  # noqa: E731
        await world.until(lambda: len(changed()) == 2)
        await world.pass_time(20)
        assert len(changed()) == 2


@pytest.mark.usefixtures("home")
async def test_a_pod_that_a_probability_left_out_is_left_out_for_good(world) -> None:
    names_of = [f"p{number}" for number in range(60)]
    for name in names_of:
        await pod(world, name)

    def changed():
        return {name for name in names_of if labels(world, name).get("late")}

    async with world.manager(**ON):
        await colocation_profile(world, labels={"late": "yes"}, probability="30%")
        await world.pass_time(31)
        first = changed()
        assert 5 < len(first) < 40
        await world.pass_time(640)
        assert changed() == first
    async with world.manager(**ON):
        await world.pass_time(62)
        assert changed() == first
