"""The reference lists all kinds, labels, settings, commands, values, metrics, events and codes."""

import importlib.util
import pathlib
import re
import typing

import pytest
import yaml

from agent.assembly import undo
from api import names
from api.koordinator import event_reasons, events
from api.kubernetes import crds
from cli import exit_codes
from cli import main as cli
from kube.controllers import recorder
from manager.reconcile import actions
from process.configuration import settings
from process.runtime import entry
from tests.docs import code_exits

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "deploy" / "site" / "reference.py"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(reference):
    return reference.pages()


def test_every_kind_has_a_section_with_its_fields(pages):
    for document in crds.documents().values():
        assert f"\n## {document['spec']['names']['kind']}\n" in pages["kinds"]
    for field in ("spec.owners[].labelSelector", "spec.min", "spec.probability"):
        assert f"| `{field}` |" in pages["kinds"]


def test_every_label_and_annotation_is_listed(pages):
    keys = {
        value
        for constant, value in vars(names).items()
        if constant.startswith(("LABEL_", "ANNOTATION_")) and isinstance(value, str)
    }
    assert len(keys) > 100
    assert {key for key in keys if f"| `{key}` |" not in pages["labels"]} == set()


def test_every_setting_of_every_process_is_listed_with_its_meaning(reference, pages):
    assert set(reference.PROCESSES) == set(cli.PROCESSES)
    for model in reference.PROCESSES.values():
        for one in settings.describe(model):
            assert f"| `{one.path}` |" in pages["settings"], one.path


def test_every_command_has_a_section(pages):
    for name in cli.COMMANDS:
        assert f"\n## koord {name}\n" in pages["commands"]


def test_the_values_of_the_chart_are_shown(pages):
    assert "agent:" in pages["chart"]


def test_every_metric_is_listed_with_type_labels_meaning_and_process(pages):
    row = re.compile(r"\| `[a-z_]+` \| (counter|gauge|histogram) \| [^|]* \| [^|]+ \| [^|]+ \|")
    rows = [line for line in pages["metrics"].splitlines() if line.startswith("| `")]
    assert len(rows) > 200
    assert [line for line in rows if not row.fullmatch(line.replace("\\|", ""))] == []


def test_metrics_under_calculated_names_are_listed_too(pages):
    names = ("koord_agent_network_bytes_total", "koord_quota_lent", "koord_reservation_unused")
    for name in (*names, "koord_extender_gangs", "koordlet_pod_psi", "process_open_fds"):
        assert f"| `{name}` |" in pages["metrics"]


def test_every_reason_that_the_type_checker_lets_through_is_listed(pages):
    assert typing.get_type_hints(recorder.EventRecorder.event)["reason"] == event_reasons.Reason
    assert typing.get_type_hints(actions.Tell)["reason"] == event_reasons.Reason
    reasons = typing.get_args(event_reasons.Reason)
    assert list(events.EVENTS) == list(reasons) == sorted(reasons)
    for reason in reasons:
        assert f"\n| `{reason}` | {events.EVENTS[reason].process} |" in pages["events"]


def test_every_listed_reason_is_one_that_the_code_posts():
    packages = ("agent", "descheduler", "extender", "manager", "domain/reservations")
    source = "".join(path.read_text() for one in packages for path in (ROOT / one).rglob("*.py"))
    assert [reason for reason in events.EVENTS if f'"{reason}"' not in source] == []


def test_every_command_and_process_says_its_exit_codes(pages):
    actions = {" ".join(words) for words in cli.ACTIONS}
    assert set(exit_codes.COMMANDS) == {*cli.COMMANDS, *actions}
    for name, codes in exit_codes.COMMANDS.items():
        for code, meaning in codes.items():
            assert f"| `koord {name}` | {code} | {meaning} |" in pages["exit-codes"]
    for name in cli.PROCESSES:
        assert f"`koord {name}`" in pages["exit-codes"]
    assert set(exit_codes.PROCESS) == {entry.OK, entry.FAILED, entry.BAD_SETTINGS, 128}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_returns_the_exit_codes_that_it_says(name):
    returned = code_exits.returned(f"cli.commands.{name}")
    assert set(exit_codes.COMMANDS[name]) == {*returned, entry.BAD_SETTINGS}


def test_what_is_done_once_returns_the_exit_codes_that_it_says():
    assert set(exit_codes.COMMANDS["agent undo"]) == {undo.OK, undo.FAILED, undo.REFUSED}
    returned = code_exits.returned("cli.commands.agent_scorecard")
    assert set(exit_codes.COMMANDS["agent scorecard"]) == {*returned, entry.BAD_SETTINGS}


def test_every_alert_has_a_section_with_what_to_do(pages):
    rules = yaml.safe_load((ROOT / "deploy" / "monitoring" / "rules.yaml").read_text())
    alerts = [one for group in rules["groups"] for one in group["rules"]]
    assert len(alerts) > 40
    for one in alerts:
        section = pages["alerts"].partition(f"\n## {one['alert']}\n")[2].partition("\n## ")[0]
        assert one["annotations"]["runbook"].rstrip() in section, one["alert"]
