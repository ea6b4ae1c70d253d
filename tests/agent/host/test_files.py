"""Lists of the kernel are read to their end, which takes more than one read of a page."""

import contextlib
import os
from pathlib import Path

import pytest

from agent.host import files

PAGE = 4096
SMAPS = "/proc/self/smaps"
"""A seq_file of this very process that is several pages long."""


@pytest.fixture
def kept():
    found = files.Kept()
    yield found
    found.close()


def test_the_kernel_hands_out_such_a_list_page_by_page():
    descriptor = os.open(SMAPS, os.O_RDONLY)
    try:
        assert len(os.read(descriptor, 1 << 22)) <= PAGE
        assert os.read(descriptor, 1 << 22)
    finally:
        os.close(descriptor)


def test_a_list_is_read_to_its_end(kept):
    for read in (files.read, kept.read, kept.read):
        data = read(SMAPS, 1 << 22)
        assert len(data) > 2 * PAGE
        # The stack of the first thread is one of the last mappings.
        assert b"[stack]" in data


def test_a_list_that_is_longer_than_allowed_is_refused(kept):
    for read in (files.read, kept.read, kept.read):
        with pytest.raises(files.ReadingError, match="larger than 5000 bytes"):
            read(SMAPS, 5000)


def test_the_head_of_a_list_may_be_longer_than_a_page(kept):
    assert len(kept.read(SMAPS, 3 * PAGE, head=True)) == 3 * PAGE


@pytest.mark.parametrize("size", [0, 1, 3071, 3072, 4095, 4096, 65535, 65536, 65537, 200_000])
def test_files_of_every_size_are_read_whole(tmp_path, kept, size):
    path = tmp_path / "file"
    path.write_bytes(bytes(at % 251 for at in range(size)))
    for read in (files.read, kept.read, kept.read):
        assert read(str(path), 200_000) == path.read_bytes()
        if size:
            with pytest.raises(files.ReadingError):
                read(str(path), size - 1)


def test_the_kernel_lists_of_this_process_are_read_to_their_end():
    """Whatever this kernel shows of itself reads like plain buffered reading does."""
    for path in (
        "/proc/filesystems",
        "/proc/self/mountinfo",
        "/proc/self/net/dev",
        "/proc/modules",
    ):
        with contextlib.suppress(FileNotFoundError), Path(path).open("rb") as plain:
            assert files.read(path, 1 << 22).count(b"\n") == plain.read().count(b"\n")


def test_no_more_files_may_be_open(tmp_path, kept, soft_limit):
    for count in range(60):
        (tmp_path / f"{count}").write_text(str(count))
    used = len(list(Path("/proc/self/fd").iterdir()))
    with soft_limit(used + 40):
        for _ in range(2):
            for count in range(60):
                assert kept.read(str(tmp_path / f"{count}")) == str(count).encode()
        assert 0 < len(kept) <= 40
        assert kept.problem.startswith("Too many open files")
        # What others open for a moment finds room.
        assert files.read(str(tmp_path / "1")) == b"1"


def test_nothing_left_to_let_go_of_is_an_error(tmp_path, kept, soft_limit):
    (tmp_path / "file").write_text("1")
    with (
        soft_limit(3),
        pytest.raises(files.ReadingError, match="Too many open files"),
    ):
        kept.read(str(tmp_path / "file"))


def test_what_is_read_anew_is_kept_open_only_where_it_was(tmp_path, kept):
    known, other = tmp_path / "known", tmp_path / "other"
    for path in (known, other):
        path.write_text("1")
    kept.read(str(known))
    for text in ("2", "33"):
        for path in (known, other):
            path.write_text(text)
            assert kept.reread(str(path)) == text.encode()
    assert len(kept) == 1
