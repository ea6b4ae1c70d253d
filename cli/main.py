"""Arguments and subcommands."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from cli import descheduler_options, device_daemon_options, exit_codes, flag_aliases, parsing
from cli.output import terminal
from kube.client import connect
from process.runtime import entry

# Modules are imported when asked for: an agent must not pay for the memory of a simulator.
COMMANDS = {
    "dev": "the whole system on an embedded control plane",
    "status": "the state of the cluster, once",
    "top": "what nodes, pods and quotas request, use, lend and borrow",
    "get": "ElasticQuotas of all API groups as one list",
    "explain": "why a pod waits or is where it is, why a node lends what it lends",
    "doctor": "check an installation; say what is wrong and what to do",
    "simulate": "what other settings, quotas, nodes, pods, gangs or load would do",
    "report": "what colocation gave in the last days, or would give before an installation",
    "diff": "what changed cluster settings or profiles would do before they are applied",
    "switch": "show the live switches, or set one to enforce, observe or off",
    "drain": "empty a node: its pods move to places that are reserved first",
    "snapshot": "write the state of a cluster to a file that simulations start from",
    "uninstall": "remove what this product created in a cluster",
    "render": "write manifests made from the models",
    "version": "the release of this program and of what is installed",
    "completion": "completion of commands and flags for bash, zsh and fish",
}
PROCESSES = {
    "extender": "scheduler extender: filter, prioritize, preempt and bind",
    "webhook": "admission webhook",
    "manager": "controllers",
    "descheduler": "descheduler: moves pods off nodes where they should no longer be",
    "agent": "node agent",
    "device-daemon": "device daemon: describes and labels the devices of a node",
    "runtime-proxy": "CRI proxy between kubelet and container runtime",
}
PACKAGES = {"device-daemon": "agent.device_daemon", "runtime-proxy": "runtimeproxy"}
"""Where a process lives that is not called after its package."""

ACTIONS = {
    ("agent", "undo"): (
        "agent.assembly.undo",
        "put back what a stopped agent has left on this host",
    ),
    ("agent", "scorecard"): (
        "cli.commands.agent_scorecard",
        "what the agents did each day, or would have done",
    ),
}
"""What a process does once and ends: from the words that ask for it to the module, and why."""
INTERRUPTED = exit_codes.SECOND_SIGNAL + signal.SIGINT
"""The exit code after Ctrl-C, as shells and kubectl have it."""
HELP = frozenset({"-h", "--help"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        terminal.flush()
    except BrokenPipeError:
        # The reader of our output has seen enough.
        _close_output()
        return entry.OK
    except terminal.OutputError as error:
        _close_output()
        terminal.warn(f"koord: {error}")
        return entry.FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _close_output() -> None:
    """Let what is still buffered go nowhere; the interpreter must not complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str]) -> int:
    if tuple(arguments[:2]) in ACTIONS:
        module, _ = ACTIONS[arguments[0], arguments[1]]
        return int(importlib.import_module(module).main(arguments[2:]))
    if arguments and arguments[0] == "--version":
        arguments = ["version", *arguments[1:]]
    if arguments and arguments[0] not in HELP and arguments[0].startswith("-"):
        behind = next((word for word in arguments if word in COMMANDS), "")
        if behind:
            terminal.warn(f"koord: write flags behind the command, as in: koord {behind} -n NAME")
            return entry.BAD_SETTINGS
    if arguments and arguments[0] in PROCESSES:
        return _process(arguments[0], arguments[1:])
    parser = _parser(arguments[0] if arguments else "")
    chosen = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] | None = getattr(chosen, "run", None)
    if run is None:
        parser.print_help()
        return entry.BAD_SETTINGS
    chosen.whole = parser_of_all
    return run(chosen)


def _process(name: str, arguments: Sequence[str]) -> int:
    package = PACKAGES.get(name, name)
    app = importlib.import_module(f"{package}.app")
    settings = importlib.import_module(f"{package}.settings")
    arguments, notes = flag_aliases.translated(name, arguments)
    environ: Mapping[str, str] = os.environ
    if name == "descheduler":
        file = importlib.import_module("cli.descheduler_file")
        target, arguments = descheduler_options.target(arguments)
        arguments, notes = descheduler_options.arguments(arguments, file.is_theirs)
        if target:
            return int(file.written(target, arguments))
    if name == "device-daemon":
        arguments = device_daemon_options.arguments(arguments, environ)
        environ = device_daemon_options.variables(environ)
    for note in notes:
        terminal.warn(f"koord {name}: note: {note}")
    code = entry.run(
        name,
        settings.Settings,
        app.running,
        arguments,
        connect=getattr(app, "connect", connect.connect),
        on=entry.Platform(environ, getattr(app, "LOOP", "uvloop")),
    )
    if HELP & set(arguments):
        terminal.lines(_actions(name))
    return code


def _actions(process: str) -> Iterator[str]:
    """Yield what a process does once and ends."""
    found = {words[1]: what for words, (_, what) in ACTIONS.items() if words[0] == process}
    if found:
        yield ""
        yield f"Done once (koord {process} COMMAND --help says more):"
    for word, what in found.items():
        yield f"  {word:<12}{what}"


def parser_of_all() -> parsing.Parser:
    """Return the parser with the arguments of every command."""
    return _parser(*COMMANDS)


def _parser(*filled: str) -> parsing.Parser:
    """Return the parser of all commands, with the arguments of those that are meant."""
    parser = parsing.Parser(
        prog="koord",
        description="Colocation of online services and batch work beside an unmodified scheduler.",
        epilog="Exit codes: 0 it is so, or done; 1 it failed, or what was asked for is not there; "
        "2 bad arguments or settings. Colour obeys NO_COLOR and is for terminals alone.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, what in COMMANDS.items():
        known = commands.add_parser(name, help=what)
        if name in filled:
            importlib.import_module(f"cli.commands.{name}").add_arguments(known)
    for name, what in PROCESSES.items():
        commands.add_parser(name, help=f"run the {what}", add_help=False)
    for words, (_, what) in ACTIONS.items():
        commands.add_parser(" ".join(words), help=what, add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
