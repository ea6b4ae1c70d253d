"""Trouble on demand: refusals, delays, dropped and silent streams, by verb, resource and count.

Nothing here is random: the same rules meet the same requests with the same trouble.
"""

import asyncio
import dataclasses
import fnmatch

from aiohttp import abc, web

from process.runtime import clock as clocks
from simulator.apiserver.http import api_errors, requests, responses


@dataclasses.dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error instead."""

    code: int
    retry_after: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Delay:
    """Wait before going on."""

    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection without an answer; the request has had no effect."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expire:
    """Let a watch begin with an ERROR event that says its version is gone."""


@dataclasses.dataclass(frozen=True, slots=True)
class Silence:
    """Let a watch stay open and never say anything."""


@dataclasses.dataclass(frozen=True, slots=True)
class Break:
    """Break a watch off after so many events."""

    after: int = 0


Action = Refuse | Delay | Drop | Expire | Silence | Break


@dataclasses.dataclass(slots=True)
class Rule:
    """Which requests are met with what; every pattern may hold `*`."""

    action: Action
    verb: str = "*"
    resource: str = "*"
    """Plural, and group where there is one: `pods`, `leases.coordination.k8s.io`."""
    subresource: str = "*"
    name: str = "*"
    agent: str = "*"
    times: int | None = None
    """How many requests; None for all."""
    skip: int = 0
    """How many matching requests pass first."""
    met: int = 0
    """How many requests it has met."""

    def matches(self, info: requests.RequestInfo) -> bool:
        """Whether the rule is about this request, whatever is left of its count."""
        pairs = (
            (info.verb, self.verb),
            (api_errors.full_name(info.group, info.plural), self.resource),
            (info.subresource, self.subresource),
            (info.name, self.name),
            (info.agent, self.agent),
        )
        return all(fnmatch.fnmatchcase(value, pattern) for value, pattern in pairs)

    def takes(self) -> bool:
        """Count one matching request; tells whether it is met."""
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None and self.met >= self.times:
            return False
        self.met += 1
        return True


REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Faults:
    """The rules in force, in the order they were added."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._rules: list[Rule] = []

    def add(self, rule: Rule) -> Rule:
        """Put a rule in force; returns it, so that its count can be read."""
        self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """End all trouble."""
        self._rules.clear()

    async def before(self, request_info: requests.RequestInfo) -> web.StreamResponse | None:
        """Delay or answer a request instead of the server; None lets it pass."""
        for rule in list(self._rules):
            if isinstance(rule.action, Break) or not rule.matches(request_info):
                continue
            if isinstance(rule.action, Expire | Silence) and request_info.verb != "watch":
                continue
            if not rule.takes():
                continue
            if isinstance(rule.action, Delay):
                await self._clock.sleep(rule.action.seconds)
            else:
                return _answer(rule.action)
        return None

    def stream_limit(self, request_info: requests.RequestInfo) -> int | None:
        """After how many events a watch breaks off without a word; None never."""
        for rule in self._rules:
            if isinstance(rule.action, Break) and rule.matches(request_info) and rule.takes():
                return rule.action.after
        return None


def _answer(action: Refuse | Drop | Expire | Silence) -> web.StreamResponse:
    match action:
        case Refuse(code, retry_after):
            return responses.refusal(refusal(code, retry_after))
        case Drop():
            return _Dropped()
        case Expire():
            event = {"type": "ERROR", "object": refusal(410).status()}
            return web.Response(
                body=responses.encoded(event) + b"\n", content_type="application/json"
            )
        case Silence():
            return _Silent()


def refusal(code: int, retry_after: int = 0) -> api_errors.FailureError:
    """Return an injected error."""
    details = {"retryAfterSeconds": retry_after} if retry_after else None
    return api_errors.FailureError(
        code, REASONS.get(code, "Unknown"), f"injected trouble: {code}", details
    )


class _Dropped(web.StreamResponse):
    """Ends the connection where the answer would begin."""

    async def prepare(self, request: web.BaseRequest) -> abc.AbstractStreamWriter | None:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("injected trouble")


class _Silent(web.StreamResponse):
    """Sends its headers and nothing more until the client leaves."""

    async def prepare(self, request: web.BaseRequest) -> abc.AbstractStreamWriter | None:
        self.enable_chunked_encoding()
        self.content_type = "application/json"
        await super().prepare(request)
        await asyncio.Event().wait()
        return None
