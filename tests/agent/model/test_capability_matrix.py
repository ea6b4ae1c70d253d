"""What a node can do, told from what it offers."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import settings
from agent.model import capability_matrix, edits

ALL = frozenset(role.value for role in edits.Role)
EVERYTHING = capability_matrix.Facts(
    kernel="6.1",
    version=2,
    driver="systemd",
    roles=ALL,
    pressure=True,
    core_scheduling=True,
    cache_division=True,
    host_pids=True,
    capabilities=frozenset(
        {
            capability_matrix.SYS_NICE,
            capability_matrix.SYS_PTRACE,
            capability_matrix.SYS_RESOURCE,
            capability_matrix.NET_ADMIN,
        }
    ),
)


def verdict(strategy, **changes):
    without = changes.pop("without", ())
    facts = msgspec.structs.replace(
        EVERYTHING, roles=ALL - {role.value for role in without}, **changes
    )
    (row,) = [row for row in capability_matrix.matrix(facts) if row.strategy == strategy]
    return row.verdict.value, row.how


def test_a_host_with_everything_does_everything():
    assert {row.verdict.value for row in capability_matrix.matrix(EVERYTHING)} == {"works"}


def test_every_strategy_of_the_settings_has_a_row():
    named = set(settings.Name.__args__)
    assert {row.strategy for row in capability_matrix.matrix(EVERYTHING)} == named


R = edits.Role
SYSTEM = frozenset(
    role.value
    for role in (
        *(R.VM_MIN_FREE_KBYTES, R.VM_WATERMARK_SCALE),
        *(R.MEMCG_REAP, R.PAGE_CACHE_LIMITS, R.SCHED_IDLE_SAVER),
    )
)


@pytest.mark.parametrize(
    ("strategy", "changes", "expected", "said"),
    [
        ("cpu-suppress", {"without": [R.CPUSET]}, "substitute", "no cpuset"),
        ("cpu-suppress", {"without": [R.CPUSET, R.CPU_QUOTA]}, "unavailable", "cpu-quota"),
        ("cpu-burst", {"without": [R.CPU_BURST]}, "substitute", "before 5.14"),
        ("group-identity", {"without": [R.CPU_IDENTITY]}, "substitute", "SCHED_IDLE"),
        (
            "group-identity",
            {"without": [R.CPU_IDENTITY], "host_pids": False},
            "unavailable",
            "hostPID",
        ),
        (
            "group-identity",
            {"without": [R.CPU_IDENTITY], "capabilities": frozenset()},
            "unavailable",
            "CAP_SYS_NICE",
        ),
        ("core-sched", {"core_scheduling": False}, "unavailable", "no core scheduling"),
        (
            "memory-qos",
            {"without": [R.MEMORY_WMARK_RATIO], "reclaim": True},
            "substitute",
            "memory.reclaim with",
        ),
        ("memory-qos", {"without": [R.MEMORY_WMARK_RATIO]}, "substitute", "high stands for"),
        (
            "memory-qos",
            {"without": [R.MEMORY_MIN], "version": 1},
            "unavailable",
            "memory-min on version 1",
        ),
        ("batch-resources", {"without": [R.MEMORY_LIMIT]}, "substitute", "cpu only"),
        ("block-io", {"without": [R.IO_WEIGHT]}, "substitute", "limits only"),
        ("cache", {"cache_division": False}, "unavailable", "resctrl"),
        ("system", {"without": [R.MEMCG_REAP]}, "substitute", "memcg-reap"),
        ("oom-score", {"capabilities": frozenset()}, "substitute", "CAP_SYS_RESOURCE"),
        ("memory-evict", {"pressure": False}, "substitute", "psi=1"),
        ("cpu-suppress", {"writable": False}, "unavailable", "cannot be written"),
        ("cpu-evict", {"writable": False}, "works", "by usage"),
        ("system", {"sealed": SYSTEM}, "unavailable", "sched-idle-saver cannot be written"),
        (
            "system",
            {"sealed": frozenset({R.VM_MIN_FREE_KBYTES.value})},
            "substitute",
            "by all settings; vm-min-free-kbytes cannot be written from here",
        ),
        (
            "cold-pages",
            {"sealed": frozenset({R.KIDLED_PERIOD.value, R.KIDLED_HIERARCHY.value})},
            "unavailable",
            "mounted read-only",
        ),
        ("cache", {"sealed": frozenset({R.RESCTRL_L3.value})}, "unavailable", "resctrl-l3 cannot"),
        ("cache", {"host_pids": False}, "unavailable", "hostPID"),
        ("core-sched", {"host_pids": False}, "unavailable", "hostPID"),
        ("oom-score", {"host_pids": False}, "unavailable", "hostPID"),
        ("oom-score", {"processes_writable": False}, "unavailable", "read-only"),
        ("terway-qos", {"sealed": frozenset({R.TERWAY_PODS.value})}, "unavailable", "terway-pods"),
        (
            "cpu-suppress",
            {"sealed": frozenset({R.CPUSET.value})},
            "substitute",
            "cpuset cannot be written",
        ),
        (
            "cpu-suppress",
            {"without": [R.CPU_QUOTA], "sealed": frozenset({R.CPUSET.value})},
            "unavailable",
            "cpuset cannot be written",
        ),
        ("cpu-evict", {"version": 0}, "unavailable", "no group of pods"),
    ],
)
def test_what_is_missing_is_named(strategy, changes, expected, said):
    found, how = verdict(strategy, **changes)
    assert found == expected
    assert said in how


SOME = st.frozensets(st.sampled_from(sorted(ALL)))


@given(SOME, SOME, st.integers(0, 2), st.booleans(), st.booleans())
def test_less_never_gives_more_and_what_is_published_is_read_back(
    roles, sealed, version, writable, host_pids
):
    order = ["unavailable", "substitute", "works"]
    facts = msgspec.structs.replace(
        EVERYTHING,
        roles=roles,
        sealed=sealed,
        version=version,
        writable=writable,
        host_pids=host_pids,
    )
    rows = capability_matrix.matrix(facts)
    for less, most in zip(rows, capability_matrix.matrix(EVERYTHING), strict=True):
        assert order.index(less.verdict.value) <= order.index(most.verdict.value)
        assert less.how
    assert set(capability_matrix.read(capability_matrix.published(rows))) == set(rows)


@pytest.mark.parametrize("text", ["[]", "1", '{"a": 1}', '{"a": {"verdict": "x"}}', "{"])
def test_an_annotation_that_is_no_table_is_refused(text):
    with pytest.raises(ValueError, match=r"table|not JSON|valid"):
        capability_matrix.read(text)
