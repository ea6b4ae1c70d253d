"""The journal survives a crash at any byte, a full disk and its own growth."""

import contextlib
import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import edits
from agent.apply import journal

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


@settings(max_examples=60, deadline=None)
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
        (lambda data: journal.sealed({"version": 9, "bootId": "boot"}), "version 9"),
        (
            lambda data: (
                journal.sealed({"version": journal.VERSION, "bootId": "boot"})
                + journal.sealed({"put": [["no-such-role", "g", "1"]], "drop": []})
            ),
            "no-such-role",
        ),
    ],
    ids=["empty", "another file", "noise", "a flipped byte", "no header", "newer", "newer role"],
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
