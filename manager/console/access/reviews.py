"""Asks the API server whose a token is and what its user may read; answers are kept briefly."""

import asyncio
import dataclasses
import hashlib
import secrets
from collections.abc import Collection, Iterable
from typing import Any, Final

from api import resources
from kube.client import client as clients
from kube.client import errors
from manager.console.access import questions, remembered, scope
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

MOST_NAMESPACES: Final = 50
"""Namespaces that one request asks about; who may look into more names one."""
_MOST_TOKENS: Final = 1024
_MOST_ANSWERS: Final = 20_000
_MOST_AT_ONCE: Final = 8


class AccessError(Exception):
    """A request that is not answered; `status` is that of HTTP, `remedy` says what to do."""

    def __init__(self, status: int, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.remedy = remedy


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often the API server is asked, and how long its answers hold."""

    per_second: float = 100.0
    burst: int = 400
    seconds: float = 10.0


class Reviewer:
    """Whose tokens these are, and what their users may read."""

    def __init__(
        self, kube: clients.Client, pace: Pace, clock: clocks.Clock, registry: metrics.Registry
    ) -> None:
        self._kube = kube
        self._bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)
        self._gate = asyncio.Semaphore(_MOST_AT_ONCE)
        # Tokens are not kept: who reads this memory finds what cannot be turned back into one.
        self._key = secrets.token_bytes(32)
        self._users: remembered.Remembered[bytes, questions.User | None] = remembered.Remembered(
            clock, pace.seconds, _MOST_TOKENS
        )
        self._answers: remembered.Remembered[tuple[questions.User, questions.Question], bool] = (
            remembered.Remembered(clock, pace.seconds, _MOST_ANSWERS)
        )
        self._asked = registry.counter(
            "koord_console_reviews_total",
            "TokenReviews and SubjectAccessReviews of the web console by outcome.",
            ["review", "outcome"],
        )

    async def user(self, token: str) -> questions.User:
        """Return whose token it is; an AccessError where the API server does not accept it."""
        key = hashlib.blake2b(token.encode(), key=self._key).digest()
        found = await self._users.get(key, lambda: self._whose(token))
        if found is None:
            raise AccessError(
                401,
                "the API server does not accept this token",
                "it may have expired: make a new one with kubectl create token",
            )
        return found

    async def may(self, user: questions.User, question: questions.Question) -> bool:
        """Return whether a user may read something."""
        return await self._answers.get((user, question), lambda: self._allowed(user, question))

    async def missing(
        self, user: questions.User, wanted: Iterable[questions.Question]
    ) -> tuple[questions.Question, ...]:
        """Return what of this a user may not read."""
        asked = tuple(dict.fromkeys(wanted))
        found = await asyncio.gather(*(self.may(user, one) for one in asked))
        return tuple(one for one, may in zip(asked, found, strict=True) if not may)

    async def scope(
        self, user: questions.User, resource: resources.Resource, namespaces: Collection[str]
    ) -> scope.Scope:
        """Return in which of these namespaces a user may list objects of a kind."""
        if await self.may(user, questions.Question(resource)):
            return scope.EVERYTHING
        asked = sorted(namespaces)[:MOST_NAMESPACES]
        wanted = [questions.Question(resource, one) for one in asked]
        denied = {one.namespace for one in await self.missing(user, wanted)}
        return scope.Scope(
            namespaces=frozenset(asked) - denied, partial=len(asked) < len(namespaces)
        )

    async def _whose(self, token: str) -> questions.User | None:
        answer = await self._ask(resources.TOKEN_REVIEWS, questions.token_review(token))
        found = questions.authenticated(answer)
        self._count(resources.TOKEN_REVIEWS, accepted=found is not None)
        return found

    async def _allowed(self, user: questions.User, question: questions.Question) -> bool:
        body = questions.access_review(user, question)
        may = questions.allowed(await self._ask(resources.SUBJECT_ACCESS_REVIEWS, body))
        self._count(resources.SUBJECT_ACCESS_REVIEWS, accepted=may)
        return may

    async def _ask(self, review: resources.Resource, body: dict[str, Any]) -> dict[str, Any]:
        if not self._bucket.take():
            self._asked.labels(review.plural, "throttled").inc()
            raise AccessError(
                429, "the console asks the API server too often", "wait a second and try again"
            )
        try:
            async with self._gate:
                return await self._kube.create(review, body)
        except errors.Forbidden as error:
            self._asked.labels(review.plural, "failed").inc()
            raise AccessError(
                503,
                f"the manager may not create {review.review_name()}",
                "install the chart with manager.console.enabled",
            ) from error
        except errors.KubeError as error:
            self._asked.labels(review.plural, "failed").inc()
            raise AccessError(
                503, "the API server does not say who you are", "try again in a while"
            ) from error

    def _count(self, review: resources.Resource, *, accepted: bool) -> None:
        self._asked.labels(review.plural, "accepted" if accepted else "denied").inc()
