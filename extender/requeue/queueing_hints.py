"""Which waiting pods a change lets fit, and whether they may be woken."""

import collections
import dataclasses
import itertools
import math
from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from extender.framework import pipeline, verdicts, views
from extender.requeue import unschedulable_pods
from extender.state import cluster_state, status_nominations

_LONGEST_PAUSE = 60.0


class Changes:
    """The last changes of the cluster state, numbered; beyond a limit only how many there were."""

    def __init__(self, most: int = 256) -> None:
        self.count = 0
        self._last: collections.deque[views.Delta] = collections.deque(maxlen=most)

    def follow(self, delta: views.Delta) -> None:
        """Take in a change; a follower of the cluster state."""
        self.count += 1
        self._last.append(delta)

    def since(self, count: int) -> list[views.Delta] | None:
        """Return what changed since there were so many; None where that is not known any more."""
        fresh = self.count - count
        if fresh > len(self._last):
            return None
        return list(itertools.islice(self._last, len(self._last) - fresh, None))


@dataclasses.dataclass(frozen=True, slots=True)
class _Judged:
    """The verdicts on pods that are alike, and when they were found."""

    changes: int
    """How many changes there had been."""
    version: int
    members: int
    """How often rows had changed hands: nodes that came later were not judged."""
    at: float
    passing: unschedulable_pods.Bits
    refusing: tuple[str, ...]
    """The plug-ins whose refusals stood."""


class Judgements:
    """What was found about waiting pods, kept until a change could have ended a refusal.

    A refusal can only end by a change that its plug-in names, or by time where it says so; until
    then nothing that refused passes. What passes is judged anew whenever anything changed.
    """

    def __init__(self, changes: Changes, most: int = 4096, most_listed: int = 1 << 18) -> None:
        self.changes = changes
        self.made = 0
        """How often all nodes were judged."""
        self._most, self._most_listed = most, most_listed
        self._listed = 0
        """Resources that the pods asked for of which something is kept: some have thousands."""
        self._kept: dict[Hashable, _Judged] = {}
        self._by: pipeline.Pipeline | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> _Judged | None:
        """Return what was found about such pods."""
        return self._kept.get(key)

    def put(self, key: Hashable, judged: _Judged, wanted: views.PodRequirements) -> None:
        """Keep what was found about such pods."""
        self.made += 1
        if len(self._kept) >= self._most or self._listed >= self._most_listed:
            self._clear()
        self._kept[key] = judged
        self._listed += len(wanted.requests)

    def of(self, plugins: pipeline.Pipeline) -> "Judgements":
        """Return what these plug-ins have found; other ones start over."""
        if self._by is None or self._by.filters is not plugins.filters:
            self._clear()
            self._by = dataclasses.replace(plugins)
        return self

    def holds(
        self,
        key: Hashable,
        judged: _Judged,
        asked: pipeline.Cycle,
        plugins: pipeline.Pipeline,
    ) -> bool:
        """Whether all refusals among these still stand; then only later changes are looked at."""
        fresh = self.changes.since(judged.changes)
        if fresh is None:
            return False
        for name in judged.refusing:
            hint = plugins.hints.get(name)
            if hint is None or hint.expires:
                return False
            prepared = asked.prepared.get(name)
            if any(hint.could_help(prepared, delta) for delta in fresh):
                return False
        if fresh:
            self._kept[key] = dataclasses.replace(judged, changes=self.changes.count)
        return True

    def _clear(self) -> None:
        self._kept.clear()
        self._listed = 0


