import contextlib
import json
import os
import pathlib
import stat
import sys

import pytest

from process.runtime import clock as clocks
from simulator.processes import binaries, children, command_lines, credentials

DIES = "#!/bin/sh\necho 'the data folder is broken' >&2\nexit 3\n"
STAYS = "#!/bin/sh\nexec sleep 600\n"
DEAF = (
    f"#!{sys.executable}\n"
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('deaf', flush=True)\n"
    "time.sleep(600)\n"
)


def program(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "bin"
    path.mkdir()
    for name in command_lines.NAMES:
        program(path, name, DIES)
    return path


def gone(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return False
    return True


async def test_a_missing_binary_is_named(folder, tmp_path):
    (folder / "kube-scheduler").unlink()
    with pytest.raises(binaries.BinariesError, match=r"lacks kube-scheduler; name a folder"):
        async with binaries.running(folder, tmp_path / "work"):
            pass


async def test_state_of_an_earlier_run_is_refused(folder, tmp_path):
    with pytest.raises(binaries.BinariesError, match="is not empty"):
        async with binaries.running(folder, tmp_path):
            pass


async def test_a_program_that_ends_at_once_shows_its_last_words(folder, tmp_path):
    with pytest.raises(children.ChildError, match=r"etcd ended.*\n.*data folder is broken"):
        async with binaries.running(folder, tmp_path / "work"):
            pass


async def test_a_program_that_is_never_ready_is_named_and_ended(tmp_path):
    child = await children.start("slow", (str(program(tmp_path, "slow", STAYS)),), tmp_path)

    async def never():
        return False

    with pytest.raises(children.ChildError, match="slow was not ready within 0 s"):
        await children.ready(child, never, clock=clocks.SystemClock(), timeout_seconds=0.05)
    await child.stop()
    assert not child.alive
    assert gone(child.pid)


async def test_a_program_that_ignores_the_polite_signal_is_killed(tmp_path):
    child = await children.start("deaf", (str(program(tmp_path, "deaf", DEAF)),), tmp_path)

    async def listening():
        return "deaf" in child.tail()

    await children.ready(child, listening, clock=clocks.SystemClock())
    await child.stop(grace_seconds=0.05)
    assert gone(child.pid)


async def test_stopping_twice_is_harmless(tmp_path):
    child = await children.start("slow", (str(program(tmp_path, "slow", STAYS)),), tmp_path)
    await child.stop()
    await child.stop()
    assert gone(child.pid)


def test_a_kubeconfig_names_server_certificate_and_token():
    config = credentials.kubeconfig("https://127.0.0.1:6443", b"PEM", "secret")
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "certificate-authority-data": "UEVN",
    }
    assert config["users"][0]["user"] == {"token": "secret"}
    assert config["current-context"] == config["contexts"][0]["name"]


def test_a_written_kubeconfig_is_readable_by_its_owner_only(folder, tmp_path):
    work = tmp_path / "work"
    (work / "certificates").mkdir(parents=True)
    (work / "certificates" / "apiserver.crt").write_text("PEM")
    plane = binaries.Plane(folder, work, binaries.Options(), clocks.SystemClock())
    path = plane.write_kubeconfig(tmp_path / "config")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["users"][0]["user"]["token"] == plane.token


async def test_a_paused_program_neither_ends_nor_goes_on(tmp_path):
    child = await children.start("slow", (str(program(tmp_path, "slow", STAYS)),), tmp_path)
    child.pause()
    clock = clocks.SystemClock()
    await children.ready(child, lambda: has_state(child.pid, "T"), clock=clock)
    assert child.alive
    child.resume()
    await children.ready(child, lambda: has_state(child.pid, "S"), clock=clock)
    await child.stop()
    assert gone(child.pid)


async def test_a_paused_program_hears_that_it_has_to_end(tmp_path):
    child = await children.start("slow", (str(program(tmp_path, "slow", STAYS)),), tmp_path)
    child.pause()
    await child.stop(grace_seconds=60)
    assert gone(child.pid)


def state(pid):
    status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0]


async def has_state(pid, letter):
    return state(pid) == letter


async def test_a_program_that_never_ran_is_named(folder, tmp_path):
    plane = binaries.Plane(folder, tmp_path, binaries.Options(), clocks.SystemClock())
    with pytest.raises(binaries.BinariesError, match="kube-scheduler never ran here"):
        await plane.kill("kube-scheduler")


LAYOUT = command_lines.Layout(
    pathlib.Path("/state"),
    {"etcd": 1, "peer": 2, "kube-apiserver": 3, "kube-controller-manager": 4, "two": 5},
)


@pytest.mark.parametrize(
    ("switches", "flag", "given"),
    [
        pytest.param({"audit": True}, "--audit-log-path=/state/audit.log", True, id="audit"),
        pytest.param({}, "--audit-log-path=/state/audit.log", False, id="no audit"),
        pytest.param(
            {"service_routing": True}, "--enable-aggregator-routing=true", True, id="routing"
        ),
        pytest.param({}, "--enable-aggregator-routing=true", False, id="no routing"),
        pytest.param(
            {}, "--disable-admission-plugins=TaintNodesByCondition", True, id="nodes never ready"
        ),
        pytest.param(
            {"node_lifecycle": True},
            "--disable-admission-plugins=TaintNodesByCondition",
            False,
            id="nodes that heartbeat",
        ),
        pytest.param({"apiserver_flags": ["--v=4"]}, "--v=4", True, id="any flag"),
    ],
)
def test_options_become_flags_of_the_api_server(switches, flag, given):
    found = command_lines.apiserver(LAYOUT, command_lines.Switches(**switches)).arguments
    assert (flag in found) is given


def test_each_scheduler_has_its_own_address_and_keys():
    made = command_lines.scheduler(LAYOUT, "two", pathlib.Path("/state/two.json"))
    assert made.binary == "kube-scheduler"
    assert "--secure-port=5" in made.arguments
    assert "--cert-dir=/state/two-certificates" in made.arguments
    assert made.ready == ("https://127.0.0.1:5/readyz", "https://127.0.0.1:5/healthz")
