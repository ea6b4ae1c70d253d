"""How an interface shares its bandwidth: read from and told to the kernel.

Three kinds of objects, each a property of its own: the tree of classes at the root of an
interface, the class of one pod, and the rule that puts an address into a class. A root that
another program chose is never replaced; ours is known by its handle, and with it goes everything
below.
"""

import dataclasses
import errno
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from agent.apply.properties import partial_properties
from agent.host import files, netlink_socket, tc_messages
from agent.model import cgroup_properties, edits

HANDLE: Final = 0x4B00_0000
DEFAULT_CLASS = 2
_OF_PODS = 0x100
"""The smallest minor number of the class of a pod."""
_CGROUP = "cgroup"


@dataclasses.dataclass(slots=True)
class Seen:
    """What stands on one interface."""

    index: int
    root: str
    classes: dict[int, tc_messages.Class]
    rules: list[tc_messages.Filter]

    @property
    def ours(self) -> bool:
        """Whether the root is the one that we made."""
        return self.root == cgroup_properties.OWN_QUEUE


class Interfaces:
    """The interfaces of this process's network, read once per round of edits."""

    def __init__(self, link: netlink_socket.Link | None = None) -> None:
        self.link = link or netlink_socket.Kernel()
        self._seen: dict[str, Seen] = {}

    def fresh(self) -> None:
        """Look again: a new round begins."""
        self._seen.clear()

    def forget(self, group: str) -> None:
        """Look again at one interface."""
        self._seen.pop("/".join(group.split("/")[:2]), None)

    def seen(self, group: str) -> Seen:
        """Return what stands on the interface that a group names; raises ReadingError."""
        namespace, _, rest = group.partition("/")
        name = rest.partition("/")[0]
        key = f"{namespace}/{name}"
        if key not in self._seen:
            try:
                self._seen[key] = self._look(namespace, name)
            except OSError as error:
                kind = files.VanishedError if error.errno == errno.ENODEV else files.ReadingError
                raise kind(f"interface {name}: {error.strerror or error}") from error
        return self._seen[key]

    def _look(self, namespace: str, name: str) -> Seen:
        if str(self.link.namespace()) != namespace:
            # The name may stand for another interface here: nothing can be told about that one.
            raise OSError(errno.EXDEV, "it is in another network than this process (hostNetwork)")
        index = self.link.index(name)
        dumped = self.link.dump(tc_messages.dump(tc_messages.GET_QUEUE, index))
        root = next(
            (
                one
                for one in map(tc_messages.queue, dumped)
                if one.interface == index and one.parent == tc_messages.ROOT
            ),
            None,
        )
        seen = Seen(index, described(root), {}, [])
        if seen.ours:
            found = map(
                tc_messages.read_class,
                self.link.dump(tc_messages.dump(tc_messages.GET_CLASS, index)),
            )
            seen.classes = {one.handle & 0xFFFF: one for one in found if one is not None}
            rules = self.link.dump(tc_messages.dump(tc_messages.GET_FILTER, index, HANDLE))
            seen.rules = [tc_messages.read_filter(answer) for answer in rules]
        return seen


def described(root: tc_messages.Queue | None) -> str:
    """Return what orders the packets of an interface, as `tc` writes it."""
    return "none" if root is None else f"{root.kind} {root.handle >> 16:x}:"


def _line(one: tc_messages.Class) -> str:
    above = 0 if one.parent == tc_messages.ROOT else one.parent & 0xFFFF
    return f"{one.handle & 0xFFFF:x} {above:x} {one.rate} {one.ceiling} {one.priority}"


def _class(line: str) -> tc_messages.Class:
    minor, above, rate, ceiling, priority = line.split()
    parent = HANDLE | int(above, 16) if int(above, 16) else HANDLE
    made = (int(rate), int(ceiling), int(priority))
    return tc_messages.Class(HANDLE | int(minor, 16), parent, *made)


class Queue:
    """The root of an interface and the classes that every pod may be in."""

    def __init__(self, interfaces: Interfaces) -> None:
        self._interfaces = interfaces

    def read(self, group: str) -> str:
        """Return what the root is, and its classes where it is ours."""
        seen = self._interfaces.seen(group)
        own = [one for minor, one in sorted(seen.classes.items()) if minor < _OF_PODS]
        lines = [seen.root, *(_line(one) for one in own)]
        if seen.ours and not tc_messages.without_lookup(seen.rules):
            lines.append(cgroup_properties.TABLES)
        return "\n".join(lines)

    def write(self, group: str, text: str) -> None:
        """Make or change the tree, or take it away; the kernel puts its default root back."""
        seen, link = _known(self._interfaces, group), self._interfaces.link
        self._interfaces.forget(group)
        head, *lines = text.split("\n")
        if head != cgroup_properties.OWN_QUEUE:
            if seen.ours:
                link.talk(tc_messages.delete_queue(seen.index, HANDLE))
            return
        if not seen.ours:
            _offered(link.talk, [tc_messages.new_queue(seen.index, HANDLE, DEFAULT_CLASS)])
        try:
            for line in lines:
                if line != cgroup_properties.TABLES:
                    link.talk(tc_messages.new_class(seen.index, _class(line)))
            for protocol in tc_messages.without_lookup(seen.rules):
                self._look_up(seen.index, protocol)
        except OSError:
            if not seen.ours:
                # Half a tree would let everything pass by its default class.
                link.talk(tc_messages.delete_queue(seen.index, HANDLE))
            raise

    def _look_up(self, index: int, protocol: int) -> None:
        link = self._interfaces.link
        try:
            _offered(link.talk, [tc_messages.new_table(index, HANDLE, protocol)])
        except OSError as error:
            # Another program took the rules away, and the table is hidden but still there.
            if error.errno not in (errno.EINVAL, errno.EEXIST):
                raise
        link.talk(tc_messages.new_lookup(index, HANDLE, protocol))


