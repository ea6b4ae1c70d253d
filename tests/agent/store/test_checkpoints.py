"""What is kept survives, what is damaged is named, and nothing grows without bound."""

import functools
import json
from concurrent import futures

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.store import checkpoints, peaks, time_series
from api.koordinator.metadata import qos
from tests import draws

NOW = checkpoints.Moment(1.75e9, 5000.0, "boot-1")
GIB = 1 << 30


def sampled(count=100, start=4900.0):
    samples = time_series.Histories()
    for second in range(count):
        samples.add(("node", "cpu"), start + second, second / 7, 1800)
        samples.add(("pod", "uid-1", "memory"), start + second, 1e9 + second, 300)
    return samples


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def after(seconds, boot="boot-1", wall=None):
    return checkpoints.Moment(
        NOW.wall + (seconds if wall is None else wall), NOW.monotonic + seconds, boot
    )


def test_samples_survive_a_restart(tmp_path):
    file = checkpoints.SampleFile(tmp_path / "below" / "samples")
    before = sampled()
    assert file.write(checkpoints.pack(before.kept(), NOW))
    again = time_series.Histories()
    assert checkpoints.SampleFile(tmp_path / "below" / "samples").load(again, after(10)) == 2
    for key in (("node", "cpu"), ("pod", "uid-1", "memory")):
        assert list(again.get(key).window(0, 1e9)) == list(before.get(key).window(0, 1e9))
        assert again.get(key).newest == before.get(key).newest
    assert listed(tmp_path / "below") == ["samples"]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (after(10), 4999.0),
        (after(10, wall=-9999.0), 4999.0),
        (checkpoints.Moment(NOW.wall + 60, 30.0, "boot-2"), 30.0 - 61.0),
        (checkpoints.Moment(NOW.wall + 5000, 30.0, "boot-2"), None),
        (checkpoints.Moment(NOW.wall - 60, 30.0, "boot-2"), None),
        (checkpoints.Moment(NOW.wall - 60, 30.0, ""), None),
    ],
    ids=["same boot", "clock was set", "another boot", "long ago", "from the future", "no boot"],
)
def test_the_age_of_samples(tmp_path, now, expected):
    file = checkpoints.SampleFile(tmp_path / "samples")
    file.write(checkpoints.pack(sampled().kept(), NOW))
    again = time_series.Histories()
    file.load(again, now)
    newest = again.get(("node", "cpu"))
    assert (newest.newest[0] if newest else None) == expected


def test_no_file_is_no_problem(tmp_path):
    file = checkpoints.SampleFile(tmp_path / "samples")
    assert file.load(time_series.Histories(), NOW) == 0
    assert not file.problem


@settings(max_examples=draws.at_least(60))
@given(st.data())
def test_a_damaged_file_is_named_and_removed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "samples"
    whole = checkpoints.pack(sampled().kept(), NOW)
    position = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        damaged = whole[:position]
    else:
        flipped = whole[position] ^ data.draw(st.integers(1, 255))
        damaged = whole[:position] + bytes([flipped]) + whole[position + 1 :]
    path.write_bytes(damaged)
    file, samples = checkpoints.SampleFile(path), time_series.Histories()
    assert file.load(samples, after(1)) == 0
    assert len(samples) == 0
    assert "begins afresh" in file.problem
    assert not path.exists()
    assert file.write(whole)
    assert not file.problem


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "MOST_BYTES", 100)
    path = tmp_path / "samples"
    path.write_bytes(checkpoints.pack(sampled().kept(), NOW))
    file = checkpoints.SampleFile(path)
    assert file.load(time_series.Histories(), NOW) == 0
    assert "larger than" in file.problem


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    packed = checkpoints.pack(sampled().kept(), NOW)
    monkeypatch.setattr(checkpoints, "MOST_BYTES", 1000)
    with pytest.raises(checkpoints.CheckpointError, match="more than 1000 bytes"):
        checkpoints.unpack(packed)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    folder = tmp_path / "state"
    file = checkpoints.SampleFile(folder / "samples")
    file.write(b"old")
    (folder / "samples.tmp").mkdir()
    assert not file.write(b"new")
    assert "not written" in file.problem
    assert (folder / "samples").read_bytes() == b"old"


