"""Completion is made from the parser, and runs in the shells that are installed."""

import re
import shutil
import subprocess

import pytest

from cli import main, parsing
from cli.output import completion


@pytest.fixture(scope="module")
def known():
    return tuple(completion.commands(main.parser_of_all()))


def test_every_command_is_known(known):
    paths = {one.path for one in known}
    assert {(name,) for name in (*main.COMMANDS, *main.PROCESSES)} <= paths
    assert ("explain", "pod") in paths
    for shell in completion.SHELLS:
        script = completion.script(shell, known)
        for path in paths:
            assert not path or path[-1] in script


def completed(known, shell, *words):
    script = completion.script(shell, known)
    if shell == "bash":
        typed = " ".join(f"'{word}'" for word in ("koord", *words))
        code = (
            f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; _koord; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        command = ["bash", "--norc", "-c", code]
    else:
        typed = " ".join(f"'{word}'" for word in ("koord", *words))
        code = (
            "compdef() { : }; compadd() { shift; print -l -- $@ }; _files() { : }\n"
            f"{script}\n"
            f"words=({typed}); CURRENT={len(words) + 1}; _koord"
        )
        command = ["zsh", "-f", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    assert done.stderr == ""
    return set(done.stdout.split())


CASES = [
    pytest.param(("stat",), {"status"}, id="a command"),
    pytest.param(("explain", "p"), {"pod"}, id="a subcommand"),
    pytest.param(("explain", "pod", "--ku"), {"--kubeconfig"}, id="a flag of a subcommand"),
    pytest.param(("status", "-o", "y"), {"yaml"}, id="a value"),
    pytest.param(("completion", "z"), set(), id="what is no flag is left to files"),
]


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_bash_completes(known, words, expected):
    assert completed(known, "bash", *words) == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
@pytest.mark.parametrize(("words", "expected"), CASES)
def test_zsh_completes(known, words, expected):
    assert expected <= completed(known, "zsh", *words)


def test_fish_is_told_of_every_flag(known):
    script = completion.script("fish", known)
    for one in known:
        for flags, _, _ in one.flags:
            for flag in flags:
                assert re.search(f"-[ls] {re.escape(flag.lstrip('-'))}( |$)", script, re.MULTILINE)
    if shutil.which("fish"):
        subprocess.run(["fish", "--no-execute"], input=script, text=True, check=True, timeout=20)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("statsu",), "did you mean status"),
        (("status", "--kubeconfg=x"), "did you mean --kubeconfig"),
        (("explain", "pood"), "did you mean pod"),
        (("explain", "node", "n", "--topolgy"), "did you mean --topology"),
        (("explain", "node", "n", "-n", "shop"), "this command takes no -n"),
    ],
    ids=" ".join,
)
def test_a_typing_error_is_told_what_was_meant(words, meant, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main([*words])
    assert ended.value.code == 2
    assert meant in capsys.readouterr().err


def test_what_is_like_nothing_gets_no_suggestion(capsys):
    with pytest.raises(SystemExit):
        parsing.Parser().parse_args(["--xyzzy"])
    assert "did you mean" not in capsys.readouterr().err


def test_the_script_is_printed(capsys):
    assert main.main(["completion", "bash"]) == 0
    assert "complete -o default -F _koord koord" in capsys.readouterr().out
