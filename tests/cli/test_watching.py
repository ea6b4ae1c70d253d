"""`-w` shows again until something fails or a person ends it."""

import argparse
import asyncio

import pytest

from cli import watching


class Counted:
    """A clock on which sleeping takes no time."""

    def __init__(self):
        self.slept = []

    async def sleep(self, seconds):
        await asyncio.sleep(0)
        self.slept.append(seconds)


def asked(*words):
    parser = argparse.ArgumentParser()
    watching.add_arguments(parser)
    return parser.parse_args(words)


def test_without_it_the_command_runs_once():
    clock, codes = Counted(), iter([0])
    assert watching.run(asked(), lambda _: next(codes), clock) == 0
    assert clock.slept == []


def test_it_goes_on_until_something_fails():
    clock, codes = Counted(), iter([0, 0, 1])
    assert watching.run(asked("-w"), lambda _: next(codes), clock) == 1
    assert clock.slept == [watching.SECONDS] * 2


def test_ending_it_is_no_failure():
    def ended(_):
        raise KeyboardInterrupt

    assert watching.run(asked("-w"), ended, Counted()) == 0
    with pytest.raises(KeyboardInterrupt):
        watching.run(asked(), ended, Counted())
