"""Asks a Prometheus for figures: instant queries, bounded in time and in size."""

import contextlib
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from process.configuration import explained_error

SECONDS: Final = 60.0
MOST_BYTES: Final = 64 << 20
_SAID: Final = 200


class PrometheusError(explained_error.ExplainedError):
    """A Prometheus that does not answer; says what was asked and what to look at."""


class Figure(NamedTuple):
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


class _Data(msgspec.Struct, frozen=True):
    result: list[dict[str, Any]] = []


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    error: str = ""
    data: _Data = _Data()


class Prometheus:
    """One Prometheus, or what speaks its query API."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def figures(self, query: str, at: float) -> list[Figure]:
        """Return the series of a query at a moment; those without a number are left out."""
        url = f"{self._url}/api/v1/query"
        form = {"query": query, "time": f"{at:.3f}"}
        try:
            async with self._session.post(url, data=form) as answer:
                data = await answer.content.read(MOST_BYTES + 1)
                while len(data) <= MOST_BYTES and (more := await answer.content.read(1 << 20)):
                    data += more
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            said = str(error) or type(error).__name__
            raise PrometheusError(f"--prometheus {self._url} does not answer: {said}") from error
        if len(data) > MOST_BYTES:
            raise PrometheusError(
                f"--prometheus {self._url}: an answer is larger than {MOST_BYTES >> 20} MiB; name "
                "fewer --days"
            )
        return self._read(data, status, query)

    def _read(self, data: bytes, status: int, query: str) -> list[Figure]:
        try:
            found = msgspec.json.decode(data, type=_Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise PrometheusError(
                f"--prometheus {self._url} answers {status} and no figures: name the address of a "
                "Prometheus, such as http://prometheus.monitoring:9090"
            ) from error
        if found.status != "success":
            raise PrometheusError(
                f"--prometheus {self._url} refuses {query}: {found.error[:_SAID] or status}"
            )
        return [one for row in found.data.result if (one := _figure(row)) is not None]


def _figure(row: Mapping[str, Any]) -> Figure | None:
    try:
        value = float(row["value"][1])
        labels = {str(key): str(text) for key, text in row["metric"].items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None
    return Figure(labels, value) if value == value and abs(value) < 1e30 else None


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
