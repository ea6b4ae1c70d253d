"""The whole system in one process, on an embedded control plane or on real binaries."""

import argparse
import asyncio
import contextlib
import dataclasses
import logging
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import uvloop

from cli import clusters, endpoints
from cli.dev import all_in_one, control_planes, example_workload, fleet, run_folder
from cli.install import apply
from cli.output import terminal
from cli.view import screen
from descheduler.rounds import configured
from domain import wording
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error, settings
from process.runtime import clock as clocks
from process.runtime import entry, logs, supervise
from simulator.kubelet import kubelet

READY_SECONDS = 40.0
SHOWN_AGENTS = 4
MOST_NODES = 100
MOST_CPUS = 1024
MOST_GIB = 1 << 16
HINTS = """
  kubeconfig   export KUBECONFIG={kubeconfig}
  look         kubectl get nodes,nodemetrics,nodeslos
  why pending  kubectl -n shop describe pod latecomer   (comes when the nodes are warm)
  console      {console}
  metrics      {metrics}
  agents       {agents}  (/metrics, /debug/audit)
  log          {log}
  stop         Ctrl-C here, or kill {pid}
"""


class NotReadyError(explained_error.ExplainedError):
    """The system did not become ready; says who and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen."""

    folder: Path
    nodes: int
    machine: kubelet.Machine
    """What each simulated node looks like; the name gets a number."""
    port: int
    control_plane: Path | None
    plain: bool
    workload: bool
    descheduler: Path | None = None
    """The configuration file of the descheduler; without one it moves nothing by itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord dev`."""
    add = parser.add_argument
    add(
        "--nodes",
        type=_between(0, MOST_NODES),
        default=3,
        help="simulated nodes besides this machine (default 3)",
    )
    cpus, gib, ports = _between(1, MOST_CPUS), _between(1, MOST_GIB), _between(0, 65535)
    add("--cpus", type=cpus, default=16, help="cpus of a simulated node (default 16)")
    add("--memory-gib", type=gib, default=64, help="memory of a simulated node (default 64)")
    add("--port", type=ports, default=0, help="port of the embedded API server (default: free)")
    add(
        "--descheduler",
        type=Path,
        metavar="FILE",
        help="a DeschedulerConfiguration (default: none)",
    )
    add("--control-plane", type=Path, metavar="DIR", help="use the real binaries in this folder")
    add("--state", type=Path, default=clusters.DEV_KUBECONFIG.parent, help="folder (default .dev)")
    add("--plain", action="store_true", help="lines instead of a live view")
    add("--no-workload", action="store_true", help="do not apply the example workload")
    parser.set_defaults(run=_run)


