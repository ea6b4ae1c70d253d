"""The configuration file of the descheduler as the command line meets it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli import descheduler_options
from cli.output import terminal
from descheduler.rounds import configured
from process.configuration import settings, sources
from process.runtime import entry

_KIND: Final = re.compile(
    rf"^\s*[\"']?kind[\"']?:\s*[\"']?{descheduler_options.KIND}\b", re.MULTILINE
)


def is_theirs(file: str) -> bool:
    """Whether a file configures profiles of the descheduler, as Koordinator's `--config` does."""
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        # The process says itself that it cannot read it.
        return False
    return _KIND.search(text) is not None


def written(target: str, arguments: Sequence[str]) -> int:
    """Write the configuration that these arguments name, with every default; return the status."""
    flag = "--configuration="
    named = next((word.removeprefix(flag) for word in arguments if word.startswith(flag)), "")
    try:
        found = configured.load(Path(named) if named else None)
        Path(target).write_text(sources.to_yaml(dict(found.effective)), encoding="utf-8")
    except settings.SettingsError as error:
        for problem in error.problems:
            terminal.warn(f"koord descheduler: {problem}")
        return entry.BAD_SETTINGS
    except OSError as error:
        terminal.warn(f"koord descheduler: {target} cannot be written: {error.strerror}")
        return entry.FAILED
    return entry.OK
