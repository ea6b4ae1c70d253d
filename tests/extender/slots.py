"""A plug-in that allocates numbered slots of a node, one pod a slot: the smallest of its kind."""

import msgspec

from extender.framework import verdicts

NAME = "Slots"
ANNOTATION = "tests.koord.sh/slot"
RESOURCE = "tests.koord.sh/slots"
TAKEN = verdicts.Status("no slot is free")


class Slot(msgspec.Struct, frozen=True):
    """The slot of one pod."""

    number: int


class Slots:
    """Codec, tracker and allocator; nodes have as many slots as their allocatable says."""

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


def lowest_free(view, row):
    """Return the first free slot of a node, None if there is none."""
    taken = view.sparse(NAME, row) or frozenset()
    total = dict(view.node(row).node.allocatable).get(RESOURCE, 0)
    return next((Slot(number) for number in range(total) if number not in taken), None)
