"""The words of the kernel's traffic control, as messages are built and read. Pure.

A request and an entry of a dump have one shape: a header of netlink, a header of traffic control,
attributes. Numbers are in the order of this machine but for what goes on the wire.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

NEW_QUEUE, DELETE_QUEUE, GET_QUEUE = 36, 37, 38
NEW_CLASS, DELETE_CLASS, GET_CLASS = 40, 41, 42
NEW_FILTER, DELETE_FILTER, GET_FILTER = 44, 45, 46
GET_ADDRESS = 22
ERROR, DONE = 2, 3
REQUEST, ACKNOWLEDGE, INTERRUPTED = 0x1, 0x4, 0x10
DUMP = 0x300
EXCLUSIVE, CREATE = 0x200, 0x400
ROOT: Final = 0xFFFF_FFFF
IPV4, IPV6, EVERYTHING = 0x0800, 0x86DD, 0x0003
"""Protocols of packets as Ethernet names them."""

_HEADER = struct.Struct("=IHHII")
_CONTROL = struct.Struct("=BxxxiIII")
_ATTRIBUTE = struct.Struct("=HH")
_KIND, _OPTIONS = 1, 2
_HTB_PARAMETERS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_GLOBAL = struct.Struct("=IIIII")
# Rate and ceiling (cell, link layer, overhead, alignment, least size, bytes per second), then
# burst, burst at the ceiling, quantum, level, priority.
_CLASS = struct.Struct("=BBHhHI BBHhHI IIIII")
_ETHERNET = 1
_HTB_VERSION, _QUANTUM_RATIO, _QUANTUM = 3, 10, 20_000
_LEAST_BURST, _BURSTS_PER_SECOND = 16 * 1024, 250
_U32_CLASS, _U32_TABLE, _U32_LINK, _U32_SIZE, _U32_SELECTOR = 1, 2, 3, 4, 5
_SELECTOR = struct.Struct("=BBBxHHhh4s")
_MATCH = struct.Struct("=4s4sii")
_TERMINAL = 1
_ALL, _NONE = b"\xff" * 4, bytes(4)
_MOST_32 = 0xFFFF_FFFF
BUCKETS: Final = 256
"""Size of a table of addresses; the last byte of an address says where it stands."""


class Queue(msgspec.Struct, frozen=True):
    """What orders the packets of an interface, or of a class of it."""

    interface: int
    kind: str
    handle: int
    parent: int


class Class(msgspec.Struct, frozen=True):
    """A part of the bandwidth: bytes per second that are sure, and the most that it may have."""

    handle: int
    parent: int
    rate: int
    ceiling: int
    priority: int


class Filter(msgspec.Struct, frozen=True):
    """A rule that puts packets into a class."""

    kind: str
    protocol: int
    priority: int
    handle: int
    source: bytes = b""
    """The address that packets come from; empty where the rule asks for something else."""
    target: int = 0
    """The class."""
    link: int = 0
    """The table in which it looks further."""


class Answer(msgspec.Struct, frozen=True):
    """One message of the kernel."""

    kind: int
    flags: int
    body: bytes


class _Table(msgspec.Struct, frozen=True):
    """Where the addresses of one protocol are looked up."""

    priority: int
    handle: int
    offset: int
    """Where the address stands in a packet."""
    size: int


_TABLES: Final = {IPV4: _Table(1, 0x0010_0000, 12, 4), IPV6: _Table(2, 0x0020_0000, 8, 16)}
_OF_CGROUPS = 3
"""The priority of the rule that asks for the group of the sender."""


def message(kind: int, flags: int, body: bytes) -> bytes:
    """Return a whole request; who sends it numbers it."""
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, kind, flags | REQUEST, 0, 0) + body


def answers(data: bytes) -> Iterator[Answer]:
    """Read the messages of one datagram."""
    while len(data) >= _HEADER.size:
        length, kind, flags, _, _ = _HEADER.unpack_from(data)
        if not _HEADER.size <= length <= len(data):
            raise ValueError("a message of the kernel is cut off")
        yield Answer(kind, flags, data[_HEADER.size : length])
        data = data[_aligned(length) :]


def failure(answer: Answer) -> tuple[int, str]:
    """Return the number of the error in an acknowledgement, 0 for none, and the kernel's words."""
    (number,) = struct.unpack_from("=i", answer.body)
    # Only the header of the request comes back, then what the kernel has to say.
    said = _attributes(answer.body[4 + _HEADER.size :]).get(1, b"") if answer.flags & 0x200 else b""
    return -number, said.rstrip(b"\0").decode("ascii", "replace")


def dump(kind: int, interface: int = 0, parent: int = 0) -> bytes:
    """Ask for all objects of a kind."""
    return message(kind, DUMP, _control(interface, 0, parent, 0))


