"""How a command of `koord simulate` begins and ends: the state it reads, its answer, its errors."""

import argparse
import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from api import resources
from cli.output import answers, report_files, terminal
from cli.placement import whole_extender
from cli.simulation import object_files
from cli.snapshot import format as formats
from cli.snapshot import reader
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import entry

Found = TypeVar("Found")


class ArgumentError(explained_error.ExplainedError):
    """What was asked cannot be tried; says what to write instead."""


_WRONG: Final[tuple[type[Exception], ...]] = (
    ArgumentError, object_files.DocumentError, whole_extender.UnknownPluginError,
    report_files.PictureError,
)  # fmt: skip
"""Errors of all commands by which the user has to ask otherwise."""


def read(chosen: argparse.Namespace) -> formats.Snapshot:
    """Return the state that was asked for."""
    return asyncio.run(reader.opened(chosen, clocks.SystemClock()))


def snapshot(chosen: argparse.Namespace) -> formats.Snapshot:
    """Return the state that was asked for, kept in a file where that is wanted."""
    found = read(chosen)
    reader.demand(found, resources.PODS, resources.NODES)
    if chosen.save is not None:
        reader.save(chosen.save, found)
    return found


def check_nodes(chosen: argparse.Namespace) -> None:
    """Refuse one of `--nodes` and `--like` without the other."""
    if bool(chosen.nodes) != bool(chosen.like):
        raise ArgumentError("--nodes and --like go together: name the node to copy")


def ended(
    chosen: argparse.Namespace,
    find: Callable[[argparse.Namespace], Found],
    document: Callable[[Found], dict[str, Any]],
    lines: Callable[[Found], Iterable[str]],
    wrong: tuple[type[Exception], ...] = (),
) -> int:
    """Show what is found as it was asked for; return the exit code.

    `wrong`: more errors of this command by which the user has to ask otherwise.
    """
    refused = (*_WRONG, *wrong)
    try:
        found = find(chosen)
    except refused as error:
        terminal.warn(f"koord simulate: {error}")
        return entry.BAD_SETTINGS
    except (
        errors.KubeError,
        reader.FileError,
        reader.UnreadError,
        report_files.FileError,
    ) as error:
        terminal.warn(f"koord simulate: {error}")
        return entry.FAILED
    if answers.is_document(chosen.output):
        answers.show(chosen.output, document(found))
    else:
        terminal.lines(lines(found))
    return entry.OK
