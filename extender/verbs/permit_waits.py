"""Binds at Permit: held until plug-ins let the pod go, then checked and written in turns."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final

import msgspec

from extender.framework import verdicts
from extender.state import ledger
from extender.verbs import held_nodes, outcomes, reserving, waiting_pods
from process.runtime import clock as clocks

_RELEASED: Final = 16
"""Binds that are checked and written at once of those that Permit has held: more would wait for the
API server with an old check, and the loop would check them all before it answers another call."""
_BREATH: Final = 1.0
"""How often a call that waits looks whether its caller is there."""
_ASK_SECONDS_EACH: Final = 0.01
"""How long plug-ins are not asked anew about a pod that nothing has woken, for each bind that is
held: of large gangs there are hundreds, and each question costs more than a look."""
_FRESH_SECONDS: Final = 5.0
"""How long what filters said of a node that has not changed is good for: load reports grow old."""
LEFT: Final = "the caller has stopped waiting; nothing was bound"


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of one call."""

    deadline: float
    """On the monotonic clock."""
    connected: Callable[[], bool]
    """Whether the caller still waits for the answer."""

    def is_over(self, clock: clocks.Clock) -> bool:
        """Whether no answer is waited for any more."""
        return clock.monotonic() >= self.deadline or not self.connected()


class PermitWaits:
    """Lets binds wait, as kube-scheduler's waiting pods do between Reserve and PreBind."""

    def __init__(
        self,
        books: ledger.Ledger,
        clock: clocks.Clock,
        reserves: reserving.Reserving,
        waiting: waiting_pods.WaitingPods,
        results: outcomes.Outcomes,
    ) -> None:
        self._books, self._clock = books, clock
        self._reserving, self._waiting, self._outcomes = reserves, waiting, results
        self._turns = asyncio.Semaphore(_RELEASED)
        self._held = 0
        self._nodes = held_nodes.HeldNodes(books.cluster)

    async def waited(
        self, reserved: reserving.Reserved, attempt: Attempt, turn: contextlib.AsyncExitStack
    ) -> str | None:
        """Return None once the pod may be bound, else the answer; then nothing is reserved.

        `turn` is what ends with the attempt, such as the turn of a bind that was held.
        """
        refusal, began = "waiting was interrupted", self._clock.monotonic()
        waits: list[verdicts.Wait] = []
        try:
            with self._nodes.held(reserved.node):
                refusal = await self._permitted(reserved, attempt, turn, waits)
            if not refusal and reserved.pod.uid not in self._books.assumptions:
                return ""
        finally:
            if waits:
                self._waiting.ended(began, allowed=not refusal)
            if refusal:
                self._books.forget(reserved.pod.uid)
                self._waiting.refuse(
                    (wait.key for wait in waits if wait.together),
                    f"{reserved.pod.key}, which waited with it, was refused: {refusal}",
                )
        return refusal or None

    async def _permitted(
        self,
        reserved: reserving.Reserved,
        attempt: Attempt,
        turn: contextlib.AsyncExitStack,
        waits: list[verdicts.Wait],
    ) -> str:
        """Wait until the pod may be bound; then look at its node again, without its own claim.

        Many pods are let go together: each is asked again, and checked, in its turn. `waits` are
        for the caller: what the pod waited for at last.
        """
        books, uid, ends = self._books, reserved.pod.uid, dict[str, float]()
        checked = self._state_of(reserved.node)
        good_until = self._clock.monotonic() + _FRESH_SECONDS
        while True:
            refusal = await self._let_go(reserved, attempt, waits, ends)
            if refusal or not ends or uid not in books.assumptions:
                return refusal
            has_to_wait = self._turns.locked()
            await turn.enter_async_context(self._turns)
            if uid not in books.assumptions:
                return self._outcomes.shown(uid, reserved.node)
            # Where the turn comes at once, nothing has happened since it was let go.
            if not has_to_wait or self._reserving.permission(reserved).allowed:
                is_fresh = self._clock.monotonic() <= good_until
                is_same = is_fresh and self._state_of(reserved.node) == checked
                return self._reserving.recheck(reserved, is_same=is_same)
            await turn.aclose()

    def _state_of(self, node: str) -> Hashable:
        """Return a value that is another one once a check of a node may no longer hold."""
        return self._nodes.changes(node), self._reserving.judging()

    async def _let_go(
        self,
        reserved: reserving.Reserved,
        attempt: Attempt,
        waits: list[verdicts.Wait],
        ends: dict[str, float],
    ) -> str:
        """Wait until plug-ins allow the pod to be bound, by the first time that each has named."""
        clock, uid = self._clock, reserved.pod.uid
        while True:
            permission = self._reserving.permission(reserved)
            if self._abandoned(permission.wakes):
                continue
            self._waiting.wake(permission.wakes)
            if permission.refusal is not None:
                return permission.refusal.status.text
            if permission.allowed:
                return ""
            waits[:] = [wait for _, wait in permission.waits]
            for wait in waits:
                # The first time that was named counts: no pod waits longer by being asked again.
                ends.setdefault(wait.key, wait.until)
            until = min(ends[key] for key in permission.keys)
            # Woken or not, it is asked again: what it waits for may have changed without a bind.
            pause = max(_BREATH, _ASK_SECONDS_EACH * self._held)
            most = min(pause, until - clock.now(), attempt.deadline - clock.monotonic())
            ended = await self._rested(uid, permission.keys, most, attempt)
            if uid not in self._books.assumptions and ended.refusal != LEFT:
                # The watch has shown the pod on a node, or gone.
                return self._outcomes.shown(uid, reserved.node)
            if ended.refusal:
                return ended.refusal
            if not ended.woken and clock.now() >= until:
                return permission.expired().status.text
            if not ended.woken and attempt.is_over(clock):
                return LEFT

    def _abandoned(self, keys: Iterable[str]) -> bool:
        """Forget pods whose callers are gone: none that waited with them may count on them."""
        gone = self._waiting.abandoned(keys, LEFT)
        for uid in gone:
            self._books.forget(uid)
        return bool(gone)

    async def _rested(
        self, uid: str, keys: Collection[str], seconds: float, attempt: Attempt
    ) -> waiting_pods.Ended:
        """Wait until a key is woken, so long at most, or until nothing is left to wait for."""
        clock = self._clock
        end = clock.monotonic() + seconds
        self._held += 1
        try:
            while True:
                pause = min(_BREATH, end - clock.monotonic())
                ended = await self._waiting.wait(keys, pause, uid, attempt.connected)
                is_over = uid not in self._books.assumptions or attempt.is_over(clock)
                if ended.woken or is_over or clock.monotonic() >= end:
                    return ended
        finally:
            self._held -= 1
