"""Progress on a terminal, and silence elsewhere."""

import io

import pytest

from cli.output import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_a_bar_that_is_gone_at_the_end(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with progress.bar(out) as step:
        step("pods\x1b[1m", 1, 2)
        step("nodes", 3, 2)
    shown = out.getvalue()
    assert "[############............] pods\\x1b[1m" in shown
    assert f"[{'#' * progress.WIDTH}] nodes" in shown
    assert shown.endswith("\r\x1b[2K")


@pytest.mark.parametrize(("out", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")])
def test_elsewhere_nothing_is_drawn(out, term, monkeypatch):
    monkeypatch.setenv("TERM", term)
    with progress.bar(out) as step:
        step("pods", 1, 2)
    assert out.getvalue() == ""
