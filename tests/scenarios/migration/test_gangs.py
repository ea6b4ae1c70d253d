"""A gang that moves: every member has its place before the first leaves, and none stays alone."""

import pytest

from api import names

pytestmark = pytest.mark.timeout(120)


def gang(name, least):
    """The annotations of a gang of so many pods."""
    return {
        names.ANNOTATION_GANG_NAME: name,
        names.ANNOTATION_GANG_MIN_AVAILABLE: str(least),
    }


def together(name, size):
    """The annotations of its jobs."""
    return {
        names.ANNOTATION_MIGRATION_GROUP: name,
        names.ANNOTATION_MIGRATION_GROUP_SIZE: str(size),
    }


async def test_a_gang_moves_as_a_whole(moving):
    await moving.here.node("a", cpu="6")
    pods = await moving.deployment("train", 3, annotations=gang("train", 3))
    chosen = [await moving.here.node(name, cpu="2") for name in ("b", "c", "d")]
    for number, pod in enumerate(pods):
        await moving.move(f"j{number}", pod["metadata"]["name"], annotations=together("train", 3))
    new = await moving.running("train", 3, [pod["metadata"]["name"] for pod in pods])
    assert sorted(pod["spec"]["nodeName"] for pod in new) == chosen
    for number in range(3):
        await moving.ended(f"j{number}", "Succeeded")
    assert all(moving.used(pod) for pod in new)
    await moving.consistent()


async def test_a_gang_stays_where_one_member_has_no_other_place(moving):
    first = await moving.here.node("a", cpu="4")
    pods = await moving.deployment("train", 2, annotations=gang("train", 2))
    await moving.here.node("b", cpu="2")
    for number, pod in enumerate(pods):
        await moving.move(
            f"j{number}", pod["metadata"]["name"], annotations=together("train", 2), ttl="6s"
        )
    reasons = {(await moving.ended(f"j{n}", "Failed"))["reason"] for n in range(2)}
    assert reasons <= {"Timeout", "GroupFailed"}
    for number in range(2):
        await moving.nothing_is_kept(f"j{number}")
    same = await moving.pods("train")
    assert {pod["metadata"]["uid"] for pod in same} == {pod["metadata"]["uid"] for pod in pods}
    assert {pod["spec"]["nodeName"] for pod in same} == {first}


async def test_one_member_alone_does_not_leave_its_gang(moving):
    await moving.here.node("a", cpu="4")
    pods = await moving.deployment("train", 2, annotations=gang("train", 2))
    await moving.here.node("b", cpu="4")
    await moving.move("j", pods[0]["metadata"]["name"])
    found = await moving.job_until(
        "j", lambda one: one.get("status", {}).get("reason") == "WaitForArbitration"
    )
    assert "quorum" in found["status"]["message"]
    assert len(await moving.pods("train")) == 2
