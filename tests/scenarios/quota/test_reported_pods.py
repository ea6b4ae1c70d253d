"""Each pod counts once, in the quota that it belongs to, for as long as it holds something."""

import pytest

from api import names

pytestmark = pytest.mark.timeout(120)
GATE = "example.com/wait"


def beside(teams, node):
    """The selector of a node of this test."""
    return {"nodeSelector": {names.LABEL_HOSTNAME: teams.here.name(node)}}


async def test_what_has_ended_or_lost_its_node_is_not_counted(teams, interlude):
    await teams.here.node("a", cpu="8")
    lost = await teams.here.node("b", cpu="8")
    team = await teams.quota("team", min={"cpu": 4}, max={"cpu": 4})
    for name in ("finished", "killed", "evicted"):
        await teams.pods(team, name, 1, **beside(teams, "a"))
    await teams.pods(team, "stranded", 1, **beside(teams, "b"))
    await teams.settled(**{team: 4})
    await teams.pods(team, "next", 4, **beside(teams, "a"))
    for number, (name, status) in enumerate(
        (
            ("finished-0", {"phase": "Succeeded"}),
            ("killed-0", {"phase": "Failed", "reason": "Evicted"}),
        ),
        start=1,
    ):
        await teams.api.patch(teams.here.path("pods", name, "status"), {"status": status})
        await started(teams, "next", number)
    await interlude("manager", "extender")
    await started(teams, "next", 2)
    eviction = {"metadata": {"name": "evicted-0"}}
    await teams.api.post(teams.here.path("pods", "evicted-0", "eviction"), eviction)
    await started(teams, "next", 3)
    await teams.used(teams.path(team), cpu="4")
    await teams.api.delete(f"/api/v1/nodes/{lost}")
    teams.here.nodes.remove(lost)
    await started(teams, "next", 4)
    await teams.used(teams.path(team), cpu="4")


async def started(teams, prefix, count):
    """Wait until so many of four pods have a node, and see that no more have."""
    path = teams.here.path("pods")

    def having(pods):
        return [
            pod["metadata"]["name"]
            for pod in pods["items"]
            if pod["metadata"]["name"].startswith(prefix) and pod["spec"].get("nodeName")
        ]

    await teams.agree(lambda: teams.api.get(path), lambda found: len(having(found)) == count)


async def test_a_pod_and_a_quota_that_move_are_counted_once(teams, interlude):
    await teams.here.node("a", cpu="16")
    parents = [
        await teams.parent(name, min={"cpu": 4}, max={"cpu": 8}) for name in ("upper", "nether")
    ]
    below = {names.LABEL_QUOTA_PARENT: parents[0]}
    amounts = {"min": {"cpu": 2}, "max": {"cpu": 2}}
    old, new = [await teams.quota(name, labels=below, **amounts) for name in ("old", "new")]
    await teams.pods(old, "mover", 1)
    await teams.pods(old, "stays", 1)
    await teams.pods(new, "native", 1)
    await teams.settled(**{old: 2, new: 1})
    await teams.pods(old, "heir", 1)
    await teams.waits("heir-0", "Insufficient quotas")
    await teams.relabel(teams.here.path("pods", "mover-0"), name=new)
    await interlude("manager", "extender")
    await teams.settled(**{old: 2, new: 2})
    await teams.used(teams.path(parents[0]), cpu="4")
    await teams.pods(new, "excess", 1)
    await teams.waits("excess-0", f"quotaName: {new}")
    await teams.relabel(teams.path(new), parent=parents[1])
    for parent in parents:
        await teams.used(teams.path(parent), cpu="2")
    await teams.settled(**{old: 2, new: 2})


async def test_pods_behind_gates_hold_nothing_and_those_that_leave_hold_it_to_the_end(
    teams, interlude
):
    await teams.here.node("a", cpu="8")
    team = await teams.quota("team", min={"cpu": 2}, max={"cpu": 2})
    await teams.pods(team, "held", 1, schedulingGates=[{"name": GATE}])
    await teams.pods(team, "runs", 2)
    await teams.settled(**{team: 2})
    body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
    kind = "application/strategic-merge-patch+json"
    await teams.api.patch(teams.here.path("pods", "held-0"), body, kind=kind)
    await teams.waits("held-0", "Insufficient quotas")
    await teams.pods(team, "given-up", 1)
    await teams.waits("given-up-0", "Insufficient quotas")
    await teams.api.delete(teams.here.path("pods", "runs-0"), gracePeriodSeconds="30")
    await interlude("manager", "extender")
    # It may still run: one is left that does not leave, and nobody takes the place of the other.
    await teams.settled(**{team: 1})
    await teams.used(teams.path(team), cpu="2")
    await teams.here.remove("given-up-0")
    await teams.here.remove("runs-0")
    await teams.here.bound("held-0", 60)
    await teams.settled(**{team: 2})
    await teams.used(teams.path(team), cpu="2")
