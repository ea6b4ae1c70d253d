"""The journal survives a crash at any byte, a full disk and its own growth."""

import contextlib
import resource

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.apply import journal
from agent.model import edits
from tests import draws

CPUSET, QUOTA = edits.Role.CPUSET, edits.Role.CPU_QUOTA


def entry(group, *ours, previous="0-7"):
    return journal.Entry(CPUSET, group, previous, ours)


def again(folder, boot="boot"):
    kept = journal.Journal(folder, boot)
    kept.load()
    return kept


def test_a_commit_is_what_the_next_run_finds(tmp_path):
    kept = again(tmp_path)
    kept.put(entry("a", "0-1"))
    kept.put(entry("b", "0-1"))
    assert kept.commit()
    kept.drop(CPUSET, "a")
    kept.put(entry("b", "0-1", "0-2"))
    assert kept.commit()
    assert again(tmp_path).entries == (entry("b", "0-1", "0-2"),)


def test_what_need_not_be_safe_costs_no_write(tmp_path):
    kept = again(tmp_path)
    kept.put(entry("a", "0-1", "0-2"))
    assert kept.commit()
    kept.put(entry("a", "0-2"))
    assert not kept.commit()
    kept.put(entry("new"))
    kept.drop(CPUSET, "new")
    assert not kept.commit()


def test_values_of_another_boot_are_dropped(tmp_path):
    first = again(tmp_path, "one")
    first.put(entry("a"))
    first.commit()
    second = again(tmp_path, "two")
    assert len(second) == 0
    assert second.commit()
    assert len(again(tmp_path, "one")) == 0


@settings(max_examples=draws.at_least(60), deadline=None)
@given(data=st.data())
def test_cut_off_at_any_byte_everything_acknowledged_is_there(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("journal")
    path = folder / journal.NAME
    kept, acknowledged = again(folder), [frozenset()]
    sizes = [0]
    for number in range(data.draw(st.integers(1, 6))):
        kept.put(entry(f"g{number}", "0-1"))
        if number % 3 == 2:
            kept.drop(CPUSET, f"g{number - 1}")
        kept.commit()
        acknowledged.append(frozenset(kept.entries))
        sizes.append(path.stat().st_size)
    whole = path.read_bytes()
    # The first commit replaces the file as a whole: it is there or it is not.
    cut = data.draw(st.integers(sizes[1], len(whole)))
    rest = data.draw(st.sampled_from([b"", b"\0" * 7, b"garbage"]))
    path.write_bytes(whole[:cut] + rest)
    latest = max(number for number, size in enumerate(sizes) if size <= cut)
    found = again(folder)
    assert frozenset(found.entries) == acknowledged[latest]
    found.put(entry("after", "0"))
    found.commit()
    assert frozenset(again(folder).entries) == acknowledged[latest] | {entry("after", "0")}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "cannot be read"),
        (lambda data: b"{}\n", "line 1 is damaged"),
        (lambda data: b"\xff" * 40 + b"\n", "line 1 is damaged"),
        (lambda data: data.replace(b"0-1", b"0-3", 1), "line 2 is damaged"),
        (lambda data: data.split(b"\n", 1)[1], "cannot be read"),
    ],
    ids=["empty", "another file", "noise", "a flipped byte", "no header"],
)
def test_a_damaged_journal_is_named_and_stays(tmp_path, damage, message):
    kept = again(tmp_path)
    for number in range(3):
        kept.put(entry(f"g{number}", "0-1"))
        kept.commit()
    path = tmp_path / journal.NAME
    path.write_bytes(damaged := damage(path.read_bytes()))
    with pytest.raises(journal.JournalError, match=message):
        again(tmp_path)
    assert path.read_bytes() == damaged


def test_it_does_not_grow_beyond_its_entries(tmp_path):
    kept = again(tmp_path)
    for number in range(3000):
        kept.put(entry(f"group-{number % 5}", f"0-{number % 7}", f"0-{number % 6}"))
        kept.commit()
    assert (tmp_path / journal.NAME).stat().st_size <= journal.SMALL
    assert set(again(tmp_path).entries) == set(kept.entries)


