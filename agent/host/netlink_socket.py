"""A word with the kernel about the network of this process, and what it says of itself."""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import Final, Protocol

from agent.host import files, tc_messages

_SOL_NETLINK, _CAP_ACK, _EXT_ACK = 270, 10, 11
_SIZE: Final = 64 * 1024
_SECONDS = 2.0
_TRIES = 3
_ROUTE_UP = 0x1
_ROUTES, _ROUTES_6 = "/proc/thread-self/net/route", "/proc/thread-self/net/ipv6_route"


class Link(Protocol):
    """Who carries requests to the kernel."""

    def talk(self, request: bytes) -> None:
        """Ask for a change; raises OSError with what the kernel says."""

    def dump(self, request: bytes) -> list[tc_messages.Answer]:
        """Ask for everything of a kind; raises OSError."""

    def index(self, interface: str) -> int:
        """Return the number of an interface; raises OSError where it is gone."""

    def namespace(self) -> int:
        """Return which network this process is in."""


class Kernel:
    """The kernel under this process."""

    def talk(self, request: bytes) -> None:
        """Ask for a change; raises OSError with what the kernel says."""
        with _opened() as opened:
            opened.send(_numbered(request))
            for answer in tc_messages.answers(opened.recv(_SIZE)):
                if answer.kind == tc_messages.ERROR:
                    _raise(answer)

    def dump(self, request: bytes) -> list[tc_messages.Answer]:
        """Ask for everything of a kind; one that changed meanwhile is asked for again."""
        found: list[tc_messages.Answer] = []
        for _ in range(_TRIES):
            with _opened() as opened:
                opened.send(_numbered(request))
                found = list(_dumped(opened))
            if not any(answer.flags & tc_messages.INTERRUPTED for answer in found):
                break
        return found

    def index(self, interface: str) -> int:
        """Return the number of an interface; raises OSError where it is gone."""
        try:
            return socket.if_nametoindex(interface)
        except OSError as error:
            raise OSError(errno.ENODEV, f"no network interface {interface}") from error

    def namespace(self) -> int:
        """Return which network this process is in."""
        return os.stat("/proc/thread-self/ns/net").st_ino  # noqa: PTH116 - an agent keeps no paths


def text(address: bytes) -> str:
    """Write an address as people do."""
    family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, address)


def packed(address: str) -> bytes:
    """Read an address; raises OSError where it is none."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def default_interface() -> str:
    """Return through which interface everything leaves that has no other way; empty for none."""
    found: list[tuple[int, str]] = []
    for line in _lines(_ROUTES)[1:]:
        words = line.split()
        if len(words) > 7 and words[1] == words[7] == "00000000" and int(words[3], 16) & _ROUTE_UP:
            found.append((int(words[6]), words[0]))
    for line in _lines(_ROUTES_6) if not found else ():
        words = line.split()
        if len(words) > 9 and words[1] == "00" and set(words[0]) == {"0"} and words[9] != "lo":
            found.append((int(words[5], 16), words[9]))
    return min(found)[1] if found else ""


def _lines(path: str) -> list[str]:
    try:
        return files.read(path, 1 << 20).decode("ascii", "replace").splitlines()
    except files.ReadingError:
        return []


def _opened() -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        opened.settimeout(_SECONDS)
        for option in (_CAP_ACK, _EXT_ACK):
            opened.setsockopt(_SOL_NETLINK, option, 1)
        opened.connect((0, 0))
    except OSError:
        opened.close()
        raise
    return opened


def _numbered(request: bytes) -> bytes:
    # Every request has a socket of its own, so that one number does for all.
    return request[:8] + struct.pack("=I", 1) + request[12:]


def _dumped(opened: socket.socket) -> Iterator[tc_messages.Answer]:
    while True:
        for answer in tc_messages.answers(opened.recv(_SIZE)):
            if answer.kind == tc_messages.DONE:
                return
            if answer.kind == tc_messages.ERROR:
                _raise(answer)
                return
            yield answer


def _raise(answer: tc_messages.Answer) -> None:
    number, said = tc_messages.failure(answer)
    if number:
        raise OSError(number, f"{os.strerror(number)}{f': {said}' if said else ''}")
