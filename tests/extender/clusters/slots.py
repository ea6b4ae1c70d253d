"""A plug-in that allocates numbered slots of a node, one pod a slot: the smallest of its kind."""

import msgspec
import numpy as np

from extender.framework import verdicts
from extender.state import deltas

NAME = "Slots"
ANNOTATION = "tests.koord.sh/slot"
RESOURCE = "tests.koord.sh/slots"
TAKEN = verdicts.Status("no slot is free")
LATE = verdicts.Status("the others have not come")
BROKEN = verdicts.Status("the others will not come")


class Slot(msgspec.Struct, frozen=True):
    """The slot of one pod."""

    number: int


class Slots:
    """Codec, tracker, filter and reserver; nodes have as many slots as their allocatable says."""

    name = NAME
    columns = 1
    annotations = (ANNOTATION,)

    def decode(self, annotations, wanted):
        del wanted
        return Slot(int(annotations[ANNOTATION]))

    def encode(self, allocation):
        return {ANNOTATION: str(allocation.number)}

    def conflicts(self, one, other):
        return one.number == other.number

    def node(self, info):
        taken = frozenset(
            claim.allocations[NAME].number for claim in info.claims if NAME in claim.allocations
        )
        return (dict(info.node.allocatable).get(RESOURCE, 0) - len(taken),), taken or None

    def start(self):
        return ()

    def cluster(self, old, delta):
        """Keep every slot of the cluster with its claim, sorted."""
        held = list(old)
        before, after = getattr(delta, "before", None), getattr(delta, "after", None)
        for claim, change in ((before, held.remove), (after, held.append)):
            if NAME in getattr(claim, "allocations", ()):
                change((claim.node, claim.allocations[NAME].number, claim.id))
        return tuple(sorted(held))

    def pre_filter(self, pod, view):
        del view
        return dict(pod.requirements.requests).get(RESOURCE)

    def filter(self, prepared, view, rows, now):
        del now
        codes = (view.figures[NAME][0, rows] < prepared).astype(np.int16)
        return verdicts.Verdict(codes, (TAKEN,))

    def reserve(self, pod, prepared, view, row, grants):
        del pod, prepared, grants
        slot = lowest_free(view, row)
        return TAKEN if slot is None else verdicts.Grant(slot)


class Together:
    """Lets pods wait, reserved, until so many of them have a slot somewhere."""

    name = "Together"

    def __init__(self, count, *, together=False):
        self.count, self.broken, self.together = count, False, together

    def pre_filter(self, pod, view):
        del view
        return dict(pod.requirements.requests).get(RESOURCE)

    def permit(self, pod, prepared, view, now):
        del pod, prepared
        if self.broken:
            return verdicts.Reject(BROKEN, wakes=("all",))
        if len(view.cluster[NAME]) < self.count:
            return verdicts.Wait(now + 20.0, "all", LATE, together=self.together)
        return verdicts.Allow(wakes=("all",))


class Ticket(msgspec.Struct, frozen=True):
    """What Tickets changes for a pod."""

    holder: str


class Tickets:
    """Changes an object of its own kind with every grant."""

    name = "Tickets"

    def pre_filter(self, pod, view):
        del view
        return pod.key

    def reserve(self, pod, prepared, view, row, grants):
        del view, row, grants
        change = deltas.ObjectDelta("ticket", prepared, None, Ticket(pod.uid))
        return verdicts.Grant(changes=(change,), figures={"ticket": prepared})


def lowest_free(view, row):
    """Return the first free slot of a node, None if there is none."""
    taken = view.sparse(NAME, row) or frozenset()
    total = dict(view.node(row).node.allocatable).get(RESOURCE, 0)
    return next((Slot(number) for number in range(total) if number not in taken), None)
