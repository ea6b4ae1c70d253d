"""Queries of a Prometheus at one moment or over a range, bounded in time and in size."""

import contextlib
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import msgspec

from cli.prometheus import samples
from kube.client import failures
from process.configuration import explained_error

SECONDS: Final = 60.0
MOST_BYTES: Final = 64 << 20
MOST_RANGE_BYTES: Final = 16 << 20
"""Of one answer over a range, which takes ten times as much memory when it is read."""
_SAID: Final = 200
_TOO_MUCH: Final = frozenset({"execution", "timeout", "canceled"})
"""Kinds of errors that a shorter range may not have."""
T = TypeVar("T")


class PrometheusError(explained_error.ExplainedError):
    """A Prometheus that does not answer; says what was asked and what to look at."""


class RangeTooLargeError(PrometheusError):
    """A range that is too much for the Prometheus or for us; a shorter one may not be."""


class _Data(msgspec.Struct, frozen=True):
    result: list[dict[str, Any]] = []


class _Row(msgspec.Struct, frozen=True):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Rows(msgspec.Struct, frozen=True):
    result: list[_Row] = []


class _Said(msgspec.Struct, frozen=True):
    status: str = ""
    error: str = ""
    kind: str = msgspec.field(name="errorType", default="")


class _Answer(_Said, frozen=True):
    data: _Data = _Data()


class _RangeAnswer(_Said, frozen=True):
    data: _Rows = _Rows()


class Prometheus:
    """One Prometheus, or what speaks its query API."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url
        self.received = 0
        """Bytes of all answers."""

    async def figures(self, query: str, at: float) -> list[samples.Figure]:
        """Return the series of a query at a moment; those without a number are left out."""
        form = {"query": query, "time": f"{at:.3f}"}
        status, data = await self._ask("query", form, MOST_BYTES)
        if len(data) > MOST_BYTES:
            raise PrometheusError(
                f"--prometheus {self._url}: an answer is larger than {MOST_BYTES >> 20} MiB; name "
                "fewer --days"
            )
        found = self._read(data, _Answer, status)
        if found.status != "success":
            raise self._refused(found, query, status)
        return [one for row in found.data.result if (one := _figure(row)) is not None]

    async def over(self, query: str, span: samples.Range) -> list[samples.Series]:
        """Return the series of a query over a range; a RangeTooLargeError where it is too much."""
        form = {
            "query": query,
            "start": f"{span.first:.3f}",
            "end": f"{span.last:.3f}",
            "step": f"{span.step:.3f}",
        }
        status, data = await self._ask("query_range", form, MOST_RANGE_BYTES)
        if len(data) > MOST_RANGE_BYTES:
            raise RangeTooLargeError(
                f"--prometheus {self._url}: an answer of {span.points} moments is larger than "
                f"{MOST_RANGE_BYTES >> 20} MiB"
            )
        found = self._read(data, _RangeAnswer, status)
        if found.status != "success":
            raise self._refused(found, query, status)
        return [samples.Series(row.metric, list(_points(row))) for row in found.data.result]

    def _refused(self, found: _Said, query: str, status: int) -> PrometheusError:
        kind = RangeTooLargeError if found.kind in _TOO_MUCH else PrometheusError
        said = found.error[:_SAID] or status
        return kind(f"--prometheus {self._url} refuses {query}: {said}")

    async def _ask(self, what: str, form: Mapping[str, str], most: int) -> tuple[int, bytes]:
        """Return status and body, of which a byte more than the most is read at least."""
        try:
            async with self._session.post(f"{self._url}/api/v1/{what}", data=form) as answer:
                data = bytearray()
                while len(data) <= most and (more := await answer.content.read(1 << 20)):
                    data += more
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            said = failures.unanswered(error)
            raise PrometheusError(f"--prometheus {self._url} does not answer: {said}") from error
        self.received += len(data)
        return status, bytes(data)

    def _read(self, data: bytes, shape: type[T], status: int) -> T:
        try:
            return msgspec.json.decode(data, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise PrometheusError(
                f"--prometheus {self._url} answers {status} and no figures: name the address of a "
                "Prometheus, such as http://prometheus.monitoring:9090"
            ) from error


def _figure(row: Mapping[str, Any]) -> samples.Figure | None:
    try:
        value = float(row["value"][1])
        labels = {str(key): str(text) for key, text in row["metric"].items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None
    return samples.Figure(labels, value) if _is_figure(value) else None


def _points(row: _Row) -> list[tuple[float, float]]:
    found = []
    for at, text in row.values:
        try:
            value = float(text)
        except ValueError:
            continue  # No number is no figure, as NaN is none.
        if _is_figure(value):
            found.append((at, value))
    return found


def _is_figure(value: float) -> bool:
    # False for what is no number as well.
    return abs(value) < 1e30


@contextlib.asynccontextmanager
async def opened(url: str, token: Path | None, authority: Path | None) -> AsyncIterator[Prometheus]:
    """Yield a Prometheus at an address; the token is read from a file, never from the command."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PrometheusError(f"--prometheus {url}: write http://HOST:PORT or https://HOST:PORT")
    if parts.username is not None or parts.password is not None:
        raise PrometheusError("--prometheus: write no password into it; see --prometheus-token")
    headers, trust = _credentials(token, authority)
    connector = aiohttp.TCPConnector(ssl=trust)
    limit = aiohttp.ClientTimeout(total=SECONDS)
    async with aiohttp.ClientSession(
        connector=connector, timeout=limit, headers=headers
    ) as session:
        yield Prometheus(session, url.rstrip("/"))


def _credentials(
    token: Path | None, authority: Path | None
) -> tuple[dict[str, str], ssl.SSLContext]:
    headers = {}
    try:
        if token is not None:
            headers["Authorization"] = f"Bearer {token.read_text(encoding='utf-8').strip()}"
        trust = ssl.create_default_context(cafile=None if authority is None else str(authority))
    except (OSError, ValueError) as error:
        raise PrometheusError(f"--prometheus: a file cannot be read: {error}") from error
    return headers, trust
