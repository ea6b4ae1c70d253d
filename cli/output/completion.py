"""Shell completion made from the parser, so that it knows every command and flag. Pure."""

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from cli import parsing

SHELLS: Final = ("bash", "zsh", "fish")
_FORMATS: Final = ("table", "wide", "json", "yaml", "name", "jsonpath=")


class Command(NamedTuple):
    """One command: the words that lead to it, and what may follow."""

    path: tuple[str, ...]
    words: tuple[tuple[str, str], ...]
    """Subcommands and what they are for."""
    flags: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...]
    """Names of a flag, what it is for, and its values where they are few."""


def commands(parser: parsing.Parser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield a command and all that are below it."""
    helps = parser.helps()
    # Names of actions hold a space, and are completed word by word.
    below = [(word, one) for word, one in parser.commands() if " " not in word]
    yield Command(
        path,
        tuple((word, helps.get(word, "")) for word, _ in below),
        tuple(
            (tuple(one.option_strings), _line(one.help or ""), _values(one))
            for one in parser.options()
        ),
    )
    for word, one in below:
        yield from commands(one, (*path, word))


def _values(action: argparse.Action) -> tuple[str, ...]:
    if action.choices is not None:
        return tuple(str(one) for one in action.choices)
    return _FORMATS if "--output" in action.option_strings and "-o" in action.option_strings else ()


def _line(text: str) -> str:
    return re.sub(r"%\(\w+\)s", "", " ".join(text.split())).replace("%%", "%")


def script(shell: str, known: Sequence[Command]) -> str:
    """Return what a shell reads to complete `koord`."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](known)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _cases(known: Sequence[Command]) -> Iterator[str]:
    """Yield the cases that follow the words already typed, for bash and zsh alike."""
    yield '  for word in "${typed[@]}"; do'
    yield '    case "$at $word" in'
    for one in known:
        if one.path:
            name = " ".join(("koord", *one.path))
            yield f"      {_quoted(name)}) at={_quoted(name)} ;;"
    yield "    esac"
    yield "  done"
    yield '  case "$at $before" in'
    for one in known:
        name = " ".join(("koord", *one.path))
        for flags, _, values in one.flags:
            if values:
                labels = "|".join(_quoted(f"{name} {flag}") for flag in flags)
                yield f"    {labels}) offered=({' '.join(map(_quoted, values))}); return ;;"
    yield "  esac"
    yield '  case "$at" in'
    for one in known:
        words = [word for word, _ in one.words] + [f for flags, _, _ in one.flags for f in flags]
        name = " ".join(("koord", *one.path))
        yield f"    {_quoted(name)}) offered=({' '.join(map(_quoted, words))}) ;;"
    yield "  esac"


def _bash(known: Sequence[Command]) -> str:
    return "\n".join(
        (
            "# bash completion of koord: source <(koord completion bash)",
            "_koord_offered() {",
            "  local word",
            *_cases(known),
            "}",
            "_koord() {",
            '  local at=koord before="${COMP_WORDS[COMP_CWORD-1]}"',
            '  local -a typed=("${COMP_WORDS[@]:1:COMP_CWORD-1}") offered=()',
            "  _koord_offered",
            '  local now="${COMP_WORDS[COMP_CWORD]}"',
            '  COMPREPLY=($(compgen -W "${offered[*]}" -- "$now"))',
            "}",
            "complete -o default -F _koord koord kubectl-koord",
            "",
        )
    )


def _zsh(known: Sequence[Command]) -> str:
    return "\n".join(
        (
            "#compdef koord kubectl-koord",
            "# zsh completion of koord: source <(koord completion zsh)",
            "_koord_offered() {",
            "  local word",
            *_cases(known),
            "}",
            "_koord() {",
            '  local at=koord before="${words[CURRENT-1]}"',
            '  local -a typed offered; typed=("${(@)words[2,CURRENT-1]}")',
            "  _koord_offered",
            '  if (( ${#offered} )); then compadd -- "${offered[@]}"; else _files; fi',
            "}",
            "compdef _koord koord kubectl-koord",
            "",
        )
    )


def _fish(known: Sequence[Command]) -> str:
    lines = ["# fish completion of koord: koord completion fish | source", "complete -c koord -f"]
    for one in known:
        seen = [f"__fish_seen_subcommand_from {word}" for word in one.path]
        below = " ".join(word for word, _ in one.words)
        if not one.path:
            seen = ["__fish_use_subcommand"]
        elif below:
            seen.append(f"not __fish_seen_subcommand_from {below}")
        condition = _quoted("; and ".join(seen))
        lines += [
            f"complete -c koord -n {condition} -a {word} -d {_quoted(what)}"
            for word, what in one.words
        ]
        for flags, what, values in one.flags:
            named = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in flags
            )
            given = f" -x -a {_quoted(' '.join(values))}" if values else ""
            lines.append(f"complete -c koord -n {condition} {named}{given} -d {_quoted(what)}")
    return "\n".join((*lines, ""))