def trained(*uids):
    models = peaks.Models(peaks.Rules())
    for minute in range(3):
        used = {uid: (peaks.Sample(1.0, GIB), qos.Band.PROD) for uid in uids}
        models.train(peaks.Round(1.75e9 + 60 * minute, used, peaks.Sample(2.0, 2 * GIB)))
    return models


@pytest.mark.parametrize("kind", ["samples", "models"])
def test_a_write_at_the_end_waits_for_one_that_still_runs(tmp_path, kind):
    """An agent that stops writes once more, while a thread may still write what it was given."""
    if kind == "samples":
        file = checkpoints.SampleFile(tmp_path / "a")
        writes = [functools.partial(file.write, letter * 3_000_000) for letter in (b"x", b"y")]
    else:
        file = checkpoints.ModelFiles(tmp_path)
        bodies = [{"a": {"text": letter * 3_000_000}} for letter in "xy"]
        writes = [functools.partial(file.write, body, 0.0) for body in bodies]
    whole = set()
    for write in writes:
        write()
        whole.add((tmp_path / "a").read_bytes())
    with futures.ThreadPoolExecutor(2) as threads:
        for _ in range(30):
            futures.wait([threads.submit(write) for write in writes])
            assert file.problem == ""
            assert (tmp_path / "a").read_bytes() in whole


def test_models_survive_a_restart(tmp_path):
    files, models = checkpoints.ModelFiles(tmp_path), trained("a", "b")
    files.write(checkpoints.bodies(models, ["a", "b", peaks.NODE]), 0.0)
    found = checkpoints.ModelFiles(tmp_path).load({"a", peaks.NODE}, peaks.Rules())
    assert sorted(found) == [peaks.NODE, "a"]
    assert found["a"].peaks() == models.get("a").peaks()
    # What belongs to nobody any more is removed.
    assert listed(tmp_path) == [peaks.NODE, "a"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 50_000, "null", '{"UID": "b"}', "x" * 100_000],
    ids=["empty", "cut", "deep", "null", "another", "large"],
)
def test_a_damaged_model_begins_afresh(tmp_path, text):
    files = checkpoints.ModelFiles(tmp_path)
    files.write(checkpoints.bodies(trained("a", "b"), ["a", "b"]), 0.0)
    (tmp_path / "a").write_text(text)
    (tmp_path / "b.tmp").write_text("cut short")
    again = checkpoints.ModelFiles(tmp_path)
    assert list(again.load({"a", "b"}, peaks.Rules())) == ["b"]
    assert "begins afresh" in again.problem
    assert listed(tmp_path) == ["b"]


def test_few_models_are_written_at_a_time_and_each_seldom(tmp_path):
    files = checkpoints.ModelFiles(tmp_path)
    models = trained(*(f"uid-{number}" for number in range(20)))
    seen = []
    for minute in range(10):
        due = files.due(models, 60.0 * minute)
        assert len(due) <= checkpoints.MOST_PER_STEP
        files.write(due, 60.0 * minute)
        seen += due
    assert sorted(seen) == sorted(uid for uid, _ in models.items())
    assert set(files.due(models, 600.0)) == set(seen[:12])


def test_models_that_expired_leave_no_file(tmp_path):
    files = checkpoints.ModelFiles(tmp_path)
    files.write(checkpoints.bodies(trained("a"), ["a"]), 0.0)
    files.remove(["a", "never-there", "../escape"])
    assert listed(tmp_path) == []


def test_a_name_that_is_no_file_is_not_written():
    models = trained("../escape", "a/b", ".hidden", "ok")
    assert list(checkpoints.bodies(models, ["../escape", "a/b", ".hidden", "ok"])) == ["ok"]


def test_a_full_disk_is_named_and_asked_again_later(tmp_path):
    (tmp_path / "file").write_text("")
    files, models = checkpoints.ModelFiles(tmp_path / "file"), trained("a")
    due = files.due(models, 0.0)
    files.write(due, 0.0)
    assert "not written" in files.problem
    assert json.dumps(due)
