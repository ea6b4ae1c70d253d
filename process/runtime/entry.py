"""What every `__main__` calls: read settings, run until told to stop, say how it went."""

import asyncio
import contextlib
import dataclasses
import logging
import os
import shutil
import signal
import sys
import textwrap
from asyncio import sslproto
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, NoReturn, Protocol, TypeVar

import pydantic

from process.configuration import explained_error, features, settings, sources
from process.runtime import clock as clocks
from process.runtime import collector, logs, supervise

_logger = logging.getLogger(__name__)

OK, FAILED, BAD_SETTINGS = 0, 1, 2
Loop = Literal["uvloop", "asyncio"]
"""The event loop of a process: the fast one, or Python's own, which takes 2 MiB less."""
_TLS_BYTES: Final = 32 << 10
"""What Python's own loop keeps for each TLS connection to receive into; by itself 256 KiB."""


class App(Protocol):
    """What a running process shows to its operator."""

    async def stopped(self) -> None:
        """Wait until a supervised task fails and raise its error."""


S_contra = TypeVar("S_contra", contravariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
S = TypeVar("S", bound=pydantic.BaseModel)
A = TypeVar("A")


class Running(Protocol[S_contra, A_contra]):
    """The `running` of a process: enters when it listens, drains and stops on exit."""

    def __call__(
        self, settings: S_contra, /, *, access: A_contra, clock: clocks.Clock
    ) -> contextlib.AbstractAsyncContextManager[App]:
        """Return the context in which the process runs."""


Connect = Callable[[Path | None, str | None], Awaitable[A]]
"""Finds the API server from a kubeconfig file and the name of a context in it."""


class Platform(NamedTuple):
    """What a process runs on."""

    environ: Mapping[str, str] = os.environ
    loop: Loop = "uvloop"


_HERE: Final = Platform()


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The part of a command line that is not settings."""

    config: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    help: bool = False
    print_settings: bool = False
    flags: tuple[str, ...] = ()


def main(
    name: str,
    model: type[S],
    running: Running[S, A],
    argv: Sequence[str] | None = None,
    *,
    connect: Connect[A],
    loop: Loop = "uvloop",
) -> NoReturn:
    """Run a process and leave the interpreter: 0 clean, 1 failure, 2 bad settings."""
    words = sys.argv[1:] if argv is None else argv
    on = Platform(loop=loop)
    raise SystemExit(run(name, model, running, words, connect=connect, on=on))


def run(
    name: str,
    model: type[S],
    running: Running[S, A],
    argv: Sequence[str],
    *,
    connect: Connect[A],
    on: Platform = _HERE,
) -> int:
    """Run a process until a signal or a failure and return its exit code."""
    try:
        options = parse(argv)
        if options.help:
            sys.stdout.write(usage(name, model))
            return OK
        loaded = settings.load(
            model,
            file=options.config,
            environ=on.environ,
            prefix=prefix_of(name),
            flags=options.flags,
        )
    except (settings.SettingsError, sources.SourceError) as error:
        for problem in (*error.problems, "--help lists every setting"):
            sys.stderr.write(f"koord {name}: {problem}\n")
        return BAD_SETTINGS
    if options.print_settings:
        sys.stdout.write(sources.to_yaml(loaded.model_dump(mode="json", by_alias=True)))
        return OK
    log = getattr(loaded, "log", None)
    logs.configure(log if isinstance(log, settings.LogSettings) else settings.LogSettings())

    async def serve(stop: "_Stop") -> None:
        access = await connect(options.kubeconfig, options.context)
        async with (
            collector.running(),
            running(loaded, access=access, clock=clocks.SystemClock()) as app,
        ):
            _logger.info("process started name=%s", name)
            await _until_stopped(app, stop)

    with asyncio.Runner(loop_factory=loop_factory(on.loop)) as runner:
        return runner.run(_to_the_end(name, serve))


def loop_factory(loop: Loop) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes an event loop of this kind."""
    if loop == "asyncio":
        sslproto.SSLProtocol.max_size = _TLS_BYTES
        return asyncio.new_event_loop
    import uvloop  # noqa: PLC0415 - 2 MiB, with its threads; an agent counts its memory

    return uvloop.new_event_loop


async def _to_the_end(name: str, serve: Callable[["_Stop"], Awaitable[None]]) -> int:
    """Turn whatever ends the process into a line of log and an exit code."""
    try:
        await _with_signals(serve)
    except (features.GateError, settings.SettingsError) as error:
        _logger.error("bad settings name=%s reason=%s", name, error)
        return BAD_SETTINGS
    except explained_error.ExplainedError as error:
        # What to do is in the text; a failed task has already shown its traceback.
        _logger.error("process failed name=%s reason=%s", name, error)
        return FAILED
    except Exception:
        # The root of the process: whatever ends it is shown whole before it does.
        _logger.exception("process failed name=%s", name)
        return FAILED
    _logger.info("process stopped name=%s", name)
    return OK


def parse(argv: Sequence[str]) -> Options:
    """Take the options that every process knows; everything else is settings."""
    given: dict[str, str] = {}
    switches = {"--help": "help", "-h": "help", "--print-settings": "print_settings"}
    found: set[str] = set()
    flags: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        option, separator, value = word.partition("=")
        if word in switches:
            found.add(switches[word])
        elif option in ("--config", "--kubeconfig", "--context"):
            if not separator:
                if not rest or rest[0].startswith("--"):
                    raise sources.SourceError(f"flag {option} needs a value: {option}=...")
                value = rest.pop(0)
            given[option[2:]] = value
        else:
            flags.append(word)
    return Options(
        config=Path(given["config"]) if "config" in given else None,
        kubeconfig=Path(given["kubeconfig"]) if "kubeconfig" in given else None,
        context=given.get("context"),
        help="help" in found,
        print_settings="print_settings" in found,
        flags=tuple(flags),
    )


def prefix_of(name: str) -> str:
    """Return what the environment variables of a process begin with."""
    return f"KOORD_{name.upper().replace('-', '_')}"


def usage(name: str, model: type[pydantic.BaseModel]) -> str:
    """Return the help text, with every setting of the process."""
    width = max(60, min(100, shutil.get_terminal_size((100, 24)).columns))
    prefix = prefix_of(name)
    lines = [
        f"usage: koord {name} [--config FILE] [--kubeconfig FILE] [--context NAME]",
        "       [--print-settings] [--section.setting=value ...]",
        "",
        (model.__doc__ or "").strip().splitlines()[0] if model.__doc__ else "",
        "",
        "Settings come from the file, then the environment, then flags; later ones win.",
        f"In the environment server.port is {prefix}_SERVER__PORT.",
        "",
    ]
    for entry in settings.describe(model):
        default = f"default {entry.default}" if entry.default else "required"
        lines.append(f"  --{entry.path}  ({entry.type}; {default})")
        lines += textwrap.wrap(
            entry.description, width, initial_indent=" " * 6, subsequent_indent=" " * 6
        )
    return "\n".join(lines) + "\n"


class _Stop:
    """What signals ask for: first a clean stop, then to be gone at once."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self.asked = asyncio.Event()
        self.started = False
        self._task = task

    def signalled(self, number: signal.Signals) -> None:
        """Take one signal."""
        if self.asked.is_set():
            _logger.warning("second signal, leaving at once signal=%s", number.name)
            os._exit(128 + number)
        _logger.info("stopping signal=%s", number.name)
        self.asked.set()
        if not self.started:
            # Nothing serves yet, so there is nothing to drain.
            self._task.cancel()


async def _with_signals(serve: Callable[[_Stop], Awaitable[None]]) -> None:
    task = asyncio.current_task()
    assert task is not None
    stop = _Stop(task)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.signalled, number)
    try:
        await serve(stop)
    except asyncio.CancelledError:
        if not stop.asked.is_set():
            raise
        _logger.info("stopped before it had started")


async def _until_stopped(app: App, stop: _Stop) -> None:
    stop.started = True
    async with supervise.Supervisor("entry") as supervisor:
        failure = supervisor.spawn("stopped", app.stopped())
        asked = supervisor.spawn("signal", stop.asked.wait())
        await asyncio.wait([failure, asked], return_when=asyncio.FIRST_COMPLETED)
        if failure.done():
            failure.result()
