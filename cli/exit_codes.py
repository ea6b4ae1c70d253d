"""Exit codes of every command and process, and what each of them means."""

from collections.abc import Mapping
from typing import Final

from process.runtime import entry

Codes = dict[int, str]

DONE: Final = "done"
NOT_READ: Final = "the cluster or a file could not be read"
ARGUMENTS: Final = "bad arguments; nothing was done"
SECOND_SIGNAL: Final = 128
"""To this the number of the signal is added."""

READS: Final[Codes] = {entry.OK: DONE, entry.FAILED: NOT_READ, entry.BAD_SETTINGS: ARGUMENTS}
WRITES: Final[Codes] = {entry.OK: DONE, entry.BAD_SETTINGS: ARGUMENTS}
COMMANDS: Final[Mapping[str, Codes]] = {
    "agent scorecard": READS | {entry.FAILED: "a scorecard could not be read"},
    "agent undo": READS
    | {
        entry.FAILED: "some files could not be put back; run it again",
        entry.BAD_SETTINGS: "bad arguments, or an agent still runs; nothing was done",
    },
    "completion": WRITES,
    "dev": READS | {entry.FAILED: "the control plane or a process did not start"},
    "diff": {
        entry.OK: "nothing differs",
        entry.FAILED: "something differs",
        entry.BAD_SETTINGS: "bad arguments, or the cluster or a file could not be read",
    },
    "doctor": {
        entry.OK: "nothing is found at the level of --fail-on or above",
        entry.FAILED: NOT_READ,
        entry.BAD_SETTINGS: ARGUMENTS,
        3: "the worst finding is no error: a warning, or something unknown",
        4: "an error is found",
    },
    "drain": READS
    | {
        entry.OK: "the node is empty, or would be; with --abort: what could end has",
        entry.FAILED: "some pods stay on the node, the answer was no, or it was interrupted",
    },
    "explain": READS | {entry.FAILED: "the object does not exist, or something was not read"},
    "get": READS | {entry.FAILED: "a named object does not exist, or the cluster was not read"},
    "render": WRITES | {entry.BAD_SETTINGS: "bad arguments, or a file cannot be used"},
    "report": READS | {entry.BAD_SETTINGS: "bad arguments, or what is asked has no figures"},
    "simulate": READS,
    "snapshot": READS | {entry.FAILED: "the cluster was not read or the file not written"},
    "status": READS,
    "switch": READS | {entry.FAILED: "the cluster could not be read, or the answer was no"},
    "top": READS,
    "uninstall": READS | {entry.FAILED: "something was not removed, or the answer was no"},
    "version": WRITES,
}
"""What ends by itself."""
PROCESS: Final[Codes] = {
    entry.OK: "stopped by SIGTERM or SIGINT, after running calls were answered",
    entry.FAILED: "a part failed for good; the log names it",
    entry.BAD_SETTINGS: "bad settings; every problem is named",
    SECOND_SIGNAL: "plus the number of the signal: a second signal ended it at once",
}
"""What runs until it is stopped."""
