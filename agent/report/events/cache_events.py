"""Reports of single pods: the resctrl groups that are made and removed for them."""

from collections.abc import Callable, Sequence
from typing import Final

from agent.apply import audit
from agent.hooks import resctrl
from agent.model import edits, state
from kube.controllers import recorder

REASON: Final = "Pod Level Resctrl"
_DONE: Final = frozenset({"written", "put back"})


class PodEvents:
    """Posts an event on a pod whose group was made or removed."""

    def __init__(
        self, events: recorder.Recorder, picture: Callable[[], state.NodeState | None]
    ) -> None:
        self._events = events
        self._picture = picture
        self._told: dict[str, recorder.Regarding] = {}
        """The pods that have a group, by uid: they are gone when it is removed."""

    def take(self, records: Sequence[audit.Record]) -> None:
        """Look through what was done in one tick."""
        for record in records:
            if record.role is not edits.Role.RESCTRL_GROUP or record.outcome not in _DONE:
                continue
            for group in record.groups:
                if group.startswith(resctrl.POD_PREFIX):
                    self._tell(group, made=record.value == edits.PRESENT)

    def _tell(self, group: str, *, made: bool) -> None:
        uid = group.removeprefix(resctrl.POD_PREFIX)
        pod = self._find(uid) if made else self._told.pop(uid, None)
        if pod is None:
            # A foreign group of a pod that was never known here.
            return
        if made:
            self._told[uid] = pod
        note = f"resctrl group {group} was {'made' if made else 'removed'}"
        self._events.event(pod, "Normal", REASON, note, action="Dividing")

    def _find(self, uid: str) -> recorder.Regarding | None:
        picture = self._picture()
        for pod in picture.pods if picture is not None else ():
            meta = pod.pod.metadata
            if meta.uid == uid:
                return recorder.Regarding("v1", "Pod", meta.name, meta.namespace, uid)
        return None
