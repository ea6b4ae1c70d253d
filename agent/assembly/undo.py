"""`koord agent undo`: put this host back as it was, without an agent."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent import settings
from agent.apply import deliveries, executor, journal
from agent.apply.properties import property_files
from agent.model import cgroup_layout
from agent.observe.cgroups import cgroup_files
from agent.observe.node import boot
from domain import wording

OK, FAILED, REFUSED = 0, 1, 2
_HOST = settings.HostSettings()
_WHOLE = "the host"


def main(arguments: Sequence[str]) -> int:
    """Undo what the journal of this host names; say each file that was not ours any more.

    Returns 0 when nothing of ours is left, 1 when something could not be put back, 2 when undo
    was refused because an agent runs or the journal cannot be read.
    """
    parser = argparse.ArgumentParser(
        prog="koord agent undo",
        description="Put every file of this host that still holds what the agent wrote back as it "
        "was. Run it where the agent's folders are mounted, after the agent has stopped.",
    )
    parser.add_argument("--state", type=Path, default=_HOST.state, help="folder of the journal")
    parser.add_argument("--cgroup", type=Path, default=_HOST.cgroup, help="root of the groups")
    parser.add_argument("--proc", type=Path, default=_HOST.proc, help="/proc of the host")
    parser.add_argument("--sys", type=Path, default=_HOST.sys, help="/sys of the host")
    parser.add_argument(
        "--terway", type=Path, default=_HOST.terway_qos, help="folder of Terway's files"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be put back, and write nothing"
    )
    return _undo(parser.parse_args(arguments))


def _undo(chosen: argparse.Namespace) -> int:
    found = cgroup_files.detect(str(chosen.cgroup))
    if found is None:
        _say(f"{chosen.cgroup} has no group of pods: nothing here can have been changed")
        return OK
    arranged = msgspec.structs.replace(
        found, proc=str(chosen.proc), sys=str(chosen.sys), terway=str(chosen.terway or "")
    )
    kept = journal.Journal(chosen.state, boot.boot_id(str(chosen.proc)))
    try:
        kept.hold()
        kept.load()
    except journal.JournalError as error:
        _say(f"refused: {error}")
        return REFUSED
    try:
        delivered = deliveries.left(chosen.state, boot.boot_id(str(chosen.proc)))
        status = _put_back(arranged, kept, delivered, dry_run=chosen.dry_run)
        if status == OK and not chosen.dry_run:
            deliveries.remove(chosen.state)
        return status
    finally:
        kept.close()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _put_back(
    arranged: cgroup_layout.Layout,
    kept: journal.Journal,
    delivered: Sequence[deliveries.Delivered],
    *,
    dry_run: bool,
) -> int:
    acting = executor.Executor(property_files.Knobs(arranged), kept, writing=True)
    for one in delivered:
        acting.claims.born(one)
    if not len(kept):
        _say("nothing to put back")
        return OK
    if dry_run:
        for entry in kept.entries:
            _say(f"would put back {entry.role} of {entry.group or _WHOLE}: {entry.previous!r}")
        return OK
    outcome = acting.put_back("koord agent undo")
    for what, write, reason in outcome.records:
        _say(f"{what} {write.role} of {write.group or _WHOLE}: {write.target!r} ({reason})")
    if outcome.problem:
        _say(outcome.problem)
    if outcome.problem or outcome.failures:
        files = wording.count(len(kept), "file", "files")
        _say(f"{files} could not be put back; run it again when the cause is mended")
        return FAILED
    return OK