class Looks:
    """Asks for many pods whether some node would take them; pods that are alike are asked once.

    Valid as long as the view is: until the next await.
    """

    def __init__(
        self,
        plugins: pipeline.Pipeline,
        cluster: cluster_state.ClusterState,
        now: float,
        judgements: Judgements,
        shown: tuple[tuple[str, ...], views.View] | None = None,
    ) -> None:
        """`shown` is a view with what counts beside the state, and what that is."""
        self._plugins = plugins
        self._beside, self._view = shown or ((), cluster.view())
        view = self._view
        self._now = now
        # Nodes that are shown by old lending rules change without being told.
        self._settled = not cluster.stale_rows()
        self._judgements = judgements.of(plugins)
        self._attempt = unschedulable_pods.attempt_on(view)
        self._rows = np.flatnonzero(view.known)
        self._nominated = {claim.pod.uid for held in view.nominated.values() for claim in held}

    def node_for(self, waiter: unschedulable_pods.UnschedulablePod) -> str:
        """Return a node that would take it, among those that the scheduler would have taken.

        Of many nodes the scheduler asks about some only. One that it did not ask about comes into
        question where a claim keeps capacity for the pod, since it took what stood for the claim.
        Of those that it asked about, one that keeps capacity comes first, and of all where those
        that it asked about were refused for its sake.
        """
        pod = waiter.request
        asked = self._plugins.cycle(pod, self._view)
        # Everything that a verdict depends on besides the view: what PreFilter made of the pod,
        # and which nominated claims stand in its way.
        own = pod.uid if pod.uid in self._nominated else ""
        key = asked.key, pod.requirements.priority, own, self._beside
        ever = self._ever(waiter)
        judged = self._judgements.get(key)
        if judged is None or not (self._is_present(judged) or self._holds(key, judged, asked)):
            judged = self._judge(key, asked)
        if not judged.passing.any():
            return ""
        serving = self._serving(asked)
        kept = _both(ever, serving)
        for allowed in (serving, ever) if waiter.passed_over else (kept, ever, serving):
            both = _both(judged.passing, allowed)
            if both.any() and not self._is_present(judged):
                judged = self._judge(key, asked)
                both = _both(judged.passing, allowed)
            if both.any():
                return self._view.names[self._first(asked, both)]
        return ""

    def keep(self, waiter: unschedulable_pods.UnschedulablePod, rows: verdicts.Rows) -> bool:
        """Whether any of some nodes keeps capacity for a pod."""
        if not rows.size:
            return False
        asked = self._plugins.cycle(waiter.request, self._view)
        return bool(self._plugins.reserved.serving(asked, self._view, rows).any())

    def rows(self, nodes: Iterable[str]) -> verdicts.Rows:
        """Return the rows of those nodes that are known."""
        known = self._view.rows
        return np.array([known[name] for name in nodes if name in known], dtype=np.intp)

    def _first(self, asked: pipeline.Cycle, among: unschedulable_pods.Bits) -> int:
        """Return the row of these whose claim comes first by its order, else the first row."""
        rows = np.flatnonzero(np.unpackbits(among))
        return int(rows[self._plugins.reserved.ranks(asked, self._view, rows).argmax()])

    def is_kept_for(self, waiter: unschedulable_pods.UnschedulablePod, node: str) -> bool:
        """Whether a node keeps capacity for a pod: a Reservation, or what was freed for it."""
        row, uid = self._view.rows[node], waiter.request.uid
        nominated = self._view.nominated.get(row, ())
        if any(
            one.usable_by == uid and status_nominations.is_by_scheduler(one) for one in nominated
        ):
            return True
        return self.keep(waiter, pipeline.alone(row))

    def may_be_left_out(
        self, waiter: unschedulable_pods.UnschedulablePod, node: str, *, kept: bool
    ) -> bool:
        """Whether the next sample of nodes may lack this one, though another would do as well.

        Where capacity is kept for the pod no other node will do, however often this was in samples.
        """
        if kept and self._rows.size > unschedulable_pods.SMALLEST_SAMPLE:
            return True
        row = self._view.rows.get(node, -1)
        ever = np.unpackbits(self._ever(waiter))
        return not (0 <= row < ever.size and bool(ever[row]))

    def _ever(self, waiter: unschedulable_pods.UnschedulablePod) -> unschedulable_pods.Bits:
        """Return the nodes of its attempts, with those that were not known by then."""
        found = self._attempt.still(waiter.ever, waiter.asked_at)
        if not waiter.unknown:
            return found
        return unschedulable_pods.joined(found, self.rows(waiter.unknown))

    def _serving(self, asked: pipeline.Cycle) -> unschedulable_pods.Bits:
        flags = np.zeros(self._view.known.size, dtype=np.bool_)
        flags[self._rows] = self._plugins.reserved.serving(asked, self._view, self._rows)
        return np.packbits(flags)

    def _is_present(self, judged: _Judged) -> bool:
        """Whether this was found on the present view at this moment."""
        return (judged.version, judged.at) == (self._view.version, self._now)

    def _holds(self, key: Hashable, judged: _Judged, asked: pipeline.Cycle) -> bool:
        if self._has_joined(judged):
            return False
        return self._judgements.holds(key, judged, asked, self._plugins)

    def _has_joined(self, judged: _Judged) -> bool:
        """Whether a node has come since: no plug-in has refused it, and it may take the pod."""
        view = self._view
        if view.members == judged.members or view.born is None:
            return view.members != judged.members
        return bool((view.born[self._rows] > judged.members).any())

    def _judge(self, key: Hashable, asked: pipeline.Cycle) -> _Judged:
        outcome = self._plugins.filter(asked, self._view, self._rows, self._now)
        passes = np.zeros(self._view.known.size, dtype=np.bool_)
        passes[self._rows] = outcome.codes == 0
        refusing = {outcome.refusals[code - 1].plugin for code in np.unique(outcome.codes) if code}
        judged = _Judged(
            # Before anything had changed: whatever comes is looked at.
            changes=self._judgements.changes.count if self._settled else -1,
            version=self._view.version,
            members=self._view.members,
            at=self._now,
            passing=np.packbits(passes),
            refusing=tuple(sorted(refusing)),
        )
        self._judgements.put(key, judged, asked.pod.requirements)
        return judged


