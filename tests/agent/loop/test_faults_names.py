"""Cgroups whose names are no text: a program in a pod may make some, and they stop nothing."""

import os

import pytest

from agent.apply import enforcer
from agent.model import cgroup_layout, edits
from api import resources
from tests.agent import test_app
from tests.agent.assembly import test_nri

world = test_app.world
QOS_GROUP = "kubepods.slice/kubepods-besteffort.slice"


def make_odd(folder):
    """Make a cgroup inside another one, with the same files."""
    inside = folder / os.fsdecode(b"\xff\xfe")
    files = [one for one in folder.iterdir() if one.is_file()]
    inside.mkdir()
    for file in files:
        (inside / file.name).write_bytes(file.read_bytes())


async def test_a_pod_with_such_a_cgroup_is_confined_and_put_back(world, new_pod):
    world.create(resources.NODE_SLOS, {"spec": test_app.THRESHOLDS})
    world.add_pod(test_nri.batch(new_pod), 100)
    pod = world.tree.cgroup / QOS_GROUP / "kubepods-besteffort-podbatch.slice"
    make_odd(pod)
    async with world.agent(**test_nri.ENFORCING) as agent:
        await world.until_ticking(lambda: agent.ticks.enforcer.entries)
        await world.seconds(2)
        assert agent.ticks.problem is None
        assert (pod / "cpu.max").read_text().startswith("150000")
    assert (pod / "cpu.max").read_text().startswith("max")


@pytest.mark.parametrize("inside", [False, True], ids=["no other", "one more"])
def test_what_was_born_beside_such_a_cgroup_is_put_back(tmp_path, inside):
    """In version 1 a new cgroup begins with the cpus of the one above."""
    above = tmp_path / "cpuset" / QOS_GROUP
    above.mkdir(parents=True)
    files = [tmp_path / "cpuset/kubepods.slice/cpuset.cpus", above / "cpuset.cpus"]
    for file in files:
        file.write_text("0-7\n")
    arranged = cgroup_layout.Layout(str(tmp_path), 1, "systemd")
    acting = enforcer.Enforcer(tmp_path / "state", writing=True)
    acting.start(arranged, "boot")
    acting.apply([edits.Edit(edits.Role.CPUSET, QOS_GROUP, "0-3", "r")], 1.0)
    if inside:
        files.append(above / "podx/cpuset.cpus")
        files[-1].parent.mkdir()
        files[-1].write_text("0-3\n")
    make_odd(above)
    assert acting.put_back("stop").failures == 0
    assert {file.read_text().strip() for file in files} == {"0-7"}
    assert acting.entries == 0
