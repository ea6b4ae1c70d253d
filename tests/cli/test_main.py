"""One command with subcommands; the processes are among them."""

import json
import sys

import pytest

from cli import main
from process import entry


def test_without_a_command_it_shows_the_commands(capsys):
    assert main.main([]) == entry.BAD_SETTINGS
    shown = capsys.readouterr().out
    for command in ("dev", "status", "render", *main.PROCESSES):
        assert f"    {command}" in shown


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["destroy"])
    assert ended.value.code == 2
    assert "invalid choice: 'destroy'" in capsys.readouterr().err


@pytest.mark.parametrize("process", main.PROCESSES)
def test_every_process_lists_its_settings(process, capsys):
    assert main.main([process, "--help"]) == entry.OK
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: koord {process}")
    assert "--log.level" in shown


@pytest.mark.parametrize("process", main.PROCESSES)
def test_an_unknown_setting_of_a_process_is_named(process, capsys):
    assert main.main([process, "--colour=red"]) == entry.BAD_SETTINGS
    error = capsys.readouterr().err
    assert error.startswith(f"koord {process}: ")
    assert "colour" in error


def test_status_without_a_cluster_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main.main(["status"]) == entry.FAILED
    error = capsys.readouterr().err
    assert error.startswith("koord status: ")
    assert "kubeconfig" in error


def test_status_of_an_absent_server_names_it(tmp_path, capsys):
    file = tmp_path / "kubeconfig"
    cluster = {"server": "http://127.0.0.1:9"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(config))
    assert main.main(["status", "--kubeconfig", str(file)]) == entry.FAILED
    assert "127.0.0.1:9" in capsys.readouterr().err


def test_the_command_line_is_taken_where_no_arguments_are_given(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["koord", "agent", "--help"])
    assert main.main() == entry.OK
    assert "koord agent" in capsys.readouterr().out
