"""A share of the cache for one pod, from its annotation to the end of the pod, on a stand-in."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from agent.apply import executor, journal
from agent.apply.properties import partial_properties, property_files
from agent.decide import catalogue, planner, windows
from agent.hooks import resctrl
from agent.host import files
from agent.model import cgroup_layout, edits, state, strategy_settings
from agent.store import time_series

KEY = "node.koordinator.sh/resctrl"
WISH = {"llc": {"schemata": {"range": [0, 50]}}, "mb": {"schemata": {"percent": 60}}}
GROUP = "koordlet-uid-a"
PIDS = {"a/app": 7, "a/pause": 8}


class Mounted:
    """A folder that behaves as resctrl does: groups have files, and threads move between them."""

    def __init__(self, root):
        self.root = root
        root.mkdir(parents=True)
        self.furnish(root)
        self.tasks(root).write_text("7\n8\n9\n")

    def furnish(self, group):
        (group / "schemata").write_text("    L3:0=fff;1=fff\n    MB:0=100;1=100\n")
        self.tasks(group).write_text("")

    def tasks(self, group):
        return group / "tasks"

    def make(self, group):
        (self.root / group).mkdir()
        self.furnish(self.root / group)

    def remove(self, group):
        # Its threads fall back to the root.
        left = self.tasks(self.root / group).read_text()
        shutil.rmtree(self.root / group)
        self.tasks(self.root).write_text(self.tasks(self.root).read_text() + left)

    def write(self, path, text):
        path = Path(path)
        if path.name == "tasks":
            for one in (self.root, *(p for p in self.root.iterdir() if p.is_dir())):
                kept = [
                    word for word in self.tasks(one).read_text().split() if word != text.strip()
                ]
                self.tasks(one).write_text("".join(f"{word}\n" for word in kept))
            path.write_text(path.read_text() + text)
            return
        name = text.partition(":")[0]
        lines = path.read_text().splitlines()
        path.write_text("".join(f"{text if f'{name}:' in line else f'{line}'}\n" for line in lines))


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    stand_in = Mounted(tmp_path / "sys/fs/resctrl")
    monkeypatch.setattr(files, "write", stand_in.write)

    def change(_, group, text):
        (stand_in.make if text == edits.PRESENT else stand_in.remove)(group)

    monkeypatch.setattr(partial_properties.ResctrlGroup, "write", change)
    return stand_in


class Kernel:
    """A kernel whose processes stay where they are."""

    def while_in(self, _group, _pid, act):
        act()


@pytest.fixture
def acting(tmp_path):
    arranged = cgroup_layout.Layout(
        str(tmp_path / "cgroup"),
        1,
        "cgroupfs",
        proc=str(tmp_path / "proc"),
        sys=str(tmp_path / "sys"),
    )
    for group, pid in PIDS.items():
        folder = Path(arranged.folder(cgroup_layout.File.PROCESSES, group))
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").write_text(f"{pid}\n")
        (tmp_path / f"proc/{pid}/task/{pid}").mkdir(parents=True)
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    return executor.Executor(property_files.Knobs(arranged, Kernel()), kept, writing=True)


@pytest.fixture
def planned():
    entries = catalogue.catalogue(windows.Windows(1.0), strategy_settings.Pressure())
    modes = {"cache": planner.Mode.ENFORCE}
    return planner.Planner([one for one in entries if one.name == "cache"], ["Resctrl"], modes)


def look(at, pods, groups=()):
    caches = state.Caches((0, 1), 0xFFF, resctrl.INTEL, dict(groups))
    picture = state.NodeState(at=1000 + at, pods=tuple(pods), caches=caches, settled=True)
    return catalogue.Look(picture, strategy_settings.Strategies(), time_series.Histories(), at)


def test_a_group_lives_as_long_as_its_pod(placed, mounted, acting, planned):
    mounted.make("koordlet-old")
    orphan = {"koordlet-old": 900.0}
    pod = placed(annotations={KEY: json.dumps(WISH)}, sandbox="a/pause")

    def tick(at, pods, groups=()):
        outcome = acting.apply(planned.step(look(at, pods, groups)).wanted, at)
        assert not outcome.failures, outcome.records
        return {(what, write.role) for what, write, _ in outcome.records}

    assert ("written", edits.Role.RESCTRL_GROUP) in tick(0, [pod], orphan)
    assert not (mounted.root / "koordlet-old").exists()
    schemata = (mounted.root / GROUP / "schemata").read_text()
    assert [line.strip() for line in schemata.splitlines() if line.strip()] == [
        "L3:0=3f;1=3f;",
        "MB:0=60;1=60;",
    ]
    assert sorted((mounted.root / GROUP / "tasks").read_text().split()) == ["7", "8"]
    # A process of the pod that came by another way is taken in.
    mounted.write(mounted.root / "tasks", "8\n")
    tick(2 * planner.REPEAT_SECONDS, [pod])
    assert sorted((mounted.root / GROUP / "tasks").read_text().split()) == ["7", "8"]
    # Another wish changes its lines.
    wish = {"llc": {"schemata": {"range": [50, 100]}}}
    other = placed(annotations={KEY: json.dumps(wish)}, sandbox="a/pause")
    tick(2 * planner.REPEAT_SECONDS + 1, [other])
    assert "L3:0=fc0;1=fc0;" in (mounted.root / GROUP / "schemata").read_text()
    assert ("put back", edits.Role.RESCTRL_GROUP) in tick(100, [])
    assert [one.name for one in mounted.root.iterdir() if one.is_dir()] == []
    assert sorted((mounted.root / "tasks").read_text().split()) == ["7", "8", "9"]
    # What somebody else had made and nobody needs does not come back.
    acting.put_back("stop")
    assert [one.name for one in mounted.root.iterdir() if one.is_dir()] == []


def test_it_ends_with_the_wish_as_well(placed, mounted, acting, planned):
    pod = placed(annotations={KEY: json.dumps(WISH)})
    acting.apply(planned.step(look(0, [pod])).wanted, 0)
    assert (mounted.root / GROUP).is_dir()
    plain = msgspec.structs.replace(pod, pod=placed().pod)
    acting.apply(planned.step(look(1, [plain], {GROUP: 1000.0})).wanted, 1)
    assert not (mounted.root / GROUP).exists()
