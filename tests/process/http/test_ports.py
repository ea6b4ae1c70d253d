"""Ports of child processes are chosen where nobody else takes them."""

import contextlib
import socket
import subprocess
import sys

import pytest

from process.http import ports

# Holds what it took until its input ends.
TAKES = """
import pathlib, sys
from process.http import ports
reservations = ports.Reservations(pathlib.Path(sys.argv[1]), range(*map(int, sys.argv[2:4])))
print(*reservations.take(int(sys.argv[4])), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def taking(path, span, count):
    """Another process that takes ports and holds them; yields it and the ports."""
    command = [sys.executable, "-c", TAKES, path, span.start, span.stop, count]
    with subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        yield other, [int(word) for word in other.stdout.readline().split()]
        other.kill()


@pytest.mark.parametrize(
    ("ephemeral", "expected"),
    [
        pytest.param((32768, 60999), range(20000, 30000), id="linux"),
        pytest.param((25000, 60999), range(20000, 25000), id="lower"),
        pytest.param((1024, 60999), range(61000, 65536), id="from below ours"),
        pytest.param((20500, 60999), range(61000, 65536), id="few below"),
        pytest.param((1024, 65535), range(20000, 30000), id="everything"),
    ],
)
def test_ports_are_chosen_outside_the_ephemeral_range(ephemeral, expected):
    assert ports.span(ephemeral) == expected


def test_no_connection_can_take_a_port_before_its_child_listens():
    low, _ = ports._ephemeral()
    given = ports.take(50)
    assert len(set(given)) == 50
    assert max(given) < low or ports.span(ports._ephemeral()).start > low


def test_a_port_is_given_once():
    assert not set(ports.take(5)) & set(ports.take(5))


def test_processes_get_different_ports(tmp_path):
    span = range(28000, 28040)
    with (
        taking(tmp_path / "lock", span, 8) as (_, first),
        taking(tmp_path / "lock", span, 8) as (
            _,
            second,
        ),
    ):
        mine = ports.Reservations(tmp_path / "lock", span).take(8)
    assert len({*first, *second, *mine}) == 24


def test_the_ports_of_a_killed_process_come_back(tmp_path):
    span = range(28100, 28103)
    with taking(tmp_path / "lock", span, 3) as (other, first):
        mine = ports.Reservations(tmp_path / "lock", span)
        with pytest.raises(ports.NoPortError):
            mine.take(1)
        other.kill()
        other.wait()
        assert sorted(mine.take(3)) == sorted(first)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_in_use_is_passed_over(tmp_path, address):
    with socket.socket() as busy:
        busy.bind((address, 28200))
        busy.listen()
        assert ports.Reservations(tmp_path / "lock", range(28200, 28202)).take(1) == [28201]
