"""Troubleshooting: every command, metric and event that the page names exists."""

import pathlib
import re
import shlex

import pytest

from api.koordinator import events
from cli import main
from deploy.site import code_metrics

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
NAMED = re.findall(r"`([^`]+)`", PAGE)


def test_every_metric_exists():
    named = {one for one in NAMED if one.startswith("koord_")}
    assert named
    assert named - {one.name for one in code_metrics.found()} == set()


@pytest.mark.parametrize("command", sorted({one for one in NAMED if one.startswith("koord ")}))
def test_every_command_is_understood(command):
    _, *words = shlex.split(command)
    main.parser_of_all().parse_args(words)


def test_every_event_exists():
    named = set(re.findall(r"event\s+`(\w+)`|^- `(\w+)`:", PAGE, re.M))
    reasons = {one or other for one, other in named}
    assert len(reasons) > 10
    assert reasons - events.EVENTS.keys() == set()
