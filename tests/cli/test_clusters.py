"""Which cluster is meant, and options that are called alike in every command."""

import argparse
import json
import re
from pathlib import Path

import pytest

from cli import clusters, endpoints, flag_aliases, main
from process.runtime import entry


def parsed(*words):
    parser = argparse.ArgumentParser()
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    return parser.parse_args(words)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which `koord dev` runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (tmp_path / ".dev").mkdir()
    (tmp_path / ".dev" / "kubeconfig").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "environ", "chosen", "told"),
    [
        pytest.param(["--kubeconfig=x"], {}, Path("x"), False, id="said on the command line"),
        pytest.param(["--kubeconfig=x"], {"KUBECONFIG": "y"}, Path("x"), False, id="said twice"),
        pytest.param([], {"KUBECONFIG": "y"}, None, False, id="said in the environment"),
        pytest.param([], {"KUBECONFIG": ""}, clusters.DEV_KUBECONFIG, True, id="said as nothing"),
        pytest.param([], {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None, False, id="in a pod"),
        pytest.param(["--context=c"], {}, None, False, id="a context of the usual file"),
        pytest.param([], {}, clusters.DEV_KUBECONFIG, True, id="nothing is said"),
    ],
)
def test_what_is_said_goes_before_a_development_run(
    folder, monkeypatch, capsys, words, environ, chosen, told
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert clusters.kubeconfig(parsed(*words)) == chosen
    said = capsys.readouterr().err
    assert (str(folder / ".dev" / "kubeconfig") in said) is told
    assert ("--kubeconfig or $KUBECONFIG names another cluster" in said) is told


def test_without_a_development_run_the_usual_file_is_meant(folder):
    (folder / ".dev" / "kubeconfig").unlink()
    assert clusters.kubeconfig(parsed()) is None


def test_an_older_name_of_an_option_works_and_says_the_present_one(capsys):
    assert parsed("--namespace", "here").koord_namespace == "here"
    assert "note: --namespace is called --koord-namespace now" in capsys.readouterr().err
    assert parsed("-o", "table").output == "text"


COMMANDS = (
    ("status",), ("top",), ("get", "quota"), ("doctor",), ("uninstall",), ("explain", "pod"),
    ("explain", "node"), ("agent", "scorecard"), ("render", "in-place"), ("version",),
    ("render", "crds"), ("render", "scheduler-config"), ("render", "dashboards"),
)  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_means_the_same_in_every_command(words, capsys):
    """-n is the namespace of what is meant, --koord-namespace our own, -o a format."""
    with pytest.raises(SystemExit):
        main.main([*words, "--help"])
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    if "-n " in told:
        meant = "what is listed" if "-A, " in told else "the pod"
        # From Python 3.13 on the value is named once.
        assert re.search(rf"-n(?: NAMESPACE)?, --namespace NAMESPACE namespace of {meant}", told)
    if "--output" in told:
        assert "table|wide|json|yaml|name|jsonpath=..." in told
    assert "--koord-namespace" in told or words[0] in ("version", "render")
    if words[0] == "render":
        assert "--to PATH" in told


def test_what_a_process_does_once_stands_in_its_help(capsys):
    assert main.main(["agent", "--help"]) == entry.OK
    told = capsys.readouterr().out
    for word, what in (("undo", "put back"), ("scorecard", "what the agents did")):
        assert re.search(rf"^  {word} +{what}", told, re.MULTILINE)
    assert main.main([]) == entry.BAD_SETTINGS
    assert "agent undo" in capsys.readouterr().out
    assert main.main(["manager", "--help"]) == entry.OK
    assert "Done once" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5.0), ("1m", 60.0), ("2", 2.0), ("0", None), ("0.5", 0.5)]
)
def test_a_request_may_be_given_less_time(text, seconds):
    assert parsed(f"--request-timeout={text}").request_timeout == seconds


@pytest.mark.parametrize(
    "word", ["--request-timeout=-1s", "--request-timeout=soon", "-o=xml", "-o=jsonpath={.a"]
)
def test_what_makes_no_sense_is_refused_by_its_option(word, capsys):
    with pytest.raises(SystemExit):
        parsed(word)
    assert f"argument {'-o' if word.startswith('-o') else '--request'}" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["version", "--version"])
def test_the_release_is_told(word, capsys):
    assert main.main([word]) == entry.OK
    assert re.match(r"koord \d+\.\d+\.\d+ \(Python 3", capsys.readouterr().out)
    assert main.main([word, "-o", "json"]) == entry.OK
    assert set(json.loads(capsys.readouterr().out)) == {"version", "python", "platform"}


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["--enable-leader-election"], ["--leaderElection.enabled=true"]),
        (["--enable-leader-election=false"], ["--leaderElection.enabled=false"]),
        (["--metrics-addr=:8081"], ["--health.host=0.0.0.0", "--health.port=8081"]),
        (["--metrics-addr", "[::1]:1"], ["--health.host=::1", "--health.port=1"]),
        (["--metrics-addr=10.0.0.1:2"], ["--health.host=10.0.0.1", "--health.port=2"]),
        (["--workers=3"], ["--workers=3"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_flags_of_existing_manifests_are_read_as_settings(words, read):
    found, notes = flag_aliases.translated("manager", words)
    assert found == read
    assert bool(notes) is (words != read)
    assert flag_aliases.translated("webhook", words) == (words, [])


def test_such_flags_reach_the_settings_of_the_manager(capsys):
    words = ["--enable-leader-election=false", "--metrics-addr=127.0.0.1:18081"]
    assert main.main(["manager", *words, "--print-settings"]) == entry.OK
    told = capsys.readouterr()
    assert "port: 18081" in told.out
    assert re.search(r"leaderElection:\n  enabled: false", told.out)
    assert "note: --metrics-addr is read as --health.host=127.0.0.1" in told.err
    # What cannot be a port is refused by the setting's own check.
    assert main.main(["manager", "--metrics-addr=nowhere"]) == entry.BAD_SETTINGS
    assert "health.port" in capsys.readouterr().err


class Listens:
    health_url = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("server", "found"),
    [
        pytest.param("https://127.0.0.1:1", True, id="of this API server"),
        pytest.param("https://127.0.0.1:2", False, id="of another one"),
    ],
)
def test_addresses_of_a_development_run_belong_to_its_api_server(tmp_path, server, found):
    endpoints.save(tmp_path, "https://127.0.0.1:1", [("manager", Listens())], {"n": Listens()})
    read = endpoints.load(tmp_path / "kubeconfig", server)
    assert read.processes == ({"manager": Listens.health_url} if found else {})
    assert read.agents == ({"n": Listens.health_url} if found else {})


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"processes": 7}', "[" * 5000])
def test_addresses_that_cannot_be_read_are_none(tmp_path, text, monkeypatch):
    (tmp_path / endpoints.FILE).write_text(text)
    assert endpoints.load(tmp_path / "kubeconfig", "") == endpoints.Endpoints()
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'kubeconfig'}:/other")
    assert endpoints.load(None, "x") == endpoints.Endpoints()
