"""`koord dev` as people run it: one process, one signal, and nothing is left behind."""

import base64
import contextlib
import dataclasses
import json
import logging
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from cli import main
from cli.dev import run_folder
from process.runtime import entry
from simulator.processes import children

PATIENCE = 60.0
pytestmark = pytest.mark.timeout(120)
KOORD = (sys.executable, "-m", "cli")
# The last of the hints, which follow "ready after" in writes of their own.
HINTED = r"(?m)^ *stop +Ctrl-C here, or kill \d+$"


class Run:
    """A running `koord dev`."""

    def __init__(self, state, *flags):
        self.state = state
        self.out = state.parent / f"{state.name}.out"
        with self.out.open("w") as out:
            self.child = subprocess.Popen(
                [*KOORD, "dev", "--plain", "--state", str(state), *flags],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                # Nothing of ours runs any more when this run of the tests is killed.
                preexec_fn=children.die_with_parent,
            )

    @property
    def text(self):
        return self.out.read_text()

    @property
    def kubeconfig(self):
        return self.state / run_folder.KUBECONFIG

    def until(self, pattern):
        """Wait until the output matches; returns the match."""
        end = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.text)):
            assert self.child.poll() is None, self.text
            assert time.monotonic() < end, self.text
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(0.05)
        return found

    def children(self):
        """The processes below it."""
        path = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        return path.read_text().split()

    def stop(self, number):
        self.child.send_signal(number)
        return self.child.wait(PATIENCE)

    def get(self, path):
        """Read from the API server as the kubeconfig says, with nothing of ours."""
        config = json.loads(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        token = config["users"][0]["user"]["token"]
        pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        request = urllib.request.Request(
            cluster["server"] + path, headers={"Authorization": f"Bearer {token}"}
        )
        context = ssl.create_default_context(cadata=pem)
        with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:
            return json.load(answer)


@dataclasses.dataclass(frozen=True)
class Done:
    """What a command that has ended returned and wrote."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def koord(capsys):
    """Runs a command in this process: to start another one costs a second of imports each time.

    What the command changes for the whole of its process is put back.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def run(*arguments):
        code = main.main(arguments)
        return Done(code, *capsys.readouterr())

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What a run left that was killed when it was ready."""
    run = Run(tmp_path_factory.mktemp("dev") / "state", "--nodes", "0", "--no-workload")
    try:
        run.until(HINTED)
    finally:
        run.child.kill()
        run.child.wait()
    assert run.kubeconfig.exists()
    return run.state


@pytest.fixture(scope="module")
def running(killed):
    """One run for all tests that only look, in a folder with leftovers; Ctrl-C leaves nothing."""
    run = Run(killed, "--nodes", "2")
    try:
        run.until(HINTED)
        yield run
        leaves_nothing(run, signal.SIGINT)
    finally:
        if run.child.poll() is None:
            run.child.kill()
            run.child.wait()
        shutil.rmtree(run.state, ignore_errors=True)


def test_it_says_how_to_look_and_how_to_stop(running):
    for hint in (f"export KUBECONFIG={running.kubeconfig}", "kubectl get nodes", "/metrics"):
        assert hint in running.text
    assert f"kill {running.child.pid}" in running.text
    assert "Ctrl-C" in running.text


def test_the_kubeconfig_works_whatever_a_killed_run_left(running):
    nodes = {item["metadata"]["name"] for item in running.get("/api/v1/nodes")["items"]}
    assert nodes == {"sim-1", "sim-2", socket.gethostname().lower()}
    assert running.kubeconfig.stat().st_mode & 0o077 == 0


def test_kubectl_gets_what_it_was_told_to(running):
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    command = [kubectl, "--kubeconfig", running.kubeconfig, "get", "nodes,nodemetrics,nodeslos"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    for kind in ("node", "nodemetric.slo.koordinator.sh", "nodeslo.slo.koordinator.sh"):
        assert f"{kind}/sim-1" in done.stdout


def test_the_switches_are_there_to_be_patched_as_break_glass_says(running):
    kept = running.get("/api/v1/namespaces/koordinator-system/configmaps/koord-switches")
    assert not kept.get("data")


def test_every_process_shows_its_metrics(running):
    urls = re.findall(r"(http://[0-9.:]+/metrics)", running.text)
    assert len(urls) == 4
    for url in urls:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            assert b"koord_" in answer.read()


def test_status_prints_the_nodes(running, koord):
    done = koord("status", "--kubeconfig", str(running.kubeconfig))
    assert done.returncode == entry.OK, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["NODE", "CAPACITY"]
    assert any(re.match(r"sim-1 +16\.0 ", line) for line in lines)


def test_status_is_there_for_programs_as_well(running, koord):
    done = koord("status", "--kubeconfig", str(running.kubeconfig), "-o", "json")
    assert done.returncode == entry.OK, done.stderr
    shown = json.loads(done.stdout)
    rows = {row["name"]: row for row in shown["nodes"]}
    assert rows["sim-1"]["cpu"]["capacity"] == 16_000
    assert {"pending", "running", "batch_running"} <= shown.keys()


def test_explain_reaches_every_process_and_the_scorecard_every_agent(running, koord, monkeypatch):
    done = koord("explain", "node", "sim-1", "--kubeconfig", str(running.kubeconfig))
    assert done.returncode == entry.OK, done.stderr
    assert "Not reached" not in done.stdout
    read = done.stdout.splitlines()[-1]
    assert re.search(r"extender: .*manager: |manager: .*extender: ", read), done.stdout
    # The same where only the environment names the kubeconfig, as the README shows.
    environ = {**os.environ, "KUBECONFIG": str(running.kubeconfig)}
    words = [*KOORD, "agent", "scorecard", "-o", "json"]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environ
    )
    assert done.returncode == entry.OK, done.stderr
    assert json.loads(done.stdout)["problems"] == []
    done = koord("agent", "scorecard", "--node=n9", "--kubeconfig", str(running.kubeconfig))
    assert done.returncode == entry.FAILED
    assert "no agent runs on node n9" in done.stderr


def test_a_second_run_in_the_same_folder_is_refused(running, koord):
    done = koord("dev", "--plain", "--state", str(running.state))
    assert done.returncode == entry.FAILED
    assert f"process {running.child.pid} already runs from {running.state}" in done.stderr
    assert "Traceback" not in done.stderr
    # The first one goes on as before.
    assert running.get("/api/v1/nodes")["items"]


def test_a_port_in_use_is_named(running, koord, tmp_path):
    config = json.loads(running.kubeconfig.read_text())
    port = config["clusters"][0]["cluster"]["server"].rpartition(":")[2]
    done = koord("dev", "--plain", "--state", str(tmp_path / "other"), "--port", port)
    assert done.returncode == entry.FAILED
    assert f"port {port} is in use" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "other").exists()


def test_without_a_terminal_it_prints_lines(running):
    assert running.until(r"(?m)^sim-1 +16\.0 .*$")
    assert running.until(r"\d+ pods running, \d+ of them batch; \d+ pending")


def leaves_nothing(run, number):
    """Stop a run by a signal and look for its processes and its folder."""
    children = run.children()
    assert run.stop(number) == entry.OK, run.text
    assert "stopped; nothing was left behind" in run.text
    assert "Traceback" not in run.text
    assert not run.state.exists()
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_a_signal_while_it_starts_ends_it_as_well(tmp_path):
    run = Run(tmp_path / "state")
    try:
        run.until("control plane listens")
        assert run.stop(signal.SIGTERM) == entry.OK, run.text
    finally:
        run.child.kill()
        run.child.wait()
    assert not run.state.exists()
    assert "Traceback" not in run.text


def test_a_folder_of_somebody_else_is_left_alone(koord, tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    done = koord("dev", "--plain", "--state", str(tmp_path))
    assert done.returncode == entry.FAILED
    assert "holds something else; name another folder: --state" in done.stderr
    assert (tmp_path / "thesis.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "No such file or directory"), ("kind: Pod", "must be DeschedulerConfiguration")],
)
def test_a_configuration_that_cannot_be_used_is_named_before_anything_starts(
    text, why, tmp_path, capsys
):
    file, state = tmp_path / "profiles.yaml", tmp_path / "state"
    if text is not None:
        file.write_text(text)
    assert main.main(["dev", f"--descheduler={file}", f"--state={state}"]) == entry.BAD_SETTINGS
    told = capsys.readouterr().err
    assert told.startswith("koord dev: --descheduler: configuration")
    assert why in told
    assert not state.exists()


def test_a_folder_without_binaries_is_named(koord, tmp_path):
    done = koord(
        *("dev", "--plain", "--state", str(tmp_path / "state")),
        *("--control-plane", str(tmp_path / "none")),
    )
    assert done.returncode == entry.FAILED
    assert str(tmp_path / "none") in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "state").exists()
