"""Asks the API server, once, whether another agent follows on this node."""

import logging
from typing import Final

from agent.model import departure
from api import resources
from api.kubernetes import core
from kube.client import access as accesses
from kube.client import client, errors, transport
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
_LIMITS: Final = transport.Limits(connect_seconds=2.0, request_seconds=4.0, attempts=1)
"""Well within the time that a pod has to end."""
_TRIES: Final = 3
_PAUSE_SECONDS: Final = 2.0
"""An API server that has just started refuses everybody until it has read who may do what."""


async def missing(
    access: accesses.Access,
    clock: clocks.Clock,
    where: tuple[str, str],
    node: core.Node | None,
) -> str | None:
    """Say why no agent of a DaemonSet follows; None where one does, or where that is unknown.

    Permissions count as taken away when they are missing a few times in a row.
    """
    for _ in range(_TRIES - 1):
        try:
            return await _missing(access, clock, where, node)
        except (errors.Unauthorized, errors.Forbidden):
            await clock.sleep(_PAUSE_SECONDS)
    try:
        return await _missing(access, clock, where, node)
    except (errors.Unauthorized, errors.Forbidden) as error:
        # An uninstallation takes the permissions away along with the DaemonSet.
        return f"the agent's permissions were taken away ({error})"


async def _missing(
    access: accesses.Access,
    clock: clocks.Clock,
    where: tuple[str, str],
    node: core.Node | None,
) -> str | None:
    namespace, name = where
    try:
        async with client.Client(
            access, clock=clock, user_agent="koord-agent", limits=_LIMITS
        ) as kube:
            found = await kube.get(resources.DAEMON_SETS, name, namespace)
    except errors.NotFound:
        return f"there is no DaemonSet {namespace}/{name}"
    except (errors.Unauthorized, errors.Forbidden):
        raise
    except errors.KubeError as error:
        _logger.warning("whether an agent follows is not known, limits stand error=%s", error)
        return None
    return departure.why(found, node)
