"""Quotas of which pods wait for room: what a moved pod leaves goes to the first in line. Pure."""

from api import names
from descheduler.model import picture, podinfo


class QuotaLines:
    """The quotas of a picture for which pods wait; they are looked up once.

    A pod without the label of a quota counts with those of its namespace that have none.
    """

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._waiting: frozenset[tuple[str, str]] | None = None

    def waits(self, pod: podinfo.Pod) -> bool:
        """Whether the replacement of a pod would have to wait behind others for its quota."""
        if self._waiting is None:
            self._waiting = frozenset(
                _quota(one) for one in self._seen.pods.values() if not one.node and _waits(one)
            )
        return bool(self._waiting) and _quota(pod) in self._waiting


def _waits(pod: podinfo.Pod) -> bool:
    return any(
        one.kind == names.CONDITION_QUOTA and one.status == "False" for one in pod.conditions
    )


def _quota(pod: podinfo.Pod) -> tuple[str, str]:
    named = pod.labels.get(names.LABEL_QUOTA_NAME, "")
    return (named, "") if named else ("", pod.namespace)
