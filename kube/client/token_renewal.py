"""A ServiceAccount token in a file that its owner renews itself, by TokenRequest.

A static pod gets no projected token, so that an administrator has to put one on its node. A token
that never expires would be good for as long as a copy of it lies anywhere; this one expires, and is
exchanged for a fresh one after a third of its life. It is bound to a Secret: deleting that object
revokes every token that was ever requested this way.
"""

import base64
import logging
import os
import random
from pathlib import Path
from typing import Final

import msgspec

from api import resources
from api.wire import untrusted
from kube.client import client, errors
from kube.controllers import backoff
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 600.0
_LONGEST_TOKEN: Final = 16 << 10
_WARN_SHARE: Final = 0.5
"""A token that has lived this share of its life should have been renewed."""


class TokenError(ValueError):
    """A token that says no time of expiry; the text says what is wrong and what to do."""


class Life(msgspec.Struct, frozen=True):
    """When a token was issued and when it expires, in seconds since the epoch."""

    issued: float
    expires: float

    @property
    def renew_at(self) -> float:
        """When a third of its life is over."""
        return self.issued + (self.expires - self.issued) / 3


class Wanted(msgspec.Struct, frozen=True):
    """Which token is requested."""

    namespace: str
    account: str
    secret: str
    """The Secret that the token is bound to."""
    seconds: int


class _Claims(msgspec.Struct, frozen=True):
    iat: float
    exp: float


def life(token: str) -> Life:
    """Read when a ServiceAccount token (a JWT) was issued and when it expires."""
    parts = token.strip().split(".")
    if len(parts) != 3 or len(token) > _LONGEST_TOKEN:
        raise TokenError("it is no ServiceAccount token (a JWT of three parts)")
    try:
        text = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)).decode()
        claims = untrusted.decode(text, _Claims, "its claims")
    except ValueError as error:
        raise TokenError(
            f"it does not say when it expires ({error}); put one on the node that "
            "`kubectl create token` made"
        ) from error
    return Life(claims.iat, claims.exp)


def request(wanted: Wanted, uid: str = "") -> dict[str, object]:
    """Return the TokenRequest for a token; the API server fills in its own audience."""
    bound = {"apiVersion": "v1", "kind": "Secret", "name": wanted.secret}
    if uid:
        bound["uid"] = uid
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": wanted.seconds, "boundObjectRef": bound},
    }


class TokenRenewal:
    """Keeps the token in one file fresh."""

    def __init__(
        self,
        kube: client.Client,
        clock: clocks.Clock,
        file: Path,
        wanted: Wanted,
        rng: random.Random | None = None,
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._file = file
        self._wanted = wanted
        self._rng = rng or random.Random()
        self._failure = ""

    def warning(self) -> str | None:
        """Return why the token is not fresh, None while it is."""
        try:
            found = self._read()
        except (OSError, ValueError) as error:
            return f"token file {self._file}: {error}"
        now = self._clock.now()
        if now - found.issued < _WARN_SHARE * (found.expires - found.issued):
            return None
        left = (found.expires - now) / 3600
        state = f"expires in {left:.0f} h" if left > 0 else "has expired: put a new one there"
        return f"token file {self._file}: the token {state} ({self._failure or 'not renewed yet'})"

    async def run(self) -> None:
        """Renew for ever."""
        failures = 0
        while True:
            try:
                rest = self._read().renew_at - self._clock.now()
                if rest > 0:
                    # In parts, so that a clock that is set does not delay a renewal by days.
                    await self._clock.sleep(min(rest, LONGEST_PAUSE_SECONDS))
                    continue
                await self.renew()
                failures, self._failure = 0, ""
                _logger.info("token renewed account=%s", self._wanted.account)
                found = self._read()
                # By the clock of the API server: ours may be so far ahead that it is due again.
                rest = min((found.expires - found.issued) / 3, LONGEST_PAUSE_SECONDS)
                await self._clock.sleep(max(rest, FIRST_PAUSE_SECONDS))
            except (errors.KubeError, OSError, ValueError) as error:
                failures += 1
                if str(error) != self._failure:
                    _logger.warning("token not renewed reason=%s", error)
                self._failure = str(error)
                await self._clock.sleep(
                    backoff.pause(failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, self._rng)
                )

    async def renew(self) -> None:
        """Request a fresh token and put it into the file; KubeError or TokenError where not."""
        wanted = self._wanted
        answer = await self._kube.create(
            resources.SERVICE_ACCOUNTS,
            request(wanted),
            wanted.namespace,
            name=wanted.account,
            subresource="token",
        )
        token = str((answer.get("status") or {}).get("token") or "")
        if life(token).expires <= self._clock.now():
            raise TokenError("the API server issued a token that has expired already")
        self._write(token)

    def _read(self) -> Life:
        return life(self._file.read_text(encoding="ascii"))

    def _write(self, token: str) -> None:
        """Replace the file in one step: a reader meets the old token or the new one."""
        fresh = self._file.with_name(f".{self._file.name}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._file)
