"""One request of the console: who asks, and what of an answer they may see."""

import ipaddress
from collections.abc import Collection
from typing import Final

from aiohttp import web

from api import resources
from manager.console.access import bearer, questions, reviews, scope

_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Session:
    """A user who asks."""

    def __init__(self, user: questions.User, reviewer: reviews.Reviewer, *, by_token: bool) -> None:
        self.user = user
        self.by_token = by_token
        """Whether a token says who asks; else everybody is taken for the configured viewer."""
        self._reviewer = reviewer

    async def require(self, *wanted: questions.Question) -> None:
        """Go on only for users who may read all of this; an AccessError names the rest."""
        denied = await self.missing(*wanted)
        if denied:
            text = ", ".join(map(str, denied))
            raise reviews.AccessError(
                403,
                f"{self.user.name} may not {text}",
                "ask an administrator for these permissions, or use the token of another account",
            )

    async def may(self, *wanted: questions.Question) -> bool:
        """Return whether the user may read all of this."""
        return not await self.missing(*wanted)

    async def missing(self, *wanted: questions.Question) -> tuple[questions.Question, ...]:
        """Return what of this the user may not read."""
        return await self._reviewer.missing(self.user, wanted)

    async def scope(
        self, resource: resources.Resource, namespaces: Collection[str], chosen: str = ""
    ) -> scope.Scope:
        """Return where the user may list objects of a kind.

        `namespaces` are those that have any; one that is `chosen` is the only one asked about.
        """
        if not chosen:
            return await self._reviewer.scope(self.user, resource, namespaces)
        found = await self._reviewer.scope(self.user, resource, (chosen,))
        if found.nothing:
            await self.require(questions.Question(resource, chosen))
        return scope.Scope(namespaces=frozenset((chosen,)))


class Sessions:
    """Tells who asks."""

    def __init__(self, reviewer: reviews.Reviewer, viewer: str) -> None:
        self._reviewer = reviewer
        self._viewer = questions.viewer(viewer) if viewer else None

    async def of(self, request: web.Request) -> Session:
        """Return the authenticated user; an AccessError where there is none."""
        try:
            token = bearer.token(request.headers.get("Authorization"))
        except bearer.BearerError as error:
            raise reviews.AccessError(401, str(error), "paste a token and nothing else") from error
        if token is not None:
            return Session(await self._reviewer.user(token), self._reviewer, by_token=True)
        if self._viewer is None:
            raise reviews.AccessError(
                401,
                "this request carries no token",
                "kubectl create token NAME makes one; kubectl proxy drops it, "
                "kubectl port-forward does not",
            )
        if not _is_meant(request):
            # A page elsewhere whose name was bound to this address must not read as the viewer.
            raise reviews.AccessError(
                403, "without a token the console answers localhost only", "open it as localhost"
            )
        return Session(self._viewer, self._reviewer, by_token=False)


def _is_meant(request: web.Request) -> bool:
    """Whether a caller on this machine has named this machine."""
    try:
        if not ipaddress.ip_address(request.remote or "").is_loopback:
            return True
    except ValueError:
        return True
    name = request.headers.get("Host", "").lower()
    return name.rpartition(":")[0] in _LOCAL_NAMES or name in _LOCAL_NAMES
