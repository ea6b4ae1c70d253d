"""The device daemon as a process: command line, files, pauses, and what stops it."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from agent.device_daemon import daemon as daemons
from agent.device_daemon import looks, output
from agent.device_daemon import settings as daemon_settings
from agent.device_daemon.hardware import findings
from agent.devices import vendor_records
from cli import main
from process.runtime import entry, metrics, supervise
from process.runtime.clock import ManualClock
from tests import patience
from tests.planes.devices import pci_tree, vendor_tools

VARIABLES = ("KDD_", "KOORD_DEVICE_DAEMON_", "CONFIG_FILE", "PRINTS_OUTPUT_FILE")
MODEL = "node.koordinator.sh/gpu-model"
RECORD = vendor_records.Record(uuid="u", minor="0", model="M")
CARD = findings.Card("npu", "0000:01:00.0")


class World:
    """A host with an accelerator, its tool as a program, and the command line."""

    def __init__(self, folder):
        self.folder = folder
        self.tree = pci_tree.PciTree(folder / "sys")
        self.path = vendor_tools.install(folder / "bin", vendor_tools.METAX)
        vendor_tools.plug(self.tree, "metax", folder / "dev")
        self.file = folder / "out/ic-device"
        self.config = folder / "config.yaml"

    def run(self, *flags, file=True):
        fixed = [f"--sys={self.tree.sys}", f"--dev={self.folder}/dev", f"--tools.path={self.path}"]
        if file:
            fixed.append(f"--prints-output-file={self.file}")
        return main.main(["device-daemon", *fixed, "--health.port=0", *flags])


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(VARIABLES)]:
        monkeypatch.delenv(name)
    return World(tmp_path)


def test_oneshot_prints_once_and_ends(world):
    labels = world.folder / "features.d/koord"
    assert world.run("--oneshot", "--no-timestamp", f"--labels-file={labels}") == entry.OK
    (one,) = json.loads(world.file.read_text())
    assert (one["vendor"], one["uuid"], one["status"]["healthy"]) == ("metax", "GPU-77", True)
    assert "timestamp" not in one
    assert labels.read_text() == (
        "koord.sh/gpu-count=1\nnode.koordinator.sh/gpu-model=MXC500\n"
        "node.koordinator.sh/gpu-vendor=metax\n"
    )
    assert world.file.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in world.file.parent.iterdir()] == ["ic-device"]


def test_with_a_timestamp_file_and_labels_carry_it(world):
    labels = world.folder / "labels"
    assert world.run("--oneshot", f"--labels-file={labels}") == entry.OK
    (one,) = json.loads(world.file.read_text())
    assert one["timestamp"].endswith("Z")
    assert "koord.sh/devices-timestamp=" in labels.read_text()


def test_a_host_without_devices_gets_an_empty_list(world, capsys):
    world.tree.remove("0000:6b:00.0")
    assert world.run("--oneshot", "--prints-output-file=-", file=False) == entry.OK
    assert capsys.readouterr().out == "[]\n"


def config(world, text):
    world.config.write_text(text)
    return f"--config-file={world.config}"


KDD = "version: v1\nflags:\n  kdd:\n    oneshot: true\n    printsOutputFile: {}\n"


@pytest.mark.parametrize(
    "shape", [KDD, "oneshot: true\nprintsOutputFile: {}\n"], ids=["kdd", "own"]
)
@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"file"}, "file"),
        ({"file", "PRINTS_OUTPUT_FILE"}, "PRINTS_OUTPUT_FILE"),
        ({"file", "PRINTS_OUTPUT_FILE", "KDD_PRINTS_OUTPUT_FILE"}, "KDD_PRINTS_OUTPUT_FILE"),
        ({"KDD_PRINTS_OUTPUT_FILE", "KOORD_DEVICE_DAEMON_PRINTS_OUTPUT_FILE"},
         "KOORD_DEVICE_DAEMON_PRINTS_OUTPUT_FILE"),
        ({"file", "KDD_PRINTS_OUTPUT_FILE", "flag"}, "flag"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(sorted(value)),
)  # fmt: skip
def test_flag_over_environment_over_file(world, monkeypatch, capsys, shape, sources, expected):
    flags = []
    for name in sources:
        place = f"{world.folder}/{name}"
        if name == "file":
            flags.append(config(world, shape.format(place)))
        elif name == "flag":
            flags.append(f"--prints-output-file={place}")
        else:
            monkeypatch.setenv(name, place)
    assert world.run(*flags, "--print-settings", file=False) == entry.OK
    assert f"printsOutputFile: {world.folder}/{expected}\n" in capsys.readouterr().out


def test_the_default_and_a_file_that_a_variable_names(world, monkeypatch, capsys):
    assert world.run("--print-settings", file=False) == entry.OK
    shown = capsys.readouterr().out
    assert "printsOutputFile: /var/run/koord-agent/xpu-device-infos/ic-device\n" in shown
    assert "sleepInterval: 900s\n" in shown
    config(world, KDD.format("/a"))
    monkeypatch.setenv("CONFIG_FILE", str(world.config))
    monkeypatch.setenv("KDD_SLEEP_INTERVAL", "15m")
    assert world.run("--print-settings", "--v", "5", file=False) == entry.OK
    shown = capsys.readouterr().out
    assert "printsOutputFile: /a\n" in shown
    assert "sleepInterval: 15m\n" in shown
    assert "level: debug\n" in shown


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        ("version: v2\n", (), "config.yaml line 1"),
        ("flags: {kdd: {oneShots: true}}\n", (), "unknown setting flags.kdd.oneShots"),
        ("flags: [1]\n", (), "unknown setting flags"),
        ("- 1\n", (), "line 1: settings are a mapping"),
        ("", ("--sleep-interval=soon",), '"soon" is no duration'),
        ("", ("--sleep-interval=0s",), "at least 1s"),
        ("", ("--hardware=abacus",), "abacus is none of nvidia, huawei"),
        ("", ("--config-file",), "needs a value"),
    ],
    ids=["version", "key", "shape", "list", "duration", "no pause", "hardware", "no file"],
)
def test_bad_settings_are_named_and_nothing_runs(world, capsys, text, flags, said):
    given = [config(world, text)] if text else []
    assert world.run("--oneshot", *given, *flags) == entry.BAD_SETTINGS
    assert said in capsys.readouterr().err
    assert not world.file.exists()


def test_a_place_that_cannot_be_written_fails_oneshot_by_name(world, capfd):
    world.file.parent.write_text("a file where a folder belongs")
    labels = world.folder / "labels"
    assert world.run("--oneshot", f"--labels-file={labels}") == entry.FAILED
    assert f"{world.file} cannot be written" in capfd.readouterr().err
    assert f"{MODEL}=MXC500" in labels.read_text()


def test_a_tool_that_fails_is_named_and_the_rest_is_written(world, capfd):
    (world.folder / "bin/mx-smi").write_text("#!/bin/sh\nexit 9\n")
    world.tree.add("0000:c1:00.0", vendor="0x10ee", kind="0x120000")
    labels = world.folder / "labels"
    assert world.run("--oneshot", "--no-timestamp", f"--labels-file={labels}") == entry.OK
    assert "exit code 9" in capfd.readouterr().err
    assert json.loads(world.file.read_text()) == []
    assert labels.read_text() == (
        "koord.sh/fpga-count=1\nkoord.sh/gpu-count=1\nnode.koordinator.sh/gpu-vendor=metax\n"
    )


KILLED = """
import pathlib, resource, signal, sys
from agent.host import files
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
files.replace(pathlib.Path(sys.argv[1]), b"x" * 100_000, 0o644)
"""


def test_killed_in_the_middle_of_a_write_the_old_file_stays(world):
    assert world.run("--oneshot", "--no-timestamp") == entry.OK
    before = world.file.read_bytes()
    died = subprocess.run([sys.executable, "-c", KILLED, world.file], check=False)
    assert died.returncode == -signal.SIGXFSZ
    assert (world.file.parent / "ic-device.tmp").stat().st_size == 4096
    assert world.file.read_bytes() == before
    assert world.run("--oneshot", "--no-timestamp") == entry.OK
    assert [path.name for path in world.file.parent.iterdir()] == ["ic-device"]


class Bench:
    """A daemon with one manager that answers as a test says, in virtual time."""

    def __init__(self, folder, **given):
        self.answers, self.looks = [findings.Findings((CARD,), (RECORD,))], 0
        self.file = folder / "ic-device"
        chosen = daemon_settings.Settings(prints_output_file=str(self.file), **given)
        self.clock, self.figures = ManualClock(), metrics.Registry()
        manager = looks.Manager("npus", self.discover, chosen.look_seconds, self.clock)
        host = findings.Host("/nowhere", "/nowhere", lambda *_: "", lambda: None)
        self.daemon = daemons.Daemon(chosen, [manager], host, self.clock, self.figures)

    def discover(self, _host, _at):
        self.looks += 1
        answer = self.answers[-1]
        return answer() if callable(answer) else answer

    def written(self):
        return [one["uuid"] for one in json.loads(self.file.read_text())]


async def test_it_looks_again_after_the_pause_and_never_reads_its_settings_again(
    tmp_path, monkeypatch
):
    bench = Bench(tmp_path, sleep_interval="10m")
    monkeypatch.setenv("KOORD_DEVICE_DAEMON_SLEEP_INTERVAL", "1s")
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("looks", bench.daemon.run)

        await patience.until(lambda: bench.clock.next_wake == 600, bench.clock.settle)
        assert bench.looks == 1
        await bench.clock.advance(599)
        assert bench.looks == 1
        await bench.clock.advance(1)
        await patience.until(
            lambda: bench.clock.next_wake == 600 and bench.looks == 2, bench.clock.settle
        )


async def test_a_device_that_goes_goes_from_the_file(tmp_path):
    bench = Bench(tmp_path)
    await bench.daemon.step()
    assert bench.written() == ["u"]
    assert bench.figures.value("koord_device_daemon_devices", {"kind": "npu"}) == 1
    bench.answers.append(findings.Findings())
    await bench.daemon.step()
    assert bench.written() == []
    assert bench.figures.value("koord_device_daemon_devices", {"kind": "npu"}) is None


async def test_a_manager_that_raises_or_hangs_is_named_and_what_it_said_stays_a_while(tmp_path):
    bench = Bench(tmp_path, look_seconds=30)
    await bench.daemon.step()
    bench.answers.append(lambda: {}["mistake"])
    await bench.daemon.step()
    assert "KeyError" in bench.daemon.problems["npus"]
    assert bench.written() == ["u"]
    leave = threading.Event()
    bench.answers.append(leave.wait)
    try:
        async with supervise.Supervisor("test") as supervisor:
            step = supervisor.spawn("step", bench.daemon.step())
            await patience.until(lambda: bench.looks == 3, bench.clock.settle)
            await bench.clock.advance(30)
            await patience.until(step.done, bench.clock.settle)
        assert bench.daemon.problems == {"npus": "no answer within 30 s"}
        (one,) = json.loads(bench.file.read_text())
        assert one["status"]["errCode"] == "DriverNotAnswering"
        await bench.daemon.step()
        assert bench.daemon.problems == {"npus": "an earlier look has not answered yet"}
        assert bench.looks == 3
    finally:
        leave.set()


@pytest.mark.parametrize(("remove", "left"), [(False, True), (True, False)])
async def test_files_outlive_the_daemon_unless_it_is_asked_to_remove_them(tmp_path, remove, left):
    bench = Bench(tmp_path, remove_on_stop=remove)
    await bench.daemon.step()
    bench.daemon.remove_files()
    assert bench.file.exists() is left


async def test_a_file_that_cannot_be_removed_is_logged(tmp_path, caplog):
    bench = Bench(tmp_path, remove_on_stop=True)
    # Only a file can be unlinked, even by root.
    bench.file.mkdir(parents=True)
    bench.daemon.remove_files()
    assert f"file was not removed path={bench.file}" in caplog.text


def test_every_label_it_may_set_is_one_of_ours():
    assert all("koord" in key for key in (*output.LABELS, *output.ANNOTATIONS))
