"""Files of the agent's own folder as they must never be: cut, strange, gigantic, of the future."""

import json
import struct
import zlib
from array import array

import pytest

from agent.apply import audit_log, journal
from agent.host import files
from agent.store import checkpoints, peaks, time_series

GIB = 1 << 30
NOW = checkpoints.Moment(1.75e9, 5000.0, "boot")
BOOT = "boot"


def samples():
    found = time_series.Histories()
    for at in range(20):
        found.add(("node", "cpu"), 4900.0 + at, at / 7, 1800)
    return found


def gigantic(path):
    """A file that says it is huge and takes no space."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(8 * GIB)


def loaded(path):
    file, found = checkpoints.SampleFile(path), time_series.Histories()
    return file.load(found, NOW), file.problem


def test_killed_at_any_byte_of_a_checkpoint_the_one_before_is_there(tmp_path):
    path = tmp_path / "samples"
    data = checkpoints.pack(samples().kept(), NOW)
    files.replace(path, data)
    temporary = tmp_path / "samples.tmp"
    for length in range(len(data) + 1):
        temporary.write_bytes(data[:length])
        assert loaded(path) == (1, "")
    # Cut by a file system that loses what was not synced, it is refused as a whole.
    for length in range(len(data)):
        path.write_bytes(data[:length])
        found, problem = loaded(path)
        assert found == 0
        assert "begins afresh" in problem
    assert checkpoints.SampleFile(path).write(data)
    assert loaded(path) == (1, "")
    assert [one.name for one in tmp_path.iterdir()] == ["samples"]


def packed(head, series=()):
    parts = [head, *series]
    plain = b"".join(
        part if isinstance(part, bytes) else struct.pack("<I", len(part)) + part.encode()
        for part in parts
    )
    body = zlib.compress(plain)
    return b"koord-samples-1\n" + struct.pack("<II", len(body), zlib.crc32(body)) + body


HEAD = json.dumps({"wall": 1.75e9, "monotonic": 5000.0, "boot_id": BOOT})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a file of samples"),
        (b"koord-samples-2\n" + b"x" * 100, "not a file of samples of this version"),
        (packed("[]"), "begins afresh"),
        (packed('{"wall": "x"}'), "begins afresh"),
        (packed(HEAD, ['[["a"], 1, 4611686018427387904]']), "begins afresh"),
        (packed(HEAD, ['[["a"], 1, -5]']), "begins afresh"),
        (packed(HEAD, ['[["a"], NaN, 0]', '[["b"]]']), "begins afresh"),
        (packed(HEAD, ["[" * 5000]), "begins afresh"),
        (packed(json.dumps({"wall": 1e12, "monotonic": 0, "boot_id": ""})), "from the future"),
        (packed('{"wall": NaN, "monotonic": 0, "boot_id": ""}'), "from the future"),
    ],
    ids=[
        "empty", "another version", "no head", "no time", "more than there can be",
        "fewer than none", "half a series", "nested", "from the future", "of no time",
    ],
)  # fmt: skip
def test_samples_that_make_no_sense_are_named(tmp_path, data, said):
    path = tmp_path / "samples"
    path.write_bytes(data)
    found, problem = loaded(path)
    assert found == 0
    assert said in problem


def test_strange_samples_are_left_out(tmp_path):
    def series(name, times, values):
        columns = array("d", times).tobytes(), array("d", values).tobytes()
        return [json.dumps([[name], 100.0, len(times)]), *columns]

    nan, inf = float("nan"), float("inf")
    path = tmp_path / "samples"
    path.write_bytes(
        packed(
            HEAD,
            [
                *series("good", [4950.0, 4951.0], [1.0, 2.0]),
                *series("backwards", [4951.0, 4950.0], [1.0, 2.0]),
                *series("timeless", [nan, 4951.0], [1.0, 2.0]),
                *series("endless", [4950.0, 4951.0], [1.0, inf]),
            ],
        )
    )
    found = time_series.Histories()
    checkpoints.SampleFile(path).load(found, NOW)
    assert found.words() == [("good",)]


@pytest.mark.parametrize(
    "name", ["samples", "peaks/a", "journal.jsonl", "audit/audit-000000001.jsonl"]
)
def test_gigantic_files_are_named_and_not_read(tmp_path, name):
    gigantic(tmp_path / name)
    if name == "samples":
        found, problem = loaded(tmp_path / name)
        assert (found, "larger than" in problem) == (0, True)
    elif name == "peaks/a":
        models = checkpoints.ModelFiles(tmp_path / "peaks")
        assert models.load({"a"}, peaks.Rules()) == {}
        assert "larger than" in models.problem
    elif name == "journal.jsonl":
        with pytest.raises(journal.JournalError, match="larger than"):
            journal.Journal(tmp_path, BOOT).load()
    else:
        log = audit_log.AuditLog(tmp_path / "audit")
        log.append([{"number": 1}])
        assert log.page(10).events == ({"number": 1},)
        log.close()


def test_an_audit_of_the_future_ends_like_any_other(tmp_path):
    folder = tmp_path / "audit"
    folder.mkdir()
    (folder / "audit-999999999.jsonl").write_bytes(b"{}\n" * 100)
    log = audit_log.AuditLog(folder, most_bytes=200, most_files=3)
    for number in range(200):
        log.append([{"number": number}])
    log.close()
    assert log.problem is None
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 4 * 240
    assert log.page(1).events == ({"number": 199},)


@pytest.mark.parametrize(
    "damage",
    [b"\x00" * 100, b"{}\n" * 3, b"\xff" * 5000, b"[" * 100_000 + b"\n", b"\n" * 50],
    ids=["zeros", "no events", "no text", "nested", "empty lines"],
)
def test_a_damaged_audit_is_gone_on_with(tmp_path, damage):
    folder = tmp_path / "audit"
    folder.mkdir()
    (folder / "audit-000000001.jsonl").write_bytes(damage)
    log = audit_log.AuditLog(folder)
    log.append([{"number": 1}])
    log.close()
    assert log.page(1).events == ({"number": 1},)
    assert len(log.page(100).events) <= 4


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (b"", False),
        (b"null", False),
        (b"{", False),
        (b'{"UID": "b"}', False),
        (b"[" * 50_000, False),
        (b"\x00" * 64, False),
    ],
    ids=["empty", "null", "cut", "of another pod", "nested", "zeros"],
)
def test_a_strange_model_begins_afresh(tmp_path, text, known):
    (tmp_path / "a").write_bytes(text)
    models = checkpoints.ModelFiles(tmp_path)
    assert bool(models.load({"a"}, peaks.Rules())) is known
    assert "begins afresh" in models.problem
    assert not list(tmp_path.iterdir())


def test_what_a_kill_left_of_models_is_swept(tmp_path):
    for name in ("a.tmp", "b", "c.tmp"):
        (tmp_path / name).write_bytes(b"{")
    checkpoints.ModelFiles(tmp_path).load({"a"}, peaks.Rules())
    assert not list(tmp_path.iterdir())


def test_killed_at_any_byte_of_a_journal_replacement_the_one_before_is_there(tmp_path):
    kept = journal.Journal(tmp_path, BOOT)
    entry = journal.Entry(journal.edits.Role.CPUSET, "kubepods/x", "0-3", ("0-1",))
    kept.put(entry)
    kept.commit()
    data = (tmp_path / journal.NAME).read_bytes()
    for length in range(len(data) + 1):
        (tmp_path / journal.NAME).with_suffix(".tmp").write_bytes(data[:length])
        again = journal.Journal(tmp_path, BOOT)
        again.load()
        assert again.entries == (entry,)
