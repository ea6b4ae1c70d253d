"""Arguments and subcommands."""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from kube import access
from process import entry

# Modules are imported when asked for: an agent must not pay for the memory of a simulator.
COMMANDS = {
    "dev": "the whole system on an embedded control plane",
    "status": "the state of the cluster, once",
    "explain": "why a pod waits or is where it is, why a node lends what it lends",
    "doctor": "check an installation; say what is wrong and what to do",
    "uninstall": "remove what this product created in a cluster",
    "render": "write manifests made from the models",
}
PROCESSES = {
    "extender": "scheduler extender: filter, prioritize, preempt and bind",
    "webhook": "admission webhook",
    "manager": "controllers",
    "agent": "node agent",
}

ACTIONS = {("agent", "undo"): "agent.undo", ("agent", "scorecard"): "cli.scorecard"}
"""What a process does once and ends, from the words that ask for it to the module."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return entry.OK
    return code


def _run(arguments: Sequence[str]) -> int:
    if tuple(arguments[:2]) in ACTIONS:
        return int(importlib.import_module(ACTIONS[arguments[0], arguments[1]]).main(arguments[2:]))
    if arguments and arguments[0] in PROCESSES:
        return _process(arguments[0], arguments[1:])
    parser = _parser(arguments[0] if arguments else "")
    chosen = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] | None = getattr(chosen, "run", None)
    if run is None:
        parser.print_help()
        return entry.BAD_SETTINGS
    return run(chosen)


def _process(name: str, arguments: Sequence[str]) -> int:
    app = importlib.import_module(f"{name}.app")
    settings = importlib.import_module(f"{name}.settings")
    return entry.run(name, settings.Settings, app.running, arguments, connect=access.connect)


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of all commands, with the arguments of the one that is meant."""
    parser = argparse.ArgumentParser(
        prog="koord",
        description="Colocation of online services and batch work beside an unmodified scheduler.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, what in COMMANDS.items():
        known = commands.add_parser(name, help=what)
        if name == command:
            importlib.import_module(f"cli.{name}").add_arguments(known)
    for name, what in PROCESSES.items():
        commands.add_parser(name, help=f"run the {what}", add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
