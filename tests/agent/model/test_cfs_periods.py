"""Quotas of version 1 whose period is not 100 ms, as the kubelet's cpuCFSQuotaPeriod makes them."""

from pathlib import Path

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.host import files
from agent.model import cgroup_layout, cgroup_properties, edits
from agent.observe.cgroups import cgroup_files

R = edits.Role


@pytest.fixture
def arranged(tmp_path):
    made = cgroup_layout.Layout(str(tmp_path / "cgroup"), 1, "cgroupfs")
    for group in ("g", "g/c"):
        Path(made.folder(cgroup_layout.File.CPU_QUOTA, group)).mkdir(parents=True)
    return made


def put(arranged, quota, period, group="g"):
    Path(arranged.path(cgroup_layout.File.CPU_QUOTA, group)).write_text(f"{quota}\n")
    Path(arranged.path(cgroup_layout.File.CPU_PERIOD, group)).write_text(f"{period}\n")


def raw(arranged, group="g"):
    found = (cgroup_layout.File.CPU_QUOTA, cgroup_layout.File.CPU_PERIOD)
    return tuple(int(Path(arranged.path(file, group)).read_text()) for file in found)


def acting(arranged, tmp_path):
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    return executor.Executor(property_files.Knobs(arranged), kept, writing=True)


@pytest.mark.parametrize(
    ("quota", "period", "wanted", "expected"),
    [
        pytest.param(25_000, 50_000, "200000", 100_000, id="half"),
        pytest.param(5_000, 10_000, "200000", 20_000, id="a tenth"),
        pytest.param(400_000, 200_000, "50000", 100_000, id="double"),
        pytest.param(25_000, 50_000, "-1", -1, id="no limit"),
        pytest.param(-1, 50_000, "200000", 100_000, id="from none"),
        pytest.param(25_000, 50_000, "1000", 1_000, id="the least that the kernel takes"),
        pytest.param(50_000, 100_000, "200000", 200_000, id="as usual"),
    ],
)
def test_a_quota_is_written_for_the_period_of_its_group(
    arranged, tmp_path, quota, period, wanted, expected
):
    put(arranged, quota, period)
    doing, wish = acting(arranged, tmp_path), [edits.Edit(R.CPU_QUOTA, "g", wanted, "r")]
    doing.apply(wish, 0)
    assert raw(arranged) == (expected, period)
    # It stands, and nobody calls it another's.
    assert doing.apply(wish, 1).records == []
    assert doing.given_up == {}
    acting(arranged, tmp_path).put_back("stop")
    assert raw(arranged) == (quota, period)


def test_a_quota_that_is_right_already_is_not_written(arranged, tmp_path):
    put(arranged, 25_000, 50_000)
    outcome = acting(arranged, tmp_path).apply([edits.Edit(R.CPU_QUOTA, "g", "50000", "r")], 0)
    assert outcome.records == []
    assert raw(arranged) == (25_000, 50_000)


def test_the_group_above_is_widened_first_whatever_its_period(arranged, tmp_path, monkeypatch):
    put(arranged, 10_000, 10_000)
    put(arranged, 50_000, 100_000, "g/c")
    order, plain = [], files.write

    def noted(path, text):
        order.append((path.rpartition("/cpu/")[2].rpartition("/")[0], text))
        plain(path, text)

    monkeypatch.setattr(files, "write", noted)
    wish = [edits.Edit(R.CPU_QUOTA, group, "300000", "r") for group in ("g/c", "g")]
    acting(arranged, tmp_path).apply(wish, 0)
    assert order == [("g", "30000"), ("g/c", "300000")]


@pytest.mark.parametrize(
    ("quota", "period", "expected"),
    [(25_000, 50_000, 50_000), (5_000, 10_000, 50_000), (-1, 10_000, -1), (7_000, None, 7_000)],
)
def test_what_a_group_may_use_is_read_for_100_ms(arranged, quota, period, expected):
    put(arranged, quota, period or 0)
    if period is None:
        Path(arranged.path(cgroup_layout.File.CPU_PERIOD, "g")).unlink()
    kept = files.Kept()
    assert cgroup_files.Cgroups(arranged, kept).allowed_us("g") == expected
    kept.close()


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("25000 50000", "50000", True),
        ("25000 50000", "50000 100000", True),
        ("50000 50000", "50000", False),
        ("max 50000", "-1", True),
    ],
)
def test_rates_are_compared(one, other, equal):
    assert cgroup_properties.same(R.CPU_QUOTA, one, other) is equal