@contextlib.contextmanager
def disk_full_at(size):
    """Let this process write files of no more than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_after_a_failed_append_nothing_is_written_behind_it(tmp_path):
    kept = again(tmp_path)
    kept.put(entry("a"))
    kept.commit()
    kept.put(entry("b"))
    size = (tmp_path / journal.NAME).stat().st_size
    with disk_full_at(size + 20), pytest.raises(journal.JournalError, match="free some space"):
        kept.commit()
    assert (tmp_path / journal.NAME).stat().st_size == size + 20
    assert again(tmp_path).entries == (entry("a"),)
    with disk_full_at(20), pytest.raises(journal.JournalError, match="free some space"):
        kept.commit()
    assert again(tmp_path).entries == (entry("a"),)
    assert kept.commit()
    assert again(tmp_path).entries == (entry("a"), entry("b"))


def newer(folder, *lines, boot="boot"):
    header = journal.sealed({"version": 9, "bootId": boot})
    (folder / journal.NAME).write_bytes(header + b"".join(map(journal.sealed, lines)))


def test_what_was_added_since_is_passed_over_by_an_older_agent(tmp_path):
    """The line of an entry is that of the first release; what is new stands beside it."""
    kept = again(tmp_path)
    kept.put(journal.Entry(QUOTA, "a", "400000", ("500000",), basis="400000", foreign=True))
    kept.commit()
    *_, line = (tmp_path / journal.NAME).read_bytes().splitlines()
    written = orjson.loads(line.partition(b" ")[2])
    assert written["put"] == [["cpu-quota", "a", "400000", "500000"]]
    assert again(tmp_path).entries == kept.entries


def test_a_journal_of_the_first_release_is_read(tmp_path):
    data = journal.sealed({"version": 2, "bootId": "boot"})
    data += journal.sealed({"put": [["cpuset", "a", "0-7", "0-1"]], "drop": []})
    (tmp_path / journal.NAME).write_bytes(data)
    assert again(tmp_path).entries == (entry("a", "0-1"),)


def test_what_a_newer_agent_added_is_kept_for_it(tmp_path):
    strange = ["cpu-something-new", "a", "1", "2"]
    newer(tmp_path, {"put": [["cpuset", "a", "0-7", "0-1"], strange], "drop": [], "more": {}})
    kept = again(tmp_path)
    assert kept.entries == (entry("a", "0-1"),)
    kept.put(entry("b", "0-1"))
    assert kept.commit()
    assert b"cpu-something-new" in (tmp_path / journal.NAME).read_bytes()
    assert set(again(tmp_path).entries) == {entry("a", "0-1"), entry("b", "0-1")}


@pytest.mark.parametrize(
    "line",
    [{"entries": []}, {"put": {"a": 1}, "drop": []}, {"put": [["cpuset", 1]], "drop": []}, []],
    ids=["other words", "other shape", "other types", "a list"],
)
def test_a_newer_journal_that_nobody_understands_blocks_no_writing(tmp_path, line):
    newer(tmp_path, {"put": [["cpuset", "a", "0-7", "0-1"]], "drop": []}, line)
    whole = (tmp_path / journal.NAME).read_bytes()
    kept = again(tmp_path)
    assert kept.entries == ()
    assert kept.aside == tmp_path / f"{journal.NAME}.version-9"
    assert kept.aside.read_bytes() == whole
    kept.put(entry("b", "0-1"))
    assert kept.commit()
    assert again(tmp_path).entries == (entry("b", "0-1"),)


def test_what_was_put_aside_is_taken_back_by_the_agent_that_knows_it(tmp_path):
    """The older agent took our value for that of the host; what was there before us is older."""
    first = again(tmp_path)
    first.put(entry("a", "0-1"))
    first.put(entry("c", "0-3"))
    first.commit()
    aside = tmp_path / f"{journal.NAME}.version-{journal.VERSION}"
    (tmp_path / journal.NAME).replace(aside)
    older = journal.Journal(tmp_path, "boot")
    older.put(entry("a", "0-2", previous="0-1"))
    older.commit()
    found = again(tmp_path)
    assert set(found.entries) == {entry("a", "0-1", "0-2"), entry("c", "0-3")}
    assert not aside.exists()
    assert set(again(tmp_path).entries) == set(found.entries)
