"""Leader election over a Lease, and the fence that stops a deposed leader's writes.

No wall clock of others is trusted: each watcher measures how long a lease has not moved,
on its own monotonic clock, and how long it may be used is counted by its holder from the moment
before the renewal was sent. So the holder stops before anyone else may start.
"""

import asyncio
import contextlib
import dataclasses
import datetime
import logging
import math
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

from api import resources
from kube.client import access as accesses
from kube.client import client as clients
from kube.client import errors, transport
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

logger = logging.getLogger(__name__)

_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """Which lease, who we are, and the three times of the election."""

    name: str
    namespace: str
    identity: str
    duration_seconds: float = 15.0
    """How long a lease holds after its last renewal."""
    renew_seconds: float = 10.0
    """How long a leader tries to renew before it steps down by itself."""
    retry_seconds: float = 2.0
    """How long everyone waits between tries."""

    def __post_init__(self) -> None:
        if not self.duration_seconds > self.renew_seconds > self.retry_seconds > 0:
            raise ValueError(
                f"lease {self.name}: the duration ({self.duration_seconds} s) must exceed "
                f"the renewal ({self.renew_seconds} s), and that the retry "
                f"({self.retry_seconds} s)"
            )


class Fence:
    """Until when one term of leadership allows writes; once closed it never opens again."""

    def __init__(self, clock: clocks.Clock, deadline: float) -> None:
        self._clock = clock
        self._deadline = deadline

    @property
    def deadline(self) -> float:
        """The moment on the monotonic clock after which nothing is written."""
        return self._deadline

    def remaining(self) -> float:
        """Return for how many more seconds writes are allowed."""
        return self._deadline - self._clock.monotonic()

    def check(self) -> None:
        """Raise Deposed when the term is over."""
        if self.remaining() <= 0:
            raise errors.Deposed("the lease that allowed this write has ended")

    def extend(self, deadline: float) -> None:
        """Move the deadline after a renewal, unless the term is over."""
        if self.remaining() > 0:
            self._deadline = max(self._deadline, deadline)

    def close(self) -> None:
        """End the term now."""
        self._deadline = -math.inf


@dataclasses.dataclass(frozen=True, slots=True)
class _Observed:
    """What the lease said, and since when it has said just that."""

    spec: dict[str, Any]
    since: float


class _Figures:
    def __init__(self, registry: metrics.Registry, name: str) -> None:
        self.leading = registry.gauge(
            "koord_lease_leading", "Whether this process holds the lease.", ("lease",)
        ).labels(name)
        self.renewals = registry.counter(
            "koord_lease_renewals_total", "Tries to take or renew the lease.", ("lease", "result")
        )
        self.name = name

    def count(self, result: str) -> None:
        self.renewals.labels(self.name, result).inc()


Work = Callable[[Fence], Coroutine[Any, Any, None]]


