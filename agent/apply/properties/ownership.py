"""What the journal says of the files that are written: whose text stands there, and whose shall."""

from typing import Final, Protocol

import msgspec

from agent.apply import deliveries, journal
from agent.apply.properties import property_files
from agent.host import files
from agent.model import cgroup_properties, edits

_R = edits.Role
_UNFOLLOWED: Final = (
    edits.OF_PROCESSES
    | edits.OF_NETWORK
    | cgroup_properties.BY_DEVICE
    | cgroup_properties.WHOLE_TEXTS
    | {_R.RESCTRL_GROUP, _R.RESCTRL_L3, _R.RESCTRL_MB, _R.RESCTRL_MOUNT, _R.SCHED_FEATURE}
)
"""Properties that several writers share, or that have no owner beside us."""

Steps = tuple[str | None, str | None]
"""The text to write on the way down the tree and the one on the way up."""


class Write(msgspec.Struct, frozen=True, gc=False):
    """One file that has to change."""

    role: edits.Role
    group: str
    current: str
    target: str
    reason: str
    release: bool
    ours: str = ""
    """What of the target is ours; all of it but for lines of other devices."""

    @property
    def key(self) -> journal.Key:
        """What is written."""
        return self.role, self.group

    @property
    def depth(self) -> int:
        """How far below the root of the groups."""
        return self.group.count("/")


SETTLED_SECONDS: Final = 30.0
"""After which a resize that the kubelet carried out would stand in the list of pods as well."""


class Owners(Protocol):
    """Says what the owners of files, the kubelet above all, write to them."""

    def value(self, role: edits.Role, group: str) -> str | None:
        """Return the text that the owner would have put there by now; None where unknown."""

    def may_write(self, role: edits.Role, group: str, text: str) -> bool:
        """Tell whether a known owner may have written a text."""


class Nobody:
    """Knows of no owner."""

    def value(self, _role: edits.Role, _group: str) -> str | None:
        """Know nothing."""
        return None

    def may_write(self, _role: edits.Role, _group: str, _text: str) -> bool:
        """Take every writer for an unknown one."""
        return False


