"""`koord completion`: what a shell reads to complete commands and flags."""

import argparse
from typing import Final

from cli.output import completion, terminal
from process.runtime import entry

_HOW: Final = """\
bash:  source <(koord completion bash)        in ~/.bashrc
zsh:   source <(koord completion zsh)         in ~/.zshrc, after compinit
fish:  koord completion fish > ~/.config/fish/completions/koord.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord completion`."""
    parser.description = "Print a completion script. It is made from the commands of this release."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _HOW
    parser.add_argument("shell", choices=completion.SHELLS)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    terminal.page(completion.script(chosen.shell, tuple(completion.commands(chosen.whole()))))
    return entry.OK
