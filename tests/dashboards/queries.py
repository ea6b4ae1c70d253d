"""Queries of dashboards, asked of a real Prometheus about one span of time."""

import contextlib
import dataclasses

import aiohttp


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """From when until when, and how far apart points are."""

    start: float
    end: float
    step: float


class Queries:
    """Asks a Prometheus about one span of time."""

    def __init__(self, session, url, span):
        self._session = session
        self._url = url
        self._span = span

    async def over_time(self, query):
        """The series of a query, at even steps."""
        span = dataclasses.asdict(self._span)
        return await self._asked("query_range", query=query, **span)

    async def at_the_end(self, query):
        """What a query says at the end of the span."""
        return await self._asked("query", query=query, time=self._span.end)

    async def _asked(self, what, **about):
        async with self._session.get(f"{self._url}/api/v1/{what}", params=about) as answer:
            told = await answer.json()
            assert told["status"] == "success", told
            return told["data"]["result"]


@contextlib.asynccontextmanager
async def asking(url, span):
    """Open a session with a Prometheus."""
    async with aiohttp.ClientSession() as session:
        yield Queries(session, url, span)
