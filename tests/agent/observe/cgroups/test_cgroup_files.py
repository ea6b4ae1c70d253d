"""Numbers are found in the files of control groups however their lines stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.host import files
from agent.model import cgroup_layout
from agent.observe.cgroups import cgroup_files

KERNEL_ORDER = ("inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable")
VALUES = dict(zip(KERNEL_ORDER, (1, 20, 300, 4000, 50_000), strict=True))
GROUP = "kubepods/podx"
LAYOUTS = {
    version: cgroup_layout.Layout("/cg", version, "cgroupfs", hybrid=version == 1)
    for version in (1, 2)
}


class Told(files.Kept):
    """Files that hold what a test says, and how often they were read."""

    def __init__(self, data):
        super().__init__()
        self.data, self.reads = data, 0

    def read(self, path, limit=files.LIMIT, *, head=False):
        """Return what the file of any path holds."""
        self.reads += 1
        return self.data


@pytest.mark.parametrize("version", [1, 2])
@given(order=st.permutations(KERNEL_ORDER), before=st.booleans(), between=st.booleans())
def test_memory_in_any_order_of_lines(version, order, before, between):
    prefix = "total_" if version == 1 else ""
    lines = [f"{prefix}{name} {VALUES[name]}" for name in order]
    if between:
        lines.insert(3, "pgfault 7")
    if before:
        lines.insert(0, "anon 5")
    data = ("\n".join(lines) + "\n").encode()
    found = cgroup_files.Cgroups(LAYOUTS[version], Told(data)).memory(GROUP)
    assert found == cgroup_files.MemoryUse(50_021, 54_321)


@pytest.mark.parametrize("value", ["-1", "x", "", "9" * 21])
@pytest.mark.parametrize("name", KERNEL_ORDER)
def test_memory_that_is_no_number_is_named(name, value):
    lines = [f"{one} {value if one == name else 5}" for one in ("anon", *KERNEL_ORDER)]
    cgroups = cgroup_files.Cgroups(LAYOUTS[2], Told(("\n".join(lines) + "\n").encode()))
    with pytest.raises(files.ReadingError, match="is no number"):
        cgroups.memory(GROUP)


def test_the_file_that_tells_both_is_read_once():
    told = Told(
        b"usage_usec 2000000\nuser_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1\n"
    )
    cgroups = cgroup_files.Cgroups(LAYOUTS[2], told)
    assert (cgroups.cpu_seconds(GROUP), cgroups.throttled(GROUP), told.reads) == (2.0, (9, 4), 1)
    assert (cgroups.throttled("another"), told.reads) == ((9, 4), 2)


def test_what_limits_many_groups_is_named_by_group_where_it_is_none():
    cgroups = cgroup_files.Cgroups(LAYOUTS[2], Told(b"50000 0\n"))
    for group in ("kubepods/podx", "kubepods/pody"):
        assert cgroups.allowed_us(group) is None
        with pytest.raises(files.ReadingError, match=f"group {group}: a quota without a period"):
            cgroup_files.quota(b"50000 0\n", group)
    assert [cgroup_files.quota(text, GROUP) for text in (b"max 100000\n", b"5 10 ")] == [-1, 50_000]


def test_paths_of_groups_that_went_are_forgotten(placed):
    cgroups = cgroup_files.Cgroups(LAYOUTS[2], Told(b"max 100000\n"))
    stays = placed("stays")
    for tick in range(1000):
        cgroups.begin()
        assert cgroups.allowed_us(f"kubepods/pod{tick}") == cgroups.allowed_us(stays.group) == -1
        cgroups.forget([stays])
        assert len(cgroups._paths) < 100
