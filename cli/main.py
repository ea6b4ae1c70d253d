"""Arguments and subcommands."""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence

from cli import dev, render, status
from kube import access
from process import entry

# Imported when asked for: an agent must not pay for the memory of an extender.
PROCESSES = {
    "extender": "scheduler extender: filter, prioritize, preempt and bind",
    "webhook": "admission webhook",
    "manager": "controllers",
    "agent": "node agent",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in PROCESSES:
        return _process(arguments[0], arguments[1:])
    parser = _parser()
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="koord",
        description="Colocation of online services and batch work beside an unmodified scheduler.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    dev.add_arguments(
        commands.add_parser("dev", help="the whole system on an embedded control plane")
    )
    status.add_arguments(commands.add_parser("status", help="the state of the cluster, once"))
    render.add_arguments(commands.add_parser("render", help="write manifests made from the models"))
    for name, what in PROCESSES.items():
        commands.add_parser(name, help=f"run the {what}", add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
