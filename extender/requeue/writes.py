"""What is written on pods that wait: the node to look at first, and that they are to be tried."""

import logging
from typing import Final

from api import names, resources
from api.wire import durations
from extender.framework import views
from extender.requeue import unschedulable_pods
from extender.state import records
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

UNSEEN_SECONDS: Final = 60.0
"""How long a pod waits that the scheduler has tried and the watch does not show."""


class Writes:
    """Patches pods, and adds up how long that takes."""

    def __init__(
        self,
        client: clients.Client,
        clock: clocks.Clock,
        pods: store.Store[records.PodRecord],
        waiting: unschedulable_pods.UnschedulablePods,
    ) -> None:
        self.seconds = 0.0
        """How long writing has taken, until it is set back."""
        self._client, self._clock = client, clock
        self._pods, self._waiting = pods, waiting

    async def nominate(self, request: views.PodInfo, node: str) -> None:
        """Have the scheduler look first at a node that its sample of nodes may leave out again."""
        body = {"metadata": {"uid": request.uid}, "status": {"nominatedNodeName": node}}
        namespace, _, name = request.key.partition("/")
        started = self._clock.monotonic()
        try:
            await self._client.patch(
                resources.PODS,
                name,
                body,
                namespace=namespace,
                subresource="status",
                kind=clients.Patch.STRATEGIC,
                brief=True,
            )
        except errors.KubeError as error:
            logger.info("pod could not be nominated pod=%s error=%s", request.key, error)
        finally:
            self.seconds += self._clock.monotonic() - started

    async def wake(self, key: str, uid: str, tried_at: float, because: str) -> bool:
        """Change the annotation of exactly this pod; whether nothing is left to be done for it.

        The scheduler may ask about a pod before our watch shows it.
        """
        pod = self._pods.get(key)
        if pod is None or pod.uid != uid or pod.node:
            is_shown = pod is not None and pod.uid == uid
            if is_shown or self._clock.now() - tried_at >= UNSEEN_SECONDS:
                self._waiting.settled(key, uid)
            return False
        namespace, _, name = key.partition("/")
        notes = {names.ANNOTATION_NUDGE: durations.precise_moment(self._clock.now())}
        # The uid guards against another pod of that name.
        body = {"metadata": {"uid": uid, "annotations": notes}}
        started = self._clock.monotonic()
        try:
            await self._client.patch(
                resources.PODS,
                name,
                body,
                namespace=namespace,
                kind=clients.Patch.STRATEGIC,
                brief=True,
            )
        except errors.KubeError as error:
            logger.info("pod could not be woken pod=%s error=%s", key, error)
            return False
        finally:
            self.seconds += self._clock.monotonic() - started
        logger.info("pod woken pod=%s because=%s", key, because)
        return True