def dump_addresses() -> bytes:
    """Ask for the addresses of this machine."""
    return message(GET_ADDRESS, DUMP, struct.pack("=BBBBI", 0, 0, 0, 0, 0))


def address(answer: Answer) -> bytes:
    """Return an address of this machine."""
    found = _attributes(answer.body[8:])
    return found.get(2) or found.get(1, b"")


def new_queue(interface: int, handle: int, default: int) -> bytes:
    """Put a hierarchy of classes at the root of an interface where only a default one stands."""
    options = _attribute(_HTB_INIT, _GLOBAL.pack(_HTB_VERSION, _QUANTUM_RATIO, default, 0, 0))
    body = _control(interface, handle, ROOT, 0) + _described("htb", options)
    return message(NEW_QUEUE, CREATE | EXCLUSIVE | ACKNOWLEDGE, body)


def delete_queue(interface: int, handle: int) -> bytes:
    """Take a root away with everything below it; the kernel puts its default one back."""
    body = _control(interface, handle, ROOT, 0)
    return message(DELETE_QUEUE, ACKNOWLEDGE, body)


def queue(answer: Answer) -> Queue:
    """Read a queue."""
    interface, handle, parent, _ = _controlled(answer.body)
    return Queue(interface, _kind(answer.body), handle, parent)


def new_class(interface: int, made: Class) -> bytes:
    """Make a class, or change the one that stands there."""
    rate, ceiling = min(made.rate, _MOST_32), min(made.ceiling, _MOST_32)
    speeds = [(0, _ETHERNET, 0, 0, 0, rate), (0, _ETHERNET, 0, 0, 0, ceiling)]
    bursts = (_burst(made.rate), _burst(made.ceiling))
    # Who borrows at the same priority takes turns: as much for everybody, whatever is sure for it.
    parameters = _CLASS.pack(*speeds[0], *speeds[1], *bursts, _QUANTUM, 0, made.priority)
    options = _attribute(_HTB_PARAMETERS, parameters)
    for kind, value in ((_HTB_RATE64, made.rate), (_HTB_CEIL64, made.ceiling)):
        if value > _MOST_32:
            options += _attribute(kind, struct.pack("=Q", value))
    body = _control(interface, made.handle, made.parent, 0) + _described("htb", options)
    return message(NEW_CLASS, CREATE | ACKNOWLEDGE, body)


def delete_class(interface: int, handle: int) -> bytes:
    """Take a class away; its packets are lost."""
    return message(DELETE_CLASS, ACKNOWLEDGE, _control(interface, handle, 0, 0))


def read_class(answer: Answer) -> Class | None:
    """Read a class; None where it is of another kind of queue."""
    if _kind(answer.body) != "htb":
        return None
    _, handle, parent, _ = _controlled(answer.body)
    options = _attributes(_attributes(answer.body[_CONTROL.size :])[_OPTIONS])
    found = _CLASS.unpack(options[_HTB_PARAMETERS])
    rate, ceiling = found[5], found[11]
    if _HTB_RATE64 in options:
        (rate,) = struct.unpack("=Q", options[_HTB_RATE64])
    if _HTB_CEIL64 in options:
        (ceiling,) = struct.unpack("=Q", options[_HTB_CEIL64])
    return Class(handle, parent, rate, ceiling, found[16])


def without_lookup(rules: Iterable[Filter]) -> tuple[int, ...]:
    """Return the protocols whose addresses no rule looks up."""
    links = {rule.link for rule in rules}
    return tuple(protocol for protocol, table in _TABLES.items() if table.handle not in links)


def new_table(interface: int, root: int, protocol: int) -> bytes:
    """Make a table of addresses."""
    table = _TABLES[protocol]
    body = _control(interface, table.handle, root, _info(table.priority, protocol))
    size = _attribute(_U32_SIZE, struct.pack("=I", BUCKETS))
    return message(NEW_FILTER, CREATE | ACKNOWLEDGE, body + _described("u32", size))


def new_lookup(interface: int, root: int, protocol: int) -> bytes:
    """Look every packet up in the table of its protocol, by the last byte of where it is from."""
    table = _TABLES[protocol]
    last = table.offset + table.size - 4
    selector = _SELECTOR.pack(0, 0, 1, 0, 0, 0, last, b"\0\0\0\xff")
    selector += _MATCH.pack(_NONE, _NONE, 0, 0)
    options = _attribute(_U32_LINK, struct.pack("=I", table.handle))
    options += _attribute(_U32_SELECTOR, selector)
    body = _control(interface, 0, root, _info(table.priority, protocol))
    return message(NEW_FILTER, CREATE | ACKNOWLEDGE, body + _described("u32", options))