def _between(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: name a number from {least} to {most}")
        return int(text)

    return read


def _run(chosen: argparse.Namespace) -> int:
    options = Options(
        folder=chosen.state.absolute(),
        nodes=chosen.nodes,
        machine=kubelet.Machine("sim", cpu=chosen.cpus, memory_gib=chosen.memory_gib),
        port=chosen.port,
        control_plane=chosen.control_plane,
        plain=chosen.plain or not sys.stdout.isatty(),
        workload=not chosen.no_workload,
        descheduler=chosen.descheduler.absolute() if chosen.descheduler else None,
    )
    tail = ""
    try:
        configured.load(options.descheduler)
    except settings.SettingsError as error:
        for problem in error.problems:
            terminal.warn(f"koord dev: --descheduler: {problem}")
        return entry.BAD_SETTINGS
    try:
        with run_folder.held(options.folder):
            try:
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    runner.run(_until_stopped(options))
            except BaseException:
                tail = run_folder.tail(options.folder)
                raise
    except (explained_error.ExplainedError, errors.KubeError) as error:
        terminal.warn(f"koord dev: {error}")
        if isinstance(error, (NotReadyError, supervise.TaskError, errors.KubeError)):
            # The error says what failed; why is in the log, which is gone with the folder.
            terminal.warn(tail)
        return entry.FAILED
    terminal.say("stopped; nothing was left behind")
    return entry.OK


async def _until_stopped(options: Options) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with (options.folder / run_folder.LOG).open("w", encoding="utf-8") as log:
        logs.configure(settings.LogSettings(), log)
        try:
            async with supervise.Supervisor("dev") as supervisor:
                served = supervisor.spawn("serve", _serve(options))
                asked = supervisor.spawn("signal", stop.wait())
                await asyncio.wait([served, asked], return_when=asyncio.FIRST_COMPLETED)
                if served.done():
                    served.result()
                terminal.say("", "stopping …")
        finally:
            logging.getLogger().handlers.clear()


async def _serve(options: Options) -> None:
    """Start everything, show it, and stop in reverse order when cancelled."""
    clock = clocks.SystemClock()
    started = clock.monotonic()
    if shutil.which("kubectl") is None:
        terminal.say("kubectl is not on the PATH: everything runs, but install it to look around")
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        hosts = fleet.Fleet(fleet.Options(options.folder / "hosts"), clock)
        plane = await enter(_plane(options, hosts.hooks, clock))
        hosts.admit(plane.token)
        kubeconfig = plane.write_kubeconfig(options.folder / run_folder.KUBECONFIG)
        terminal.say(f"control plane listens at {plane.server}")
        kube = await enter(clients.Client(plane.access, clock=clock, user_agent="koord-dev"))
        count = await apply.definitions(kube, clock)
        await apply.everything(kube, apply.documents("foundation.yaml", "switches.yaml"))
        terminal.say(f"applied {count} custom resource definitions and the foundation")
        running = await enter(
            all_in_one.running(_processes(options), access=plane.access, clock=clock)
        )
        await _ready(running, clock)
        await plane.start_scheduler(running.extender.url)
        terminal.say("all processes are ready, the scheduler calls the extender")
        await enter(hosts.living())
        await _populate(options, hosts, plane)
        terminal.say(_reporting(options.nodes))
        metrics = "  ".join(f"{name} {app.health_url}/metrics" for name, app in running.apps())
        named = list(hosts.agents.items())[-SHOWN_AGENTS:]
        agents = "  ".join(f"{name} {agent.health_url}" for name, agent in named)
        endpoints.save(options.folder, plane.server, running.apps(), hosts.agents)
        terminal.say(f"ready after {clock.monotonic() - started:.1f} s")
        terminal.lines(
            HINTS.format(
                kubeconfig=kubeconfig,
                console=running.manager.url,
                metrics=metrics,
                agents=agents,
                log=options.folder / run_folder.LOG,
                pid=os.getpid(),
            ).splitlines()
        )
        supervisor = await enter(supervise.Supervisor("view"))
        watching = [supervisor.spawn(name, app.stopped()) for name, app in running.apps()]
        watching += [supervisor.spawn(n, a.stopped()) for n, a in hosts.agents.items()]
        if options.workload:
            supervisor.spawn("story", example_workload.play(kube, clock))
        watching.append(supervisor.spawn("screen", screen.show(kube, clock, plain=options.plain)))
        ended, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()


def _reporting(nodes: int) -> str:
    simulated = wording.count(nodes, "simulated node", "simulated nodes")
    return f"{simulated} and this machine report"


def _processes(options: Options) -> all_in_one.Options:
    found = all_in_one.Options(options.folder)
    chosen = found.descheduler.model_copy(update={"configuration": options.descheduler})
    found = dataclasses.replace(found, descheduler=chosen)
    if options.control_plane is None:
        return found
    # A real API server asks RBAC, where nobody has bound the viewer: the console asks for a token.
    console = found.manager.console.model_copy(update={"viewer": ""})
    return dataclasses.replace(found, manager=found.manager.model_copy(update={"console": console}))


@contextlib.asynccontextmanager
async def _plane(
    options: Options, hooks: kubelet.Hooks, clock: clocks.Clock
) -> AsyncIterator[control_planes.Plane]:
    if options.control_plane is None:
        context = control_planes.embedded(options.port, hooks, clock)
    else:
        workdir = options.folder / "control-plane"
        context = control_planes.real(options.control_plane.absolute(), workdir, hooks, clock)
    async with context as plane:
        yield plane


async def _ready(running: all_in_one.System, clock: clocks.Clock) -> None:
    """Wait until every process is ready and the API server knows the webhook."""
    deadline = clock.monotonic() + READY_SECONDS
    while True:
        waiting = {
            name: app.health.failing() or app.health.warnings()
            for name, app in running.apps()
            if app.health.failing() or app.health.warnings()
        }
        if not waiting:
            return
        if clock.monotonic() > deadline:
            raise NotReadyError(f"not ready after {READY_SECONDS:.0f} s: {waiting}")
        await clock.sleep(0.05)


async def _populate(options: Options, hosts: fleet.Fleet, plane: control_planes.Plane) -> None:
    for number in range(1, options.nodes + 1):
        machine = dataclasses.replace(options.machine, name=f"{options.machine.name}-{number}")
        await hosts.add(plane.kubelets, machine, plane.access)
    here = kubelet.Machine(
        socket.gethostname().lower(), cpu=os.cpu_count() or 1, memory_gib=_memory_gib()
    )
    await hosts.add_this_machine(plane.kubelets, here, plane.access)


def _memory_gib() -> int:
    return max(1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30)
