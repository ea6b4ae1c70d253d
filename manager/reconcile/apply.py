"""The one place where plans become writes."""

import collections
from typing import Any, Final, assert_never

from api import resources
from domain import conditions, field_ownership
from kube.client import client as clients
from kube.client import errors
from kube.controllers import controller, recorder
from kube.informers import store
from manager.reconcile import actions
from process.runtime import clock as clocks
from process.runtime import metrics

_ECHO_SECONDS: Final = 10.0
_LOOK_AGAIN_SECONDS: Final = 0.5
_MOST_TOLD: Final = 10_000

WAITS: Final = controller.Outcome("waits for readable cluster settings", changed=False)
"""What a controller answers that may not decide yet."""

Key = tuple[str, str]


class Writer:
    """Carries out plans through a client that stops writing with the leadership."""

    def __init__(
        self,
        client: clients.Client,
        events: recorder.EventRecorder,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._client = client
        self._events = events
        self._clock = clock
        self._written: dict[Key, tuple[int, float]] = {}
        self._told: collections.OrderedDict[tuple[str, ...], tuple[str, str]] = (
            collections.OrderedDict()
        )
        self._writes = registry.counter(
            "koord_manager_writes_total", "Writes by resource and kind.", ("resource", "write")
        )

    async def carry_out(self, wanted: actions.Plan) -> controller.Outcome:
        """Do what a plan says, in order, and return its sentence."""
        for step in wanted.steps:
            await self._do(step)
        writes = any(not isinstance(step, actions.Tell) for step in wanted.steps)
        return controller.Outcome(wanted.message, requeue_after=wanted.again_in, changed=writes)

    def unseen(
        self,
        resource: resources.Resource,
        name: str,
        seen: store.Store[Any],
        namespace: str = "",
    ) -> controller.Outcome | None:
        """Return what to answer while the watch has not shown yet what we wrote last."""
        key = _key(resource, name, namespace)
        version, deadline = self._written.get(key, (0, 0.0))
        if seen.version >= version or self._clock.monotonic() >= deadline:
            self._written.pop(key, None)
            return None
        return controller.Outcome(
            "waits to see its own write", requeue_after=_LOOK_AGAIN_SECONDS, changed=False
        )

    async def _do(self, step: actions.Step) -> None:
        match step:
            case actions.Apply(resource, name, body, namespace):
                answer = await self._client.patch(
                    resource,
                    name,
                    body,
                    namespace=namespace,
                    kind=clients.Patch.APPLY,
                    field_manager=field_ownership.MANAGER,
                )
                self._wrote(resource, name, answer, "apply")
            case actions.Create():
                await self._create(step)
            case actions.Delete():
                await self._delete(step)
            case actions.Merge(resource, name, body, namespace):
                answer = await self._client.patch(
                    resource, name, body, namespace=namespace, field_manager=field_ownership.MANAGER
                )
                self._wrote(resource, name, answer, "merge")
            case actions.PatchStatus(resource, name, body, namespace):
                answer = await self._client.patch(
                    resource,
                    name,
                    body,
                    namespace=namespace,
                    subresource="status",
                    field_manager=field_ownership.MANAGER,
                )
                self._wrote(resource, name, answer, "status")
            case actions.SetCondition():
                await self._set_condition(step)
            case actions.PatchPod():
                await self._patch_pod(step)
            case actions.Evict(namespace, name, uid, dry_run):
                await self._client.evict(namespace, name, uid=uid, dry_run=dry_run)
                self._writes.labels("pods", "try-evict" if dry_run else "evict").inc()
            case actions.Tell():
                self._tell(step)
            case _:
                assert_never(step)

    async def _patch_pod(self, step: actions.PatchPod) -> None:
        """Patch a pod; of so many pods the write is not awaited in a store."""
        await self._client.patch(
            resources.PODS,
            step.name,
            step.body,
            namespace=step.namespace,
            kind=clients.Patch.STRATEGIC,
            subresource=step.subresource,
            brief=True,
            field_manager=field_ownership.MANAGER,
        )
        self._writes.labels("pods", step.subresource or "patch").inc()

    async def _create(self, step: actions.Create) -> None:
        try:
            answer = await self._client.create(
                step.resource, step.body, step.namespace, field_manager=field_ownership.MANAGER
            )
        except errors.AlreadyExists:
            return  # Another client was faster; what it wrote counts.
        self._wrote(step.resource, step.name, answer, "create")

    async def _delete(self, step: actions.Delete) -> None:
        try:
            await self._client.delete(step.resource, step.name, step.namespace, uid=step.uid)
        except errors.NotFound:
            return  # Gone already, or another object by now: either way not ours to remove.
        self._writes.labels(step.resource.plural, "delete").inc()

    async def _set_condition(self, step: actions.SetCondition) -> None:
        said = conditions.merged(
            step.present, (step.condition,), self._clock.now(), types=(step.condition.type,)
        )
        if said is None:
            return
        guard = {"metadata": {"resourceVersion": step.version}} if step.version else {}
        answer = await self._client.patch(
            step.resource,
            step.name,
            {**guard, "status": {"conditions": said}},
            subresource="status",
            field_manager=field_ownership.MANAGER,
        )
        self._wrote(step.resource, step.name, answer, "condition")

    def _wrote(
        self, resource: resources.Resource, name: str, answer: dict[str, Any], write: str
    ) -> None:
        self._writes.labels(resource.plural, write).inc()
        metadata = answer.get("metadata") or {}
        version = str(metadata.get("resourceVersion", ""))
        if version.isdecimal():
            now = self._clock.monotonic()
            key = _key(resource, name, metadata.get("namespace", ""))
            self._written.pop(key, None)
            self._written[key] = (int(version), now + _ECHO_SECONDS)
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Forget writes whose echo is overdue: deleted objects are never looked up again."""
        while self._written[first := next(iter(self._written))][1] <= now:
            del self._written[first]

    def _tell(self, step: actions.Tell) -> None:
        """Say something once; what was said last about the same thing is not said again."""
        topic = step.topic or step.reason
        key = (step.resource.review_name(), step.namespace, step.name, step.uid, topic)
        said = (step.reason, step.note)
        if self._told.get(key) == said:
            return
        self._told[key] = said
        self._told.move_to_end(key)
        if len(self._told) > _MOST_TOLD:
            self._told.popitem(last=False)
        regarding = recorder.Regarding(
            step.resource.api_version, step.resource.kind, step.name, step.namespace, step.uid
        )
        self._events.event(
            regarding, "Warning" if step.warning else "Normal", step.reason, step.note
        )


def _key(resource: resources.Resource, name: str, namespace: str) -> Key:
    return resource.review_name(), f"{namespace}/{name}"