def _both(left: unschedulable_pods.Bits, right: unschedulable_pods.Bits) -> unschedulable_pods.Bits:
    width = min(left.size, right.size)
    return left[:width] & right[:width]


def due_in(
    waiter: unschedulable_pods.UnschedulablePod, pause: float, now: float, *, at_once: bool = False
) -> float:
    """Return in how many seconds a pod that fits is to be woken, 0 for now, infinity for not yet.

    It is woken once after each attempt, ever later if in vain. One that stands in a line, or for
    which capacity is kept, needs no pause after the attempt: what was freed is left to no other pod
    meanwhile. The scheduler keeps its back-off by itself, which it cuts short where nothing else is
    to be done, but only for a pod that was woken.
    """
    if waiter.woken():
        return math.inf
    longer: float = min(pause * 2 ** min(waiter.wakings, 10), max(_LONGEST_PAUSE, pause))
    tried = 0.0 if at_once else pause - _since(waiter.tried_at, now)
    return max(tried, longer - _since(waiter.woken_at, now), 0.0)


def _since(moment: float, now: float) -> float:
    """Return how long ago a moment was; one that is to come was before the clock was set back."""
    return now - moment if moment <= now else math.inf


def freed(
    waits: unschedulable_pods.UnschedulablePods, cluster: cluster_state.ClusterState
) -> Iterator[tuple[str, str, str]]:
    """Yield key and uid of preemptors all of whose victims have left a node, and that node."""
    for key, preemptor in tuple(waits.preemptors.items()):
        for node, victims in preemptor.victims.items():
            if not any(_is_on(cluster, uid, node) for uid in victims):
                yield key, preemptor.uid, node
                break


def _is_on(cluster: cluster_state.ClusterState, uid: str, node: str) -> bool:
    placed = cluster.placed(uid)
    return placed is not None and placed.node == node
