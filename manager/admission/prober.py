"""Asks whether a webhook answers, the way the API server would reach it."""

import asyncio
import functools
import logging
import ssl

import aiohttp

from manager.admission import registered

logger = logging.getLogger(__name__)

PATH = "/readyz"
# A Service leads each connection to any endpoint: when one is silent, others are asked at once.
_MORE = 4
# Each kind of configuration has its caBundle; while it is renewed there is one more.
_BUNDLES = 4


@functools.lru_cache(maxsize=_BUNDLES)
def _trust(bundle: str) -> ssl.SSLContext:
    """Read a caBundle once; an empty one stands for all authorities of the system, as in Go."""
    return ssl.create_default_context(cadata=bundle)


class Probe:
    """Opens new connections to a webhook, verified as the API server verifies them."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url = url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=seconds)

    async def ask(self, target: registered.Target) -> str | None:
        """Return why no webhook answers, nothing when one does, None when that is unknown."""
        try:
            trust = _trust(target.bundle)
        except (ssl.SSLError, ValueError) as error:
            return f"the registered caBundle cannot be read: {error}"
        problem = await self._once(target, trust)
        if not problem:
            return problem
        others = await asyncio.gather(*(self._once(target, trust) for _ in range(_MORE)))
        return problem if all(others) else ""

    async def _once(self, target: registered.Target, trust: ssl.SSLContext) -> str | None:
        base = self._url or f"https://{target.host}:{target.port}"
        connector = aiohttp.TCPConnector(force_close=True)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=self._timeout) as session,
                session.get(f"{base}{PATH}", ssl=trust, server_hostname=target.host) as answer,
            ):
                return "" if answer.status == 200 else f"it answers {answer.status}"
        except aiohttp.ClientConnectorDNSError as error:
            # The API server looks Services up by itself: that names fail here says nothing of it.
            logger.warning("webhook cannot be looked up host=%s reason=%s", target.host, error)
            return None
        except TimeoutError:
            return f"no answer within {self._timeout.total:g} s"
        except (aiohttp.ClientError, OSError) as error:
            return f"{type(error).__name__}: {error}"
