"""The parser of the command line: argparse, which also says what was probably meant."""

import argparse
import difflib
import re
from collections.abc import Iterator
from typing import Final, NoReturn

_CHOICE: Final = re.compile(r"invalid choice: '([^']*)'")
_UNKNOWN: Final = re.compile(r"unrecognized arguments: .*?(?<!\S)(--?[A-Za-z][^\s=]*)")
_CLOSE: Final = 0.6


class Parser(argparse.ArgumentParser):
    """A parser of one command; subcommands are parsers of the same kind."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and what comes near it, and end with exit code 2."""
        super().error(f"{message}{self._hint(message)}")

    def _hint(self, message: str) -> str:
        choice, unknown = _CHOICE.search(message), _UNKNOWN.search(message)
        if choice is not None:
            return _meant(choice[1], [word for word, _ in self.commands()])
        if unknown is not None:
            flags = list(self.every_flag())
            if unknown[1] in flags:
                return f"; this command takes no {unknown[1]}"
            return _meant(unknown[1], flags)
        return ""

    def commands(self) -> Iterator[tuple[str, "Parser"]]:
        """Yield the subcommands by name."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - no public name
                yield from action.choices.items()

    def helps(self) -> dict[str, str]:
        """Return what each subcommand is for."""
        return {
            choice.dest: choice.help or ""
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
            for choice in action._choices_actions  # noqa: SLF001 - as above
        }

    def options(self) -> Iterator[argparse.Action]:
        """Yield the options of this command that its help shows."""
        for action in self._actions:
            if action.option_strings and action.help != argparse.SUPPRESS:
                yield action

    def every_flag(self) -> Iterator[str]:
        """Yield the flags of this command and of those below it."""
        for action in self.options():
            yield from action.option_strings
        for _, command in self.commands():
            yield from command.every_flag()


def _meant(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=2, cutoff=_CLOSE)
    return f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