class Limit:
    """The class of one pod."""

    def __init__(self, interfaces: Interfaces) -> None:
        self._interfaces = interfaces

    def read(self, group: str) -> str:
        """Return the class above it, its speeds and its priority, or that there is none."""
        found = self._interfaces.seen(group).classes.get(_minor(group))
        return edits.ABSENT if found is None else _line(found).partition(" ")[2]

    def write(self, group: str, text: str) -> None:
        """Make, change or remove the class."""
        seen, link, minor = _known(self._interfaces, group), self._interfaces.link, _minor(group)
        _mine(seen)
        if text == edits.ABSENT:
            link.talk(tc_messages.delete_class(seen.index, HANDLE | minor))
            seen.classes.pop(minor, None)
            return
        made = _class(f"{minor:x} {text}")
        link.talk(tc_messages.new_class(seen.index, made))
        seen.classes[minor] = made


class Rule:
    """What puts packets into a class: the address they come from, or the group of the sender."""

    def __init__(self, interfaces: Interfaces) -> None:
        self._interfaces = interfaces

    def read(self, group: str) -> str:
        """Return `present` or `absent`."""
        return edits.PRESENT if self._found(group) else edits.ABSENT

    def write(self, group: str, text: str) -> None:
        """Make or remove the rule."""
        seen, link = _known(self._interfaces, group), self._interfaces.link
        _mine(seen)
        if text == edits.ABSENT:
            for rule in self._found(group):
                link.talk(tc_messages.delete_filter(seen.index, HANDLE, rule))
                seen.rules.remove(rule)
            return
        if self._found(group):
            # It was hidden while nothing looked it up.
            return
        source = _source(group)
        if not source:
            _offered(link.talk, [tc_messages.new_cgroup_rule(seen.index, HANDLE)])
            seen.rules.append(tc_messages.Filter(_CGROUP, tc_messages.EVERYTHING, 0, 1))
            return
        target = HANDLE | _minor(group)
        link.talk(tc_messages.new_source(seen.index, HANDLE, source, target))
        # The kernel said yes; its own name of the rule is learned with the next look.
        protocol = tc_messages.IPV4 if len(source) == 4 else tc_messages.IPV6
        seen.rules.append(tc_messages.Filter("u32", protocol, 0, 0, source, target))

    def _found(self, group: str) -> list[tc_messages.Filter]:
        rules = self._interfaces.seen(group).rules
        source = _source(group)
        if not source:
            return [rule for rule in rules if rule.kind == _CGROUP and rule.handle]
        target = HANDLE | _minor(group)
        return [rule for rule in rules if rule.source == source and rule.target == target]


def place(role: edits.Role, interfaces: Interfaces) -> partial_properties.Place:
    """Return the place of a role of the network."""
    kinds: Mapping[edits.Role, Callable[[Interfaces], partial_properties.Place]] = {
        edits.Role.NETWORK_QUEUE: Queue,
        edits.Role.NETWORK_LIMIT: Limit,
        edits.Role.NETWORK_RULE: Rule,
    }
    return kinds[role](interfaces)


def _known(interfaces: Interfaces, group: str) -> Seen:
    try:
        return interfaces.seen(group)
    except files.VanishedError as error:
        raise OSError(errno.ENODEV, str(error)) from error
    except files.ReadingError as error:
        raise OSError(errno.EIO, str(error)) from error


def _mine(seen: Seen) -> None:
    if not seen.ours:
        raise OSError(errno.ENOENT, f"the root is {seen.root}, what hung below ours is gone")


def _minor(group: str) -> int:
    return int(group.split("/")[2], 16)


def _source(group: str) -> bytes:
    """Return the address that a rule asks for; nothing where it asks for the group."""
    words = group.split("/")
    try:
        return b"" if words[2] == _CGROUP else netlink_socket.packed(words[3])
    except OSError as error:
        raise files.ReadingError(f"{words[3]!r} is no address") from error


def _offered(talk: Callable[[bytes], None], requests: Iterable[bytes]) -> None:
    """Send requests; what the kernel does not have is not for an object that is gone."""
    for request in requests:
        try:
            talk(request)
        except FileNotFoundError as error:
            raise OSError(errno.EOPNOTSUPP, f"the kernel lacks it: {error.strerror}") from error
