"""In which order properties are written where the kernel ties those of one group to another's."""

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.model import cgroup_layout, edits

R = edits.Role
GROUPS = ("kubepods", "kubepods/pod", "kubepods/pod/c")


class Listed(property_files.Knobs):
    """Remembers what is written where."""

    def __init__(self, arranged):
        super().__init__(arranged)
        self.written = []

    def write(self, role, group, text):
        self.written.append((role, group))
        super().write(role, group, text)


@pytest.fixture
def handles(tmp_path):
    for group in ("", *GROUPS):
        folder = tmp_path / "cgroup" / group
        folder.mkdir()
        for name, text in (
            ("cpuset.cpus", "\n"),
            ("cpuset.cpus.effective", "0-3\n"),
            ("io.weight", "default 100\n"),
            ("io.cost.qos", ""),
        ):
            (folder / name).write_text(text)
    return Listed(cgroup_layout.Layout(str(tmp_path / "cgroup"), 2, "cgroupfs"))


def acting(handles, tmp_path):
    kept = journal.Journal(tmp_path / "state", "boot")
    return executor.Executor(handles, kept, writing=True)


def test_groups_inherit_cpus_again_from_the_top(handles, tmp_path):
    doing = acting(handles, tmp_path)
    doing.apply([edits.Edit(R.CPUSET, group, "0", "r") for group in reversed(GROUPS)], 0)
    handles.written.clear()
    doing.put_back("undo")
    assert handles.written == [(R.CPUSET, group) for group in GROUPS]


def test_a_disk_is_weighed_after_its_cost_is_counted_and_before_it_is_not_any_more(
    handles, tmp_path
):
    doing = acting(handles, tmp_path)
    wanted = [
        edits.Edit(R.IO_WEIGHT, "kubepods", "8:0 50", "r"),
        edits.Edit(R.IO_COST_QOS, "", "8:0 enable=1 ctrl=user", "r"),
    ]
    doing.apply(wanted, 0)
    assert [role for role, _ in handles.written] == [R.IO_COST_QOS, R.IO_WEIGHT]
    handles.written.clear()
    doing.put_back("undo")
    assert [role for role, _ in handles.written] == [R.IO_WEIGHT, R.IO_COST_QOS]
