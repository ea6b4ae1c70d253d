"""Why pods must stay, as both evictors say it: each check looks at one pod alone. Pure."""

from collections.abc import Callable, Iterable
from typing import Final

from descheduler.configuration.arguments import parts
from descheduler.framework.filtering import pod_traits
from descheduler.model import podinfo

STATIC: Final = "it is a static pod"
TERMINATING: Final = "it is terminating"
BARE: Final = "it has no owner that would replace it"
DAEMON: Final = "it belongs to a DaemonSet"
CRITICAL: Final = "its priority is critical for the system"
PRIORITY: Final = "its priority is at or above priorityThreshold"
LOCAL_STORAGE: Final = "it has a volume of kind hostPath or emptyDir"
LABELS: Final = "labelSelector does not select it"

Check = Callable[[podinfo.Pod], str]
"""Returns why a pod must stay, empty where it may leave."""


def first_refusal(checks: Iterable[Check], pod: podinfo.Pod) -> str:
    """Return what the first check says that refuses a pod; a forced eviction is asked of none."""
    if pod_traits.is_forced(pod):
        return ""
    for check in checks:
        if reason := check(pod):
            return reason
    return ""


def is_leaving(pod: podinfo.Pod) -> str:
    """Refuse static pods, which the kubelet would start again, and those that leave already."""
    if pod.is_mirror:
        return STATIC
    return TERMINATING if pod.leaves_at >= 0 else ""


def bare(pod: podinfo.Pod) -> str:
    """Refuse pods that nothing would replace."""
    return "" if pod.owners else BARE


def bare_unless_failed(pod: podinfo.Pod) -> str:
    """Refuse pods that nothing would replace, but for those that have failed."""
    return "" if pod.owners or pod.phase == "Failed" else BARE


def daemon(pod: podinfo.Pod) -> str:
    """Refuse pods of DaemonSets."""
    return DAEMON if pod_traits.is_daemon(pod) else ""


def critical(pod: podinfo.Pod) -> str:
    """Refuse pods that the system needs."""
    return CRITICAL if pod_traits.is_system_critical(pod) else ""


def local_storage(pod: podinfo.Pod) -> str:
    """Refuse pods that would lose what they have stored."""
    return LOCAL_STORAGE if pod.has_local_storage else ""


def below(threshold: int) -> Check:
    """Return a check that refuses pods of this priority or a higher one."""

    def check(pod: podinfo.Pod) -> str:
        return PRIORITY if pod.priority is not None and pod.priority >= threshold else ""

    return check


def selected(selector: parts.LabelSelector) -> Check:
    """Return a check that refuses pods which a selector does not select."""

    def check(pod: podinfo.Pod) -> str:
        return "" if selector.selects(pod.labels) else LABELS

    return check
