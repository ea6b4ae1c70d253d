"""The files behind the roles of an edit: read, compared and written in the kernel's own words."""

import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from agent.apply.properties import partial_properties
from agent.host import files
from agent.model import cgroup_layout, cgroup_properties, edits

if TYPE_CHECKING:
    from agent.apply import traffic_control
    from agent.apply.tasks import kernel as kernels
    from agent.host import netlink_socket

# A group that is made idle loses its shares, and gets the default ones when it is not any more.
_OF_IDLE: Final = {1: ("3", "1024"), 2: ("0", "1", "100")}
MOST_TEXTS: Final = 4
_RANKS: Final = {
    edits.Role.CPU_BURST: 0,
    edits.Role.CPU_QUOTA: 1,
    edits.Role.CPU_SHARES: 1,
}


class Knobs:
    """Access to the properties of groups on one host."""

    def __init__(
        self,
        arranged: cgroup_layout.Layout,
        kernel: "kernels.Kernel | None" = None,
        link: "netlink_socket.Link | None" = None,
        read: partial_properties.Read = files.read,
    ) -> None:
        """`read` reads a property that is a whole file."""
        self._layout = arranged
        self._read = read
        self._link = link
        self._kernel = kernel
        self._places: dict[edits.Role, partial_properties.Place] = {}
        self._interfaces: traffic_control.Interfaces | None = None

    @property
    def inherits(self) -> bool:
        """Whether a new group is born with the cpus of the one above written into it."""
        return self._layout.version == 1

    def fresh(self) -> None:
        """Look at everything again that is read once per round of edits."""
        if self._interfaces is not None:
            self._interfaces.fresh()
        self._places.pop(edits.Role.PROCESS_RESCTRL, None)

    def read(self, role: edits.Role, group: str) -> str:
        """Return the text of a property, without the newline."""
        return self._place(role).read(group)

    def write(self, role: edits.Role, group: str, text: str) -> None:
        """Write a property."""
        self._place(role).write(group, text)

    def _place(self, role: edits.Role) -> partial_properties.Place:
        found = self._places.get(role)
        if found is None:
            found = self._places[role] = self._made(role)
        return found

    def _made(self, role: edits.Role) -> partial_properties.Place:
        if role in edits.OF_PROCESSES:
            return self._of_processes(role)
        if role in edits.OF_NETWORK:
            from agent.apply import traffic_control  # noqa: PLC0415 - 153 KiB

            self._interfaces = self._interfaces or traffic_control.Interfaces(self._link)
            return traffic_control.place(role, self._interfaces)
        return partial_properties.place(self._layout, role, self._read)

    def _of_processes(self, role: edits.Role) -> partial_properties.Place:
        from agent.apply import processes  # noqa: PLC0415 - 104 KiB, most agents change files alone
        from agent.apply.tasks import kernel  # noqa: PLC0415 - 33 KiB

        self._kernel = self._kernel or kernel.Host()
        return processes.place(self._layout, role, self._kernel)

    def aim(self, role: edits.Role, current: str, value: str) -> tuple[str, str]:
        """Return the text that sets a value on this host, and the part of it that is ours.

        They differ where a file has lines of several devices: those that the value does not name
        belong to other programs and stay as they are.
        """
        ours = cgroup_properties.render(role, value, self._layout.version)
        if role not in cgroup_properties.BY_DEVICE:
            return ours, ours
        return _lines(
            {**cgroup_properties.devices(current), **cgroup_properties.devices(ours)}
        ), ours

    def released(
        self, role: edits.Role, current: str, previous: str, ours: Sequence[str]
    ) -> str | None:
        """Return the text without our hand in it; None where none of it is ours."""
        if role is edits.Role.RESCTRL_GROUP and previous == edits.PRESENT:
            # It was removed because its pod is gone, and is not made again.
            return None
        if role not in cgroup_properties.BY_DEVICE:
            return previous if self.any_of(role, current, ours) else None
        now, before = _limits(current), _limits(previous)
        claims = [cgroup_properties.devices(text) for text in ours]
        after = dict(now)
        for name in {name for claim in claims for name in claim}:
            wrote = {
                _limits(f"{name} {claim[name]}").get(name) for claim in claims if name in claim
            }
            if now.get(name) in wrote:
                after[name] = before.get(name, "")
        after = {name: value for name, value in after.items() if value}
        return None if after == now else _lines(after)

    def held(self, role: edits.Role, current: str, ours: Sequence[str]) -> tuple[str, ...]:
        """Return which texts of ours have a part in what stands there now."""
        if role in cgroup_properties.BY_DEVICE:
            now = _limits(current)
            lines = [(text, cgroup_properties.devices(text)) for text in ours]
            return tuple(
                text
                for text, claim in lines
                if any(
                    _limits(f"{name} {claim[name]}").get(name) == now.get(name) for name in claim
                )
            )
        if role in edits.OF_PROCESSES or role is edits.Role.NETWORK_QUEUE:
            return tuple(ours[-MOST_TEXTS:])
        return (current,) if self.any_of(role, current, ours) else ()

    def any_of(self, role: edits.Role, current: str, ours: Sequence[str]) -> bool:
        """Tell whether a text is one of ours; processes that differ were born since."""
        if role in edits.OF_PROCESSES and current == partial_properties.MIXED:
            return True
        if role is edits.Role.NETWORK_QUEUE:
            # Told by its handle: a crash leaves half a tree.
            return current.startswith(cgroup_properties.OWN_QUEUE) and bool(ours)
        return any(self.same(role, current, text) for text in ours)

    def rounded(self, role: edits.Role, texts: Iterable[str]) -> tuple[str, ...]:
        """Return what the kernel makes of amounts of memory, which it counts in whole pages."""
        if role not in cgroup_properties.BYTES:
            return ()
        amounts = (int(text) for text in texts if text.isascii() and text.isdigit())
        return tuple(str(amount - amount % mmap.PAGESIZE) for amount in amounts)

    def same(self, role: edits.Role, one: str, other: str) -> bool:
        """Tell whether two texts mean the same."""
        return cgroup_properties.same(role, one, other)

    def wider(self, role: edits.Role, current: str, target: str) -> str | None:
        """Return what to write before the groups below change; None where nothing needs to be.

        A group may only have what the one above has: what grows is written from the top, what
        shrinks from below, and cpus that move do both.
        """
        if role in edits.OF_NETWORK or role is edits.Role.RESCTRL_MOUNT:
            # What is made from the top is taken away from below.
            return None if _gone(target) else target
        if role in cgroup_properties.GROWING:
            before, after = (
                cgroup_properties.amount(role, current),
                cgroup_properties.amount(role, target),
            )
            grows = before is not None and after is not None and after > before
            return target if grows else None
        if role is edits.Role.IO_COST_QOS:
            # Only while the cost of a disk is counted do the groups below have weights of it.
            return target if "enable=1" in target else None
        if role is not edits.Role.CPUSET:
            return None
        if not target and self._layout.version == 2:
            # All that the group above has, so that one has to have its own again.
            return target
        return cgroup_properties.both(current, target)

    def rank(self, role: edits.Role, target: str) -> int:
        """Return when, among the changes of one group that take away, this one is legal.

        A burst must not exceed its quota; shares can be set only while a group is not idle.
        """
        if role is edits.Role.CPU_IDLE:
            return 0 if target == "0" else 2
        if role is edits.Role.RESCTRL_MOUNT:
            return 3
        return _RANKS.get(role, 1)

    def side_effect(self, role: edits.Role) -> tuple[edits.Role, tuple[str, ...]] | None:
        """Return which other property the kernel changes along with one, and to what."""
        if role is edits.Role.CPU_IDLE:
            return edits.Role.CPU_SHARES, _OF_IDLE[self._layout.version]
        return None

    def pointless(self, role: edits.Role, group: str, idle: str | None) -> bool:
        """Tell whether a group takes no such property, given what it shall be (None: as it is)."""
        if role is not edits.Role.CPU_SHARES:
            return False
        try:
            return (idle or self.read(edits.Role.CPU_IDLE, group)) == "1"
        except files.ReadingError:
            return False

    def lacks(self, role: edits.Role, group: str) -> bool:
        """Tell whether there is the group and not the property, which its kernel does not have."""
        if role in edits.OF_PROCESSES | edits.OF_NETWORK:
            return False
        if role in edits.MAKERS:
            return True
        file = cgroup_properties.FILES[role]
        if file.controller == "terway":
            return False
        # What is a property of the host, or of resctrl, is lacking as soon as it is not there.
        return file.controller in ("proc", "sys", "resctrl") or os.access(
            self._layout.folder(file, group), os.F_OK
        )

    def children(self, role: edits.Role, group: str) -> list[str]:
        """List the groups directly below one; none where it is gone."""
        try:
            with os.scandir(self._layout.folder(cgroup_properties.FILES[role], group)) as entries:
                found = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        # What no journal can name is left to who made it.
        return [f"{group}/{name}" for name in found if files.is_text(name)]


def _gone(target: str) -> bool:
    """Tell whether a text of the network or of a mount means that something of ours ends."""
    return target == edits.ABSENT or (" " in target and target.endswith(":"))


def _limits(text: str) -> dict[str, str]:
    """Return the lines that limit something, by device."""
    return {
        name: value
        for name, value in cgroup_properties.devices(text).items()
        if value not in ("0", "max")
    }


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{name} {value}" for name, value in sorted(values.items()))
