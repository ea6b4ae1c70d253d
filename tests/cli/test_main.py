"""One command with subcommands; the processes are among them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli import main
from process.runtime import entry


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


@pytest.mark.parametrize(
    "arguments",
    [("--nodes", "-1"), ("--cpus", "0"), ("--port", "65536"), ("--memory-gib", "much")],
    ids=lambda pair: pair[0],
)
def test_an_impossible_wish_is_refused_by_name(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["dev", *arguments])
    assert ended.value.code == 2
    option, value = arguments
    assert f"argument {option}: {value}: name a number from" in capsys.readouterr().err


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


def _python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_a_reader_that_has_seen_enough_is_no_error():
    code = "import sys; from cli import main; sys.exit(main.main(['render', 'crds']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "apiVersion: apiextensions.k8s.io/v1\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == entry.OK


def test_the_agent_does_not_pay_for_what_it_does_not_run():
    code = (
        "import sys; from cli import main; main.main(['agent', '--help']); "
        "print(*{'simulator', 'extender', 'numpy', 'rich', 'cryptography'} & set(sys.modules), "
        "file=sys.stderr)"
    )
    assert _python(code).stderr.strip() == ""


def koord(*words, **options):
    command = [sys.executable, "-m", "cli", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, **options)


def test_a_full_disk_is_said_in_one_line():
    with Path("/dev/full").open("w", encoding="ascii") as full:
        done = koord("render", "crds", stdout=full)
    assert done.returncode == entry.FAILED
    assert done.stderr == "koord: the output cannot be written: No space left on device\n"


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch):
    def interrupted(_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_run", interrupted)
    assert main.main(["doctor"]) == main.INTERRUPTED == 130


def test_flags_before_the_command_are_told_where_to_stand(capsys):
    assert main.main(["-n", "shop", "explain", "pod", "web"]) == entry.BAD_SETTINGS
    assert capsys.readouterr().err == (
        "koord: write flags behind the command, as in: koord explain -n NAME\n"
    )