class Claims:
    """Reads and writes the journal in the terms of writes."""

    def __init__(self, kept: journal.Journal, handles: property_files.Knobs) -> None:
        self._journal = kept
        self._knobs = handles
        self.owners: Owners = Nobody()
        """Who owns the files of this host, as far as it is known."""
        self._doubtful = {entry.key: -1.0 for entry in kept.entries if entry.foreign}

    def is_ours(self, entry: journal.Entry, current: str) -> bool:
        """Tell whether a text is one that we may have put there."""
        return self._knobs.any_of(entry.role, current, entry.ours)

    def previous(self, role: edits.Role, group: str, current: str) -> str | None:
        """What the group held before us; None where we never had a hand in it.

        A group that was born inside one that we confined begins confined: what it would have
        had without us is what the one above had before.
        """
        entry = self._journal.get(role, group)
        if entry is not None:
            return entry.previous
        if role is not edits.Role.CPUSET or not self._knobs.inherits:
            return None
        above = group
        while "/" in above:
            above = above.rpartition("/")[0]
            entry = self._journal.get(role, above)
            if entry is None:
                continue
            return entry.previous if self.is_ours(entry, current) else None
        return None

    def announce(self, write: Write, steps: Steps) -> None:
        """Say in the journal what may stand in the file from now on."""
        entry = self._journal.get(*write.key)
        if entry is None:
            before = self.previous(write.role, write.group, write.current)
            previous = write.current if before is None else before
            entry = journal.Entry(
                write.role, write.group, previous, basis=self._basis(*write.key, previous)
            )
        # While a release is under way, what stood there before us is no text of ours.
        last = None if write.release else write.ours
        texts = [text for text in (steps[0] if steps[1] else None, last) if text is not None]
        known = self._journal.get(*write.key) is not None
        held = self._knobs.held(write.role, write.current, entry.ours)
        if write.release and not known:
            held = (write.current,)
        ours = journal.together((*held, *texts, *self._knobs.rounded(write.role, texts)))
        self._journal.put(msgspec.structs.replace(entry, ours=ours))

    def born(self, one: deliveries.Delivered) -> None:
        """Say in the journal that a runtime has set a value of ours, and what was requested."""
        role, group = one.key
        entry = self._journal.get(role, group)
        texts = (self._knobs.aim(role, "", one.value)[0],)
        if entry is None or one.requested is not None:
            requested = self._requested(one) if one.requested is None else one.requested
            previous = self._knobs.aim(role, "", requested)[0]
            ours = entry.ours if entry is not None else ()
            basis = self._basis(role, group, previous)
            entry = journal.Entry(role, group, previous, ours, basis=basis)
        ours = journal.together((*entry.ours, *texts, *self._knobs.rounded(role, texts)))
        self._journal.put(msgspec.structs.replace(entry, ours=ours))

    def _requested(self, one: deliveries.Delivered) -> str:
        """Return what a cgroup has of which nothing was requested."""
        if one.role is not _R.CPUSET or not self._knobs.inherits:
            return cgroup_properties.UNSET.get(one.role, "")
        above = one.group.rpartition("/")[0]
        try:
            text = self._knobs.read(one.role, above)
        except files.ReadingError:
            return ""
        before = self.previous(one.role, above, text)
        return text if before is None else before

    def observe(self, role: edits.Role, group: str, current: str, *, foreign: bool) -> None:
        """Take what another program wrote over our value for what has to be put back one day.

        Without us the file would hold it. A part of our own cpus may be what the kernel left of
        them when a processor went offline, unless the kubelet hands out cpus there.
        """
        entry = self._journal.get(role, group)
        if entry is None or role in _UNFOLLOWED or self.is_ours(entry, current):
            return
        if role is edits.Role.CPUSET and foreign and self._is_part(current, entry):
            return
        if self._knobs.same(role, current, entry.previous) and entry.foreign == foreign:
            return
        basis = self._basis(role, group, current) or entry.basis
        if foreign:
            self._doubtful[role, group] = -1.0
        self._journal.put(
            msgspec.structs.replace(entry, previous=current, basis=basis, foreign=foreign)
        )

    def follow(self) -> list[journal.Key]:
        """Follow what pods ask for by now; return what has changed hands or value.

        It is the only way to learn of a resize that wrote the very text that we had put there.
        """
        changed = []
        for entry in self._journal.entries:
            if not entry.basis:
                continue
            expected = self.owners.value(entry.role, entry.group)
            if expected is None or self._knobs.same(entry.role, expected, entry.basis):
                continue
            self._journal.put(
                msgspec.structs.replace(entry, previous=expected, basis=expected, foreign=False)
            )
            changed.append(entry.key)
        return changed

    def settle(self, now: float) -> None:
        """Put back what the kubelet still wants rather than what an unknown writer left.

        For a while it could have been the kubelet itself, whose pods tell of a resize a bit later.
        """
        for key, since in list(self._doubtful.items()):
            if since < 0:
                self._doubtful[key] = now
            elif now - since >= SETTLED_SECONDS:
                del self._doubtful[key]
                entry = self._journal.get(*key)
                if entry is None or not (entry.foreign and entry.basis):
                    continue
                if self.owners.value(*key) == entry.basis:
                    self._journal.put(
                        msgspec.structs.replace(entry, previous=entry.basis, foreign=False)
                    )

    def _basis(self, role: edits.Role, group: str, text: str) -> str:
        """Return what the owner is expected to write, where that is what stands there."""
        if role in _UNFOLLOWED:
            return ""
        expected = self.owners.value(role, group)
        agrees = expected is not None and self._knobs.same(role, expected, text)
        return expected or "" if agrees else ""

    @staticmethod
    def _is_part(current: str, entry: journal.Entry) -> bool:
        now = cgroup_properties.cpus(current)
        wholes = (cgroup_properties.cpus(text) for text in entry.ours)
        return bool(now) and any(whole and now < whole for whole in wholes if now)

    def announce_effect(self, write: Write) -> None:
        """Say in the journal what the kernel will change by itself."""
        effect = self._knobs.side_effect(write.role)
        if effect is None or write.release:
            return
        role, texts = effect
        try:
            current = self._knobs.read(role, write.group)
        except files.ReadingError:
            # Where it is not, there is nothing to put back.
            return
        entry = self._journal.get(role, write.group) or journal.Entry(role, write.group, current)
        ours = journal.together((*entry.ours, *texts))
        self._journal.put(msgspec.structs.replace(entry, ours=ours))

    def add(self, write: Write, text: str) -> None:
        """Take a text that the kernel made of ours for ours."""
        entry = self._journal.get(*write.key)
        if entry is not None:
            ours = journal.together((*entry.ours, text))
            self._journal.put(msgspec.structs.replace(entry, ours=ours))

    def below(self, role: edits.Role, group: str) -> list[str]:
        """The group and, where they inherit, everything inside it."""
        found = [group]
        if role is edits.Role.CPUSET and self._knobs.inherits:
            for above in found:
                found += self._knobs.children(role, above)
        return found
