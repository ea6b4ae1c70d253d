"""Troubleshooting and break glass: what the pages name exists, and nothing is left out."""

import json
import pathlib
import re
import shlex

import pytest

from api.koordinator import events
from cli import main
from cli.commands import switch
from deploy.site import code_metrics

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
GLASS = (pathlib.Path(__file__).parents[2] / "docs" / "break-glass.md").read_text()
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


def test_every_part_that_can_be_stopped_is_in_the_table_of_what_one_sees():
    table, _, rest = GLASS.partition("\n## ")
    titles = re.findall(r"^## (.+)$", f"## {rest}", re.M)
    anchors = {title.lower().replace(" ", "-") for title in titles}
    assert anchors - set(re.findall(r"\(#([\w-]+)\)", table)) == set()


def test_everything_at_once_is_every_switch():
    _, _, everything = GLASS.partition("## Everything at once")
    off, back = (
        json.loads(said)["data"] for said in re.findall(r"koord-switches .*-p '(.+)'", everything)
    )
    assert off == dict.fromkeys(switch.KNOWN, "off")
    assert back == dict.fromkeys(switch.KNOWN)
