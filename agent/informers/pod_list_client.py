"""The pods of this node, from the API server: for the time that their kubelet does not answer.

The answer comes from the API server's memory and may be older than what is known already; it
knows the pods that a kubelet runs by itself, from its own files, by their mirrors only.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from agent.model import pod_lists
from api import resources
from api.kubernetes import core
from kube.client import client, errors, wire

_MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCE: Final = "kubernetes.io/config.source"


class ListedError(Exception):
    """The answer is not to be believed; the text says why."""


async def listed(kube: client.Client, node: str) -> tuple[int, tuple[core.Pod, ...]]:
    """Return the version of the answer and the pods of one node, by the uids of their groups."""
    selection = client.Selection(resources.PODS, fields=f"spec.nodeName={node}")
    body = await kube.page(selection, {"resourceVersion": "0"})
    try:
        found = pod_lists.read(body)
    except pod_lists.ListError as error:
        raise errors.Malformed(f"no list of pods: {error}") from error
    return wire.number(found.version), by_cgroup(found.pods)


def newest(pods: Iterable[core.Pod]) -> int:
    """Return the newest version of any of these pods."""
    return max((wire.number(pod.metadata.resource_version or "0") for pod in pods), default=0)


def merged(known: Iterable[core.Pod], answer: tuple[core.Pod, ...]) -> tuple[core.Pod, ...]:
    """Return the answer and the kubelet's own pods, which no other part needs."""
    uids = {pod.metadata.uid for pod in answer}
    kept = (pod for pod in known if _of_kubelet(pod) and pod.metadata.uid not in uids)
    return (*answer, *kept)


def _of_kubelet(pod: core.Pod) -> bool:
    return pod.metadata.annotations.get(_SOURCE, "api") != "api"


def by_cgroup(pods: Collection[core.Pod]) -> tuple[core.Pod, ...]:
    """Return pods by the uids of their cgroups: a mirror under that of what it mirrors.

    Anyone who may create pods can call one a mirror, until the kubelet deletes it. So a mirror
    never takes the uid of an ordinary pod or of an older mirror.
    """
    mirrors: dict[str, core.Pod] = {}
    for pod in sorted(pods, key=_created):
        mirrors.setdefault(pod.metadata.annotations.get(_MIRROR, ""), pod)
    for uid in ("", *(pod.metadata.uid for pod in pods)):
        mirrors.pop(uid, None)
    uids = {pod.metadata.uid: uid for uid, pod in mirrors.items()}
    return tuple(_under(uids.get(pod.metadata.uid), pod) for pod in pods)


def _created(pod: core.Pod) -> str:
    return pod.metadata.creation_timestamp or ""


def _under(uid: str | None, pod: core.Pod) -> core.Pod:
    if uid is None:
        return pod
    metadata = msgspec.structs.replace(pod.metadata, uid=uid)
    return msgspec.structs.replace(pod, metadata=metadata)