def new_source(interface: int, root: int, source: bytes, target: int) -> bytes:
    """Put what comes from an address into a class."""
    protocol = IPV4 if len(source) == 4 else IPV6
    table = _TABLES[protocol]
    words = [source[at : at + 4] for at in range(0, len(source), 4)]
    selector = _SELECTOR.pack(_TERMINAL, 0, len(words), 0, 0, 0, 0, _NONE)
    for position, word in enumerate(words):
        selector += _MATCH.pack(_ALL, word, table.offset + 4 * position, 0)
    options = _attribute(_U32_CLASS, struct.pack("=I", target))
    options += _attribute(_U32_TABLE, struct.pack("=I", table.handle | source[-1] << 12))
    options += _attribute(_U32_SELECTOR, selector)
    body = _control(interface, 0, root, _info(table.priority, protocol))
    return message(NEW_FILTER, CREATE | ACKNOWLEDGE, body + _described("u32", options))


def new_cgroup_rule(interface: int, root: int) -> bytes:
    """Let the group of the sender (net_cls.classid) say the class."""
    body = _control(interface, 1, root, _info(_OF_CGROUPS, EVERYTHING))
    return message(NEW_FILTER, CREATE | EXCLUSIVE | ACKNOWLEDGE, body + _described("cgroup", b""))


def delete_filter(interface: int, root: int, rule: Filter) -> bytes:
    """Take one rule away."""
    body = _control(interface, rule.handle, root, _info(rule.priority, rule.protocol))
    return message(DELETE_FILTER, ACKNOWLEDGE, body + _attribute(_KIND, rule.kind.encode() + b"\0"))


def read_filter(answer: Answer) -> Filter:
    """Read a rule."""
    _, handle, _, info = _controlled(answer.body)
    protocol = struct.unpack("!H", struct.pack("=H", info & 0xFFFF))[0]
    found = _attributes(answer.body[_CONTROL.size :])
    kind = _kind(answer.body)
    rule = Filter(kind, protocol, info >> 16, handle)
    options = _attributes(found.get(_OPTIONS, b"")) if kind == "u32" else {}
    if _U32_LINK in options:
        (link,) = struct.unpack("=I", options[_U32_LINK])
        return msgspec.structs.replace(rule, link=link)
    if _U32_CLASS not in options or _U32_SELECTOR not in options:
        return rule
    (target,) = struct.unpack("=I", options[_U32_CLASS])
    return msgspec.structs.replace(
        rule, source=_source(protocol, options[_U32_SELECTOR]), target=target
    )


def _source(protocol: int, selector: bytes) -> bytes:
    """Return the address that a selector asks for, nothing where it asks for something else."""
    table, count = _TABLES.get(protocol), selector[2]
    matches = selector[_SELECTOR.size : _SELECTOR.size + count * _MATCH.size]
    found = list(_MATCH.iter_unpack(matches))
    if table is None or count * 4 != table.size or len(found) != count:
        return b""
    for position, (mask, _, offset, _) in enumerate(found):
        if mask != _ALL or offset != table.offset + 4 * position:
            return b""
    return b"".join(value for _, value, _, _ in found)


def _burst(rate: int) -> int:
    """Return how much may leave at once, as its time in the kernel's units of 64 ns."""
    size = max(_LEAST_BURST, rate // _BURSTS_PER_SECOND)
    return min(size * 1_000_000_000 // max(rate, 1) >> 6, _MOST_32)


def _info(priority: int, protocol: int) -> int:
    (swapped,) = struct.unpack("=H", struct.pack("!H", protocol))
    return priority << 16 | int(swapped)


def _control(interface: int, handle: int, parent: int, info: int) -> bytes:
    return _CONTROL.pack(0, interface, handle, parent, info)


def _controlled(body: bytes) -> tuple[int, int, int, int]:
    _, interface, handle, parent, info = _CONTROL.unpack_from(body)
    return interface, handle, parent, info


def _kind(body: bytes) -> str:
    found = _attributes(body[_CONTROL.size :]).get(_KIND, b"")
    return found.rstrip(b"\0").decode("ascii", "replace")


def _described(kind: str, options: bytes) -> bytes:
    return _attribute(_KIND, kind.encode() + b"\0") + _attribute(_OPTIONS, options)


def _attribute(kind: int, data: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(data)
    return _ATTRIBUTE.pack(length, kind) + data + bytes(_aligned(length) - length)


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= length <= len(data):
            raise ValueError("an attribute of the kernel is cut off")
        found[kind & 0x3FFF] = data[_ATTRIBUTE.size : length]
        data = data[_aligned(length) :]
    return found


def _aligned(length: int) -> int:
    return (length + 3) & ~3
