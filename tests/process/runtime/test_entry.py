"""The life of a process as its parent sees it: words on standard error, signals, exit codes."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from process.configuration import settings, sources
from process.runtime import entry
from tests import patience

ROOT = Path(__file__).parents[3]

PROCESS = """
    import asyncio, contextlib, os, sys
    from aiohttp import web
    from process.configuration import explained_error as explained, features, settings
    from process.http import health, server
    from process.runtime import entry, metrics, supervise

    class Demo(settings.Settings):
        '''A process for tests.'''

        server: settings.ServerSettings = settings.ServerSettings(linger_seconds=0)
        '''Where it listens.'''
        log: settings.LogSettings = settings.LogSettings()
        '''What it logs.'''
        behaviour: str = "serve"
        '''What it does.'''

    @contextlib.asynccontextmanager
    async def running(demo, *, access, clock):
        if demo.behaviour == "slow start":
            print("starting", flush=True)
            await clock.sleep(3600)
        if demo.behaviour == "bad gate":
            features.Gates([], {"Nope": True})
        if demo.behaviour == "crash":
            raise KeyError("no such thing")

        async def tick():
            await clock.sleep(0.05 if demo.behaviour == "task fails" else 3600)
            raise ValueError("tick went wrong")

        async def hold(_request):
            await clock.sleep(3600)

        figures = metrics.Registry()
        app = server.health_routes(web.Application(), health.Health(), figures)
        app.router.add_get("/hold", hold)
        async with supervise.Supervisor("demo") as supervisor:
            async with server.running_site(
                app, demo.server, registry=figures, clock=clock
            ) as site:
                supervisor.start("tick", tick)
                print(site.url, access, type(asyncio.get_running_loop()).__module__, flush=True)
                yield supervisor

    async def connect(kubeconfig, context):
        if context == "nowhere":
            raise explained.ExplainedError("there is no kubeconfig; name one")
        return f"{kubeconfig}:{context}"

    loop = os.environ.get("DEMO_LOOP", "uvloop")
    entry.main("demo", Demo, running, connect=connect, loop=loop)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    script = tmp_path / "demo.py"
    script.write_text(textwrap.dedent(PROCESS), encoding="utf-8")
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **environ: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-X", "dev", str(script), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize(
    ("number", "chosen", "kind"),
    [
        pytest.param(signal.SIGTERM, {}, "uvloop", id="the fast loop"),
        pytest.param(signal.SIGINT, {"DEMO_LOOP": "asyncio"}, "asyncio", id="Python's own loop"),
    ],
)
def test_signal_drains_and_ends_clean(
    start: Start, number: signal.Signals, chosen: dict[str, str], kind: str
) -> None:
    process = start("--kubeconfig=/k", "--context", "kind", "--log.format=json", **chosen)
    url, access, loop = line(process).split()
    assert (access, loop.partition(".")[0]) == ("/k:kind", kind)
    with urllib.request.urlopen(f"{url}/readyz", timeout=patience.SECONDS) as answer:
        assert answer.status == 200
    process.send_signal(number)
    _, errors = process.communicate(timeout=patience.SECONDS)
    assert process.returncode == entry.OK
    assert f"stopping signal={number.name}" in errors
    assert "process stopped name=demo" in errors
    assert "Traceback" not in errors


def test_second_signal_leaves_at_once(start: Start) -> None:
    process = start("--server.drain-seconds=3600")
    url = line(process).split()[0]
    holding = subprocess.Popen(
        [sys.executable, "-c", f"import urllib.request as r; r.urlopen('{url}/hold')"],
        stderr=subprocess.DEVNULL,
    )
    try:
        shown, end = "", time.monotonic() + patience.SECONDS
        while 'koord_server_connections{server="server"} 2.0' not in shown:
            assert time.monotonic() < end, shown
            with urllib.request.urlopen(f"{url}/metrics", timeout=patience.SECONDS) as answer:
                shown = answer.read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert any("stopping" in said for said in process.stderr)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=patience.SECONDS)
    finally:
        holding.kill()
        holding.wait()
    assert process.returncode == 128 + signal.SIGTERM
    assert "second signal" in errors


