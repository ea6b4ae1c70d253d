"""What a container needs before its first instruction and a runtime has no field for.

Where a runtime asks before it starts a container, the cgroup is there and the first process waits
in it. The thread that answers hands edits to the loop and waits a moment until they are written.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agent.hooks.lifecycle import adjustment, reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import edits, state
from agent.serve import adjusted_messages, snapshots

WAIT_SECONDS: Final = 0.03
"""How long a start waits for the loop; what comes later is written all the same."""
MOST_PODS: Final = 4096
Write = Callable[[Sequence[edits.Edit], Callable[[], None]], None]


def _drop(_wanted: Sequence[edits.Edit], done: Callable[[], None]) -> None:
    done()


class Starts:
    """Asked by the thread that answers runtimes; `pod_written` is told by the loop."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self.write: Write = _drop
        """Lets the loop write edits, and calls back when it has."""
        self._wait_seconds = wait_seconds
        self._pods: OrderedDict[str, None] = OrderedDict()

    def pod_written(self, uid: str) -> None:
        """Take that the cgroup of a pod itself holds what hooks want."""
        self._pods[uid] = None
        if len(self._pods) > MOST_PODS:
            self._pods.popitem(last=False)

    def begin(
        self,
        of: subjects.Subject,
        found: adjustment.Adjustment,
        of_pod: Callable[[], Sequence[edits.Edit]],
        now: snapshots.Snapshot,
    ) -> str:
        """Have written what is left for a container; return `adjusted`, `unchanged` or `late`.

        `of_pod` gives the edits of the pod's own cgroup.
        """
        uid = of.pod.pod.metadata.uid
        values = left(found.values, of.pod, now) if of.group else {}
        beside = found.beside if edits.Role.PROCESS_RESCTRL in values else ()
        wanted = list(reconciliation.edits_of(of, adjustment.Adjustment(values, beside)))
        if uid not in self._pods:
            wanted += of_pod()
        if not wanted:
            return "unchanged"
        written = threading.Event()
        self.write(wanted, written.set)
        if not written.wait(self._wait_seconds):
            return "late"
        self.pod_written(uid)
        return "adjusted"


def left(
    wanted: adjusted_messages.Values, pod: state.PodState, now: snapshots.Snapshot
) -> Mapping[edits.Role, adjustment.Value]:
    """Return the values that the runtime was not told when it created the container.

    CPU lists of best-effort pods stay with reconciliation, since the cgroup above may shrink.
    """
    # Without a quota of its own a burst is not cut down, and it is only asked whether one is sent.
    told = adjusted_messages.deliverable(wanted, pod, now, None)
    return {
        role: one
        for role, one in wanted.items()
        if role not in told and role is not edits.Role.CPUSET
    }
