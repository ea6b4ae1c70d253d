"""What the pages, alerts and notes tell people to run exists and does what is said of it."""

import pathlib
import re

import pytest
import yaml

from cli import main
from cli.doctor.checkup import checks

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "deploy" / "helm" / "koord" / "templates" / "NOTES.txt",
    ROOT / "deploy" / "monitoring" / "rules.yaml",
]
COMMANDS = {*main.COMMANDS, *main.PROCESSES}
NAMED = re.compile(r"`koord ([a-z][a-z-]*)|^(?:\$ |\s*)koord ([a-z][a-z-]*)(?: |$)", re.MULTILINE)
TRAPS = {trap.name for check in checks.CHECKS for trap in check.traps}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    named = {first or second for first, second in NAMED.findall(text)}
    assert named <= COMMANDS, named - COMMANDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nobody_is_told_to_keep_the_defaults_of_an_old_chart(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"helm upgrade[^\n`]* --reuse-values", text)


def test_a_finding_that_an_alert_names_is_one_of_the_doctor():
    rules = yaml.safe_load((ROOT / "deploy" / "monitoring" / "rules.yaml").read_text())
    runbooks = {
        rule["alert"]: rule["annotations"]["runbook"]
        for group in rules["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    named = {
        alert: set(re.findall(r"`koord doctor[^`]*` names[^`]*\(`([a-z.-]+)`\)", text))
        for alert, text in runbooks.items()
    }
    assert named["KoordAgentsLate"] == {"agent.stale"}
    assert set().union(*named.values()) <= TRAPS


def test_the_order_of_an_upgrade_stands_on_one_page():
    pages = [
        page.name
        for page in PAGES
        if re.search(r"^1\. \*\*Definitions", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert pages == ["upgrade.md"]