def test_signal_before_the_start_is_done_ends_clean(start: Start) -> None:
    process = start("--behaviour=slow start")
    assert line(process) == "starting\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=patience.SECONDS)
    assert process.returncode == entry.OK
    assert "stopped before it had started" in errors


@pytest.mark.parametrize(
    ("behaviour", "code", "said"),
    [
        pytest.param("task fails", entry.FAILED, "task tick failed: ValueError", id="task"),
        pytest.param("crash", entry.FAILED, "KeyError: 'no such thing'", id="crash"),
        pytest.param("bad gate", entry.BAD_SETTINGS, "unknown feature gate Nope", id="gate"),
    ],
)
def test_failures_are_told_by_text_and_code(
    start: Start, behaviour: str, code: int, said: str
) -> None:
    process = start(KOORD_DEMO_BEHAVIOUR=behaviour)
    _, errors = process.communicate(timeout=patience.SECONDS)
    assert process.returncode == code
    assert said in errors
    assert errors.count("Traceback") == (0 if behaviour == "bad gate" else 1)


def test_what_explains_itself_is_one_clear_line(start: Start) -> None:
    process = start("--context=nowhere")
    _, errors = process.communicate(timeout=patience.SECONDS)
    assert process.returncode == entry.FAILED
    assert "reason=there is no kubeconfig; name one" in errors
    assert "Traceback" not in errors


def test_taken_port_is_one_clear_line(start: Start) -> None:
    first = start()
    port = line(first).split()[0].rpartition(":")[2]
    second = start(f"--server.port={port}")
    _, errors = second.communicate(timeout=patience.SECONDS)
    assert second.returncode == entry.FAILED
    assert f"server.port {port} on 127.0.0.1: already in use" in errors
    assert "Traceback" not in errors


class Demo(settings.Settings):
    """A process for tests."""

    server: settings.ServerSettings = settings.ServerSettings()
    """Where it listens."""
    password: str = "none"
    """A word."""


def _never(*_arguments: Any, **_named: Any) -> Any:
    raise AssertionError("the process must not start")


def run(*argv: str) -> int:
    return entry.run("demo", Demo, _never, argv, connect=_never)


def test_bad_settings_are_told_all_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--server.prot=1", "--zzz=2") == entry.BAD_SETTINGS
    assert capsys.readouterr().err.splitlines() == [
        "koord demo: flag --server.prot: unknown setting server.prot; did you mean server.port?",
        "koord demo: flag --zzz: unknown setting zzz",
        "koord demo: --help lists every setting",
    ]


def test_help_lists_settings_with_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == entry.OK
    text = capsys.readouterr().out
    assert text.startswith("usage: koord demo [--config FILE]")
    assert "--server.keepAliveSeconds  (float; default 3600.0)" in text
    assert "KOORD_DEMO_SERVER__PORT" in text


def test_settings_as_printed_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--server.port=7", "--print-settings") == entry.OK
    first = capsys.readouterr().out
    file = tmp_path / "demo.yaml"
    file.write_text(first, encoding="utf-8")
    assert run("--config", str(file), "--print-settings") == entry.OK
    assert capsys.readouterr().out == first
    assert "port: 7" in first


def test_options_of_every_process() -> None:
    options = entry.parse(["--config=a", "--kubeconfig", "b", "--context=c", "--x=1", "-h"])
    assert options == entry.Options(
        config=Path("a"), kubeconfig=Path("b"), context="c", help=True, flags=("--x=1",)
    )
    with pytest.raises(sources.SourceError, match="--config needs a value"):
        entry.parse(["--config"])


def test_environment_prefix_of_a_process() -> None:
    assert entry.prefix_of("runtime-proxy") == "KOORD_RUNTIME_PROXY"
