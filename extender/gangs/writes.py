"""What the controller of gangs writes: plans on members, conditions, evictions, and nudges."""

import dataclasses
import logging
from typing import Any

from api import names, resources
from api.wire import durations
from domain.gangs import plan_record, sentences
from extender.state import records
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Writes:
    """The only place where gangs change anything outside this process."""

    client: clients.Client
    clock: clocks.Clock

    async def open(self, pod: records.PodRecord, record: plan_record.Record | None) -> str:
        """Open the gate of a member, and write its place in the same patch; empty is success.

        A member without a gate gets the record alone, which lets kube-scheduler try it again.
        """
        metadata: dict[str, Any] = {"uid": pod.uid}
        if record is not None:
            metadata["annotations"] = {names.ANNOTATION_PLAN: plan_record.encode(record)}
        body: dict[str, Any] = {"metadata": metadata}
        if pod.gang is not None and pod.gang.gated:
            gate = {"$patch": "delete", "name": names.GATE_GANG}
            body["spec"] = {"schedulingGates": [gate]}
        elif record is None:
            return ""
        return await self._patch(pod, body)

    async def nudge(self, pod: records.PodRecord) -> str:
        """Change an annotation of a pod, so that kube-scheduler tries it again."""
        notes = {names.ANNOTATION_NUDGE: durations.precise_moment(self.clock.now())}
        return await self._patch(pod, {"metadata": {"uid": pod.uid, "annotations": notes}})

    async def nominate(self, pod: records.PodRecord, node: str) -> str:
        """Name the expected node in the status, for a scheduler that looks at a part of all."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        return await self._patch(pod, body, "status")

    async def tell(self, pod: records.PodRecord, said: sentences.Said, *, ready: bool) -> str:
        """Write the condition of a member: what its gang waits for."""
        condition = {
            "type": names.CONDITION_GANG,
            "status": "True" if ready else "False",
            "reason": said.reason,
            "message": said.message,
            "lastTransitionTime": durations.moment(self.clock.now()),
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        return await self._patch(pod, body, "status")

    async def evict(self, pod: records.PodRecord) -> str:
        """Evict a member that was bound without its gang, this very pod; empty is success."""
        try:
            await self.client.evict(pod.namespace, pod.name, uid=pod.uid)
        except (errors.NotFound, errors.Conflict):
            return ""
        except errors.KubeError as error:
            return str(error) or type(error).__name__
        return ""

    async def _patch(self, pod: records.PodRecord, body: dict[str, Any], part: str = "") -> str:
        try:
            await self.client.patch(
                resources.PODS,
                pod.name,
                body,
                namespace=pod.namespace,
                subresource=part,
                kind=clients.Patch.STRATEGIC,
                brief=True,
            )
        except (errors.NotFound, errors.Conflict):
            # It is gone, or another pod has its name by now: the watch says so.
            return ""
        except errors.KubeError as error:
            logger.info("member of a gang was not changed pod=%s error=%s", pod.key, error)
            return str(error) or type(error).__name__
        return ""
