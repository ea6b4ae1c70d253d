"""The status of a ClusterColocationProfile, and the events that go with it."""

import pytest

from api import resources

KIND = resources.COLOCATION_PROFILES
CLASS = resources.PRIORITY_CLASSES
ONLY = {"controllers": ("profilestatus",)}


async def profile(world, name="batch", **spec):
    body = {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {"name": name}}
    await world.admin.create(KIND, {**body, "spec": spec})


async def priority_class(world, name, value):
    body = {"apiVersion": CLASS.api_version, "kind": CLASS.kind, "metadata": {"name": name}}
    await world.admin.create(CLASS, {**body, "value": value})


def said(world, name="batch"):
    """Return the reason of each condition that is not True, and how many there are."""
    found = world.stored(KIND, name).get("status", {}).get("conditions", ())
    return len(found), [one["reason"] for one in found if one["status"] != "True"]


async def test_it_says_whether_pods_are_let_in_and_follows_the_priority_class(world) -> None:
    async with world.manager(**ONLY):
        await profile(world, qosClass="BE", priorityClassName="koord-batch")
        await world.until(lambda: said(world) == (3, ["PriorityClassMissing"]))
        await priority_class(world, "koord-batch", 5500)
        await world.until(lambda: said(world) == (3, []))
        await world.admin.delete(CLASS, "koord-batch")
        await world.until(lambda: said(world) == (3, ["PriorityClassMissing"]))
        await priority_class(world, "koord-batch", 9500)
        await world.until(lambda: said(world) == (3, ["ClassesContradict"]))
        await world.quiet()
        told = world.reasons("batch")
        assert set(told) == {
            "ProfileAccepted", "ProfileEffective", "PriorityClassMissing", "PodsAdmitted",
            "ClassesContradict",
        }  # fmt: skip
        found = world.stored(KIND, "batch")
        assert found["metadata"]["generation"] == 1, "the status is a subresource"
        await world.pass_time(30)
        version = found["metadata"]["resourceVersion"]
        assert world.stored(KIND, "batch")["metadata"]["resourceVersion"] == version


async def test_a_profile_that_another_one_overrides_learns_of_it(world) -> None:
    async with world.manager(**ONLY):
        await profile(world, "a", selector={"matchLabels": {"app": "x"}}, qosClass="BE")
        await world.until(lambda: said(world, "a") == (3, []))
        await profile(world, "b", qosClass="LS")
        await world.until(lambda: said(world, "a") == (3, ["ProfileOverridden"]))
        assert said(world, "b") == (3, [])
        await world.admin.patch(KIND, "b", {"spec": {"selector": {"matchLabels": {"app": "y"}}}})
        await world.until(lambda: said(world, "a") == (3, []))
        await world.admin.patch(KIND, "a", {"spec": {"probability": 0}})
        await world.until(lambda: said(world, "a") == (3, ["ProfileWithoutEffect"]))
        await world.until(lambda: "ProfileOverridden" in world.reasons("a"))


@pytest.mark.parametrize(
    "spec",
    [{"labels": {"no key": "x"}}, {"patch": {"spec": {"containers": 3}}}],
    ids=["label", "patch"],
)
async def test_what_admission_cannot_apply_is_not_accepted(world, spec) -> None:
    async with world.manager(**ONLY):
        await profile(world, **spec)
        await world.until(lambda: said(world) == (1, ["ProfileInvalid"]))
        (condition,) = world.stored(KIND, "batch")["status"]["conditions"]
        assert f"spec.{next(iter(spec))}" in condition["message"]


async def test_it_may_be_switched_off(world) -> None:
    await profile(world)
    async with world.manager(controllers=("*", "-profilestatus")):
        await world.pass_time(2)
        assert said(world) == (0, [])