class Elector:
    """Competes for a lease for ever, and runs the leader's work while it holds it."""

    def __init__(
        self,
        access: accesses.Access,
        clock: clocks.Clock,
        lease: Lease,
        *,
        rng: random.Random | None = None,
        registry: metrics.Registry | None = None,
    ) -> None:
        self._clock = clock
        self._lease = lease
        self._rng = rng or random.Random()
        # A session of its own: a renewal never waits for the connections or slots of the work.
        self._client = clients.Client(
            access,
            clock=clock,
            user_agent=f"koord-lease/{lease.name}",
            limits=transport.Limits(request_seconds=lease.renew_seconds / 2, attempts=1),
            registry=registry,
        )
        self._figures = _Figures(registry or metrics.Registry(), lease.name)
        self._observed: _Observed | None = None
        self._held: dict[str, Any] | None = None
        self._fence: Fence | None = None

    @property
    def leading(self) -> bool:
        """Whether the lease is ours at this moment."""
        return self._fence is not None and self._fence.remaining() > 0

    @property
    def fence(self) -> Fence | None:
        """The fence of the present term, None when another replica leads."""
        return self._fence

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen."""
        return str(self._observed.spec.get("holderIdentity") or "") if self._observed else ""

    async def run(self, on_started: Work) -> None:
        """Compete for ever; the work of a term is cancelled when the term ends.

        When this is cancelled, the work ends first and the lease is given up after it.
        """
        async with self._client:
            while True:
                self._fence = await self._acquire()
                async with self._term(self._fence):
                    await self._lead(self._fence, on_started)

    @contextlib.asynccontextmanager
    async def _term(self, fence: Fence) -> AsyncIterator[None]:
        self._figures.leading.set(1)
        logger.info("leading lease=%s identity=%s", self._lease.name, self._lease.identity)
        try:
            yield
        finally:
            was_leading = fence.remaining() > 0
            fence.close()
            self._fence = None
            self._figures.leading.set(0)
            logger.info("no longer leading lease=%s", self._lease.name)
            if was_leading:
                await self._release()

    async def _lead(self, fence: Fence, on_started: Work) -> None:
        """Work and renew until one of the two ends."""
        async with supervise.Supervisor(f"term-{self._lease.name}") as term:
            work = term.spawn("work", on_started(fence))
            renewing = term.spawn("renew", self._renew(fence))
            await asyncio.wait({work, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                # Work is expected to go on; its failure is the failure of the process.
                work.result()
                raise RuntimeError(f"the work under lease {self._lease.name} ended by itself")
            renewing.result()

    async def _acquire(self) -> Fence:
        while True:
            started = self._clock.monotonic()
            try:
                is_ours = await self._try()
            except errors.KubeError as error:
                self._figures.count("failed")
                logger.warning("lease was not taken lease=%s error=%s", self._lease.name, error)
            else:
                if is_ours:
                    return Fence(self._clock, started + self._lease.duration_seconds)
            await self._clock.sleep(self._lease.retry_seconds * self._rng.uniform(1.0, 1.2))

    async def _renew(self, fence: Fence) -> None:
        """Renew until the lease is lost or could not be renewed for too long."""
        lease = self._lease
        give_up = fence.deadline - lease.duration_seconds + lease.renew_seconds
        while self._clock.monotonic() < give_up:
            pause = min(lease.retry_seconds, give_up - self._clock.monotonic())
            await self._clock.sleep(pause * self._rng.uniform(0.8, 1.0))
            started = self._clock.monotonic()
            try:
                async with supervise.deadline(self._clock, give_up - started):
                    is_ours = await self._try()
            except (errors.KubeError, TimeoutError) as error:
                self._figures.count("failed")
                logger.warning("lease was not renewed lease=%s error=%r", lease.name, error)
                continue
            if not is_ours:
                logger.warning("lease was lost lease=%s holder=%s", lease.name, self.holder)
                fence.close()
                return
            fence.extend(started + lease.duration_seconds)
            if fence.remaining() <= 0:
                break
            give_up = started + lease.renew_seconds
        logger.warning("lease was not renewed in time lease=%s", lease.name)

    async def _try(self) -> bool:
        """Take or renew the lease if it is ours, free or expired; return whether it is ours."""
        if self._held is not None:
            # As its holder we need not read it first: any other write makes ours a conflict.
            held, self._held = self._held, None
            with contextlib.suppress(errors.Conflict):
                return await self._write(held)
        try:
            found = await self._client.get(
                resources.LEASES, self._lease.name, self._lease.namespace
            )
        except errors.NotFound:
            return await self._create()
        spec = _spec(found)
        self._observe(spec)
        if not self._is_available(spec):
            return False
        try:
            return await self._write(found)
        except errors.Conflict:
            # Another replica was faster.
            return False

    def _observe(self, spec: dict[str, Any]) -> None:
        if self._observed is None or self._observed.spec != spec:
            self._observed = _Observed(dict(spec), self._clock.monotonic())

    def _is_available(self, spec: dict[str, Any]) -> bool:
        holder = spec.get("holderIdentity")
        if not holder or holder == self._lease.identity:
            return True
        assert self._observed is not None
        unmoved = self._clock.monotonic() - self._observed.since
        return unmoved > float(spec.get("leaseDurationSeconds") or self._lease.duration_seconds)

    async def _create(self) -> bool:
        body = {
            "apiVersion": resources.LEASES.api_version,
            "kind": resources.LEASES.kind,
            "metadata": {"name": self._lease.name, "namespace": self._lease.namespace},
            "spec": self._claim({}),
        }
        try:
            self._keep(await self._client.create(resources.LEASES, body, self._lease.namespace))
        except errors.AlreadyExists:
            return False
        return True

    async def _write(self, lease: dict[str, Any]) -> bool:
        claim = {**lease, "spec": self._claim(lease["spec"])}
        self._keep(await self._client.update(resources.LEASES, claim))
        return True

    def _keep(self, lease: dict[str, Any]) -> None:
        self._observe(_spec(lease))
        self._held = lease
        self._figures.count("held")

    def _claim(self, spec: dict[str, Any]) -> dict[str, Any]:
        now = self._stamp()
        is_new = spec.get("holderIdentity") != self._lease.identity
        return {
            **spec,
            "holderIdentity": self._lease.identity,
            "leaseDurationSeconds": math.ceil(self._lease.duration_seconds),
            "acquireTime": now if is_new else spec.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": int(spec.get("leaseTransitions") or 0)
            + (1 if is_new and spec else 0),
        }

    async def _release(self) -> None:
        """Give the lease up, so that no replica has to wait for its end."""
        held, self._held = self._held, None
        try:
            # A renewal that was interrupted may have arrived or not.
            held = held or await self._client.get(
                resources.LEASES, self._lease.name, self._lease.namespace
            )
            spec = {**_spec(held), "renewTime": self._stamp()}
            if spec.get("holderIdentity") != self._lease.identity:
                return
            spec |= {"holderIdentity": "", "leaseDurationSeconds": 1}
            await self._client.update(resources.LEASES, {**held, "spec": spec})
            logger.info("lease was released lease=%s", self._lease.name)
        except errors.KubeError as error:
            logger.warning("lease was not released lease=%s error=%s", self._lease.name, error)

    def _stamp(self) -> str:
        return datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC).strftime(_TIME)


def _spec(lease: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Lease; Malformed where something in between answered something else."""
    spec, metadata = lease.setdefault("spec", {}), lease.get("metadata")
    if not isinstance(spec, dict) or not isinstance(metadata, dict) or "name" not in metadata:
        raise errors.Malformed("an answer about a lease is no Lease")
    return spec
