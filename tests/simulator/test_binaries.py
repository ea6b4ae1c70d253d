import contextlib
import json
import os
import stat
import sys

import pytest

from process import clock as clocks
from simulator import binaries, children, credentials, programs

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
    for name in programs.NAMES:
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


def test_free_ports_differ():
    ports = binaries.free_ports(5)
    assert len(set(ports)) == 5


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
