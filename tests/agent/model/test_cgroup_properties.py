"""Texts and values of properties, on both versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model import cgroup_layout, cgroup_properties, edits

R = edits.Role


@pytest.mark.parametrize(
    ("role", "value", "first", "second"),
    [
        (R.CPU_QUOTA, "-1", "-1", "max 100000"),
        (R.CPU_QUOTA, "5000", "5000", "5000 100000"),
        (R.CPU_SHARES, "1024", "1024", "39"),
        (R.MEMORY_LIMIT, "-1", "-1", "max"),
        (R.MEMORY_HIGH, str(cgroup_properties.UNLIMITED), str(cgroup_properties.UNLIMITED), "max"),
        (R.MEMORY_MIN, "4096", "4096", "4096"),
        (R.CPUSET, "0-3", "0-3", "0-3"),
    ],
)
def test_a_value_has_a_text_on_each_version(role, value, first, second):
    assert (cgroup_properties.render(role, value, 1), cgroup_properties.render(role, value, 2)) == (
        first,
        second,
    )


@pytest.mark.parametrize(
    ("role", "one", "other", "same"),
    [
        (R.CPUSET, "0,1", "0-1", True),
        (R.CPUSET, "0,x", "0-1", False),
        (R.CPU_QUOTA, "max 100000", "-1", True),
        (R.CPU_QUOTA, "5000 100000", "5000", True),
        (R.CPU_QUOTA, "5000 50000", "5000", False),
        (R.MEMORY_LIMIT, str(cgroup_properties.V1_UNLIMITED), "-1", True),
        (R.MEMORY_LIMIT, "max", "-1", True),
        (R.MEMORY_MIN, "0", "1", False),
        (R.CPU_IDENTITY, "-1", "-1", True),
        (R.IO_READ_BPS, "8:0 5\n8:16 0", "8:0 5", True),
        (R.RESCTRL_L3, "L3:0=00f;1=f", "L3:0=f;1=0f;", True),
        (R.RESCTRL_L3, "L3:0=1;1=f", "L3:0=f;1=f;", False),
        (R.CPU_IDLE, "", "0", False),
        (R.PROCESS_POLICY, "idle", "other", False),
    ],
)
def test_texts_that_mean_the_same(role, one, other, same):
    assert cgroup_properties.same(role, one, other) is same


def test_every_file_of_a_role_is_in_the_layout():
    for version in (1, 2):
        arranged = cgroup_layout.Layout("/cg", version, "systemd", terway="/qos")
        paths = {arranged.path(file, "g") for file in cgroup_properties.FILES.values()}
        assert all(path.startswith("/") for path in paths)
    assert cgroup_layout.Layout("/cg", 2, "systemd").path(cgroup_layout.File.SCHED_CORE, "") == (
        "/proc/sys/kernel/sched_core"
    )
    resctrl = cgroup_layout.Layout("/cg", 1, "systemd", sys="/s")
    assert resctrl.path(cgroup_layout.File.RESCTRL_SCHEMATA, "BE") == "/s/fs/resctrl/BE/schemata"


def test_values_that_no_kernel_takes_are_left_out():
    wanted = {R.MEMORY_PRIORITY: 13, R.MEMORY_WMARK_MIN_ADJ: -25, R.MEMORY_OOM_GROUP: None}
    assert [edit.role for edit in cgroup_properties.numbers("g", wanted, "r")] == [
        R.MEMORY_WMARK_MIN_ADJ
    ]


@given(st.integers(-10, 10**7))
def test_shares_and_quotas_are_legal(milli):
    assert cgroup_properties.legal(R.CPU_SHARES, cgroup_properties.shares(milli))
    assert cgroup_properties.quota(milli) == -1 or cgroup_properties.quota(milli) >= 1000
    assert 1 <= cgroup_properties.weight(cgroup_properties.shares(milli)) <= 10_000


LONG = ",".join(str(cpu) for cpu in range(0, 1000, 2))
"""A list that is not remembered."""


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("0-1", "4", "0-1,4"),
        ("0-1", "1", None),
        ("", "1", None),
        ("0-1", "", None),
        ("0-1", "x", None),
        (LONG, "0", None),
        (LONG, "1001", f"{LONG},1001"),
    ],
)
def test_cpus_of_two_lists_together(one, other, found):
    for _ in range(2):
        assert cgroup_properties.both(one, other) == found


def test_long_lists_are_compared_as_well():
    backwards = ",".join(reversed(LONG.split(",")))
    assert cgroup_properties.same(R.CPUSET, LONG, backwards)
    assert not cgroup_properties.same(R.CPUSET, LONG, f"{LONG},1001")


@pytest.mark.parametrize(
    ("shares", "weight"), [(2, 1), (1024, 39), (262_143, 9_999), (262_144, 10_000)]
)
def test_the_least_and_the_most_shares_are_the_least_and_the_most_weight(shares, weight):
    assert cgroup_properties.weight(shares) == weight
