"""What a request that fails says, as our errors: silence of an address, and refusals."""

import importlib
from typing import Any, Final

import aiohttp
import orjson

from kube.client import errors
from kube.client.connections import connection_pool, http_response

_LARGEST_ERROR: Final = 65_536
_BINARY: Final = b"k8s\x00"
"""What an answer in protobuf begins with."""


FOREIGN: Final = (aiohttp.ClientError, http_response.BrokenError, OSError)
"""What the HTTP library and the pool of connections raise; a TimeoutError is an OSError."""


def ours(what: str, error: Exception) -> errors.KubeError:
    """Turn what is foreign into an error of ours: the one place that does.

    `what` names the request, for people.
    """
    match error:
        case connection_pool.UnsentTimeoutError():
            return errors.NotSent(f"{what}: no answer in time: {error}")
        case connection_pool.UnsentError():
            return errors.NotSent(f"{what}: {error}")
        case aiohttp.ClientConnectorError():
            where = f"{error.host}:{error.port}"
            return errors.NotSent(f"{what}: cannot connect to {where}: {unanswered(error)}")
        case TimeoutError():
            return errors.Unreachable(f"{what}: no answer in time")
        case _:
            return errors.Unreachable(f"{what}: {type(error).__name__}: {error}")


def unanswered(error: Exception) -> str:
    """Say why an address does not answer; the sentence around it names the address."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return connection_pool.reason(error.os_error)
    return str(error) or type(error).__name__


async def refusal(answer: aiohttp.ClientResponse) -> errors.ApiError:
    """Return the error that an answer whose content comes stands for."""
    body = await answer.content.read(_LARGEST_ERROR)
    return refused(answer.status, body, answer.headers.get("Retry-After", ""))


def refused_by(answer: http_response.Response) -> errors.ApiError:
    """Return the error that an answer stands for."""
    return refused(answer.status, answer.body, answer.headers.get(http_response.RETRY_AFTER, ""))


def refused(code: int, body: bytes, retry_after: str) -> errors.ApiError:
    """Return the error that an answer stands for."""
    status = _status(body)
    if not isinstance(status, dict):
        # Something in between answered, such as a load balancer.
        status = {"message": body.decode("utf-8", "replace").strip()[:500]}
    return errors.from_status(status, status=code, retry_after=_seconds(retry_after))


def _status(body: bytes) -> Any:
    if body.startswith(_BINARY):
        # Only who asks for protobuf is answered in it, and has loaded it by then; it takes 4 MiB.
        return importlib.import_module("kube.client.protobuf").refusal(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _seconds(retry_after: str) -> float | None:
    """Return a Retry-After header in seconds; dates are not used by API servers."""
    return float(retry_after) if retry_after.isdecimal() else None
