"""A kubelet that is started anew with another cgroup driver: the agent follows."""

import shutil

import pytest

from agent.observe import observation
from agent.observe.cgroups import cgroup_files
from simulator.kubelet import nodefs
from tests.agent.loop import test_strategies_on_a_tree as on_a_tree

SLO = {
    "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 30},
}
PODS = {"online": ("Burstable", ["c-online"]), "batch": ("BestEffort", ["c-batch"])}


def slices(tree):
    tops = [tree.cgroup] if tree.version == 2 else list(tree.cgroup.iterdir())
    return [top / "kubepods.slice" for top in tops if (top / "kubepods.slice").exists()]


def plain(host):
    """Let the kubelet make its groups without systemd, on the same host."""
    old = host.tree
    made = nodefs.HostTree(old.cgroup.parent, 8, 16 * on_a_tree.GIB, old.version, "cgroupfs")
    made.add_pods(PODS)
    made.set_load("online", 2000, on_a_tree.GIB)
    made.set_load("batch", 4000, on_a_tree.GIB)
    host.tree = made
    return old


@pytest.mark.parametrize("left", ["gone", "empty"])
async def test_groups_that_lie_elsewhere_by_now_are_found_and_enforced(host, tmp_path, left):
    for uid, (kind, _) in PODS.items():
        host.add(uid, kind, 4000)
    world = on_a_tree.World(host, tmp_path / "state")
    world.enforce(**SLO)
    await world.seconds(15)
    old = plain(host)
    every = world.text("cpus", "kubepods/besteffort")
    for top in slices(old):
        for folder in sorted(top.rglob("*/"), reverse=True):
            # What a kubelet leaves behind has no pods.
            if left == "gone" or "pod" in folder.name:
                shutil.rmtree(folder, ignore_errors=True)
        if left == "gone":
            shutil.rmtree(top)
    await world.seconds(int(observation.LAYOUT_SECONDS) + 15)
    assert world.loop.layout.driver == "cgroupfs"
    assert world.loop.picture.problems == {}
    assert all(pod.usage.cpu is not None for pod in world.loop.picture.pods)
    group = world.loop.layout.qos_group("BestEffort")
    assert world.text("cpus", group) != every
    # Nothing of the groups that are gone is remembered, and the end puts the new ones back.
    assert all("slice" not in one.group for one in world.loop.enforcer.journal.entries)
    world.loop.enforcer.put_back("uninstall")
    assert world.text("cpus", group) == every


def test_while_they_stand_nothing_is_looked_for(host):
    host.step()
    arranged = host.observer.layout
    assert cgroup_files.stands(arranged)
    for _ in range(30):
        host.step()
    assert host.observer.layout is arranged


def test_a_node_that_lost_its_groups_says_so_and_finds_them_again(host):
    host.step()
    moved = [(top, top.with_name("away")) for top in slices(host.tree)]
    for here, away in moved:
        here.rename(away)
    host.at += observation.LAYOUT_SECONDS
    assert "no group of pods yet" in host.look().problems["cgroup"]
    for here, away in moved:
        away.rename(here)
    host.at += 1
    assert host.look().problems == {}
