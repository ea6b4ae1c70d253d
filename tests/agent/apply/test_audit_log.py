"""What was done is on disk, in bounded space, and can be read back page by page."""

import contextlib
import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.apply import audit_log
from tests import draws


def event(number):
    return {"number": number, "message": "x" * 50}


def numbers(page):
    return [event["number"] for event in page.events]


def everything(log, size):
    token, found = "", []
    while True:
        page = log.page(size, token)
        found += numbers(page)
        if not page.token:
            return found
        assert len(page.events) == size
        token = page.token


def fill(log, count, start=0):
    for number in range(start, start + count):
        log.append([event(number)])


@settings(max_examples=draws.at_least(40), deadline=None)
@given(
    count=st.integers(0, 60),
    size=st.integers(1, 25),
    most_bytes=st.sampled_from([100, 400, 10_000]),
)
def test_all_pages_together_are_all_events_newest_first(tmp_path_factory, count, size, most_bytes):
    log = audit_log.AuditLog(
        tmp_path_factory.mktemp("audit"), most_bytes=most_bytes, most_files=100
    )
    fill(log, count)
    assert everything(log, size) == list(range(count))[::-1]
    log.close()


def test_space_is_bounded_and_the_newest_stay(tmp_path):
    log = audit_log.AuditLog(tmp_path, most_bytes=1000, most_files=3)
    fill(log, 200)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert sum(file.stat().st_size for file in files) <= 3 * 1100
    found = everything(log, 7)
    assert found == list(range(200))[::-1][: len(found)]
    assert len(found) > 20
    log.close()


def test_a_page_that_is_read_while_more_is_written_does_not_move(tmp_path):
    log = audit_log.AuditLog(tmp_path)
    fill(log, 10)
    first = log.page(4)
    fill(log, 5, start=10)
    assert numbers(first) == [9, 8, 7, 6]
    assert numbers(log.page(4, first.token)) == [5, 4, 3, 2]
    log.close()


@pytest.mark.parametrize("token", ["x", "1", "1.", "-1.0", "1.2.3", "9" * 40])
def test_a_token_that_was_never_given_out_is_refused(tmp_path, token):
    log = audit_log.AuditLog(tmp_path)
    fill(log, 1)
    with pytest.raises(audit_log.TokenError, match="not one that was given out"):
        log.page(10, token)
    log.close()


def test_a_token_of_a_removed_file_is_refused(tmp_path):
    log = audit_log.AuditLog(tmp_path, most_bytes=200, most_files=2)
    fill(log, 3)
    token = log.page(1).token
    fill(log, 20)
    with pytest.raises(audit_log.TokenError, match="begin again"):
        log.page(1, token)
    log.close()


def test_the_next_run_goes_on_after_a_line_that_was_cut_off(tmp_path):
    log = audit_log.AuditLog(tmp_path)
    fill(log, 3)
    log.close()
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    again = audit_log.AuditLog(tmp_path)
    fill(again, 2, start=10)
    assert everything(again, 10) == [11, 10, 1, 0]
    again.close()


@contextlib.contextmanager
def disk_full_at(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_costs_events_and_is_named(tmp_path, caplog):
    log = audit_log.AuditLog(tmp_path)
    fill(log, 2)
    size = next(tmp_path.iterdir()).stat().st_size
    with disk_full_at(size + 10):
        fill(log, 3, start=2)
    assert "events of the audit are lost" in log.problem
    assert caplog.text.count("audit events lost") == 1
    fill(log, 1, start=9)
    assert log.problem is None
    assert everything(log, 10) == [9, 1, 0]
    log.close()


def test_an_empty_log_has_an_empty_page(tmp_path):
    assert audit_log.AuditLog(tmp_path / "nothing").page(10) == audit_log.Page((), "")
