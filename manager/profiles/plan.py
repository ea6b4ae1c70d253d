"""What a profile makes of pods that were there before it and wait for a node.

Only what can still change: labels, annotations and the patch. What is set at creation alone (the
scheduler, the priority class, the rewritten requests) stays as it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from api import names
from api.koordinator import colocation
from api.kubernetes import core, selectors
from api.kubernetes.patching import patches
from api.wire import base, untrusted
from domain.pods import profile_effects

Labels = Mapping[str, str]
_PROFILES: Final = "profiles"
_MIRROR: Final = "kubernetes.io/config.mirror"


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A pod without a node."""

    namespace: str
    name: str
    uid: str
    labels: dict[str, str]

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def waiting(pod: core.Pod) -> Waiting | None:
    """Project a pod; one that has a node, has ended or is leaving is none of our business."""
    metadata = pod.metadata
    if pod.spec.node_name or pod.status.phase not in {"", "Pending"}:
        return None
    if metadata.deletion_timestamp is not None or _MIRROR in metadata.annotations:
        return None
    return Waiting(metadata.namespace, metadata.name, metadata.uid, metadata.labels)


def is_managed(profile: colocation.ClusterColocationProfile, *, by_default: bool) -> bool:
    """Tell whether a profile asks to be applied to pods that exist already."""
    metadata = profile.metadata
    if metadata.deletion_timestamp is not None:
        return False
    return by_default or metadata.labels.get(names.LABEL_CONTROLLER_MANAGED) == "true"


def candidates(
    profile: colocation.ClusterColocationProfile,
    pods: Iterable[Waiting],
    namespaces: Mapping[str, Labels],
) -> Iterator[Waiting]:
    """Yield the pods that a profile selects; other than at admission no selector selects none."""
    chosen, home = profile.spec.selector, profile.spec.namespace_selector
    for pod in pods:
        labels = namespaces.get(pod.namespace)
        if labels is None or not selectors.matches(chosen, pod.labels):
            continue
        if home is None or selectors.matches(home, labels):
            yield pod


def change(
    pod: Mapping[str, Any], profile: colocation.ClusterColocationProfile
) -> dict[str, Any] | None:
    """Return the merge patch by which a stored pod follows a profile; None if it does.

    What the profile did to the pod before is taken back first, so that nothing is appended twice.
    Raises an EffectError where the profile cannot be applied.
    """
    metadata = pod.get("metadata") or {}
    record = _record(metadata)
    kept = record.get(_PROFILES)
    kept = kept if isinstance(kept, Mapping) else {}
    own = {profile.name: kept[profile.name]} if profile.name in kept else {}
    before = [one for one in profile_effects.effects_in(own) if one.part != "spec"]
    first = {**pod, "metadata": profile_effects.restored(metadata, before)}
    limited = profile.but(spec=profile.spec.but(scheduler_name="", priority_class_name=""))
    after, effects = profile_effects.on_pod(first, limited, {})
    if patches.same(_essence(after), _essence(pod)):
        return None
    told = profile_effects.record(effects)
    record = {**record, _PROFILES: {**kept, **told}}
    annotations = {
        **(after["metadata"].get("annotations") or {}),
        names.ANNOTATION_CHANGES: base.encoded(record),
    }
    after = {**after, "metadata": {**after["metadata"], "annotations": annotations}}
    found = patches.merge_patch(pod, after)
    found.setdefault("metadata", {}).update(
        uid=metadata.get("uid", ""), resourceVersion=metadata.get("resourceVersion", "")
    )
    return found


def _essence(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the record, and maps that are empty on one side and missing on the other."""
    metadata = dict(pod.get("metadata") or {})
    annotations = dict(metadata.pop("annotations", None) or {})
    annotations.pop(names.ANNOTATION_CHANGES, None)
    labels = metadata.pop("labels", None) or {}
    return {**pod, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def _record(metadata: Mapping[str, Any]) -> dict[str, Any]:
    written = (metadata.get("annotations") or {}).get(names.ANNOTATION_CHANGES)
    if written is None:
        return {}
    try:
        found = untrusted.parsed(written, names.ANNOTATION_CHANGES)
    except base.ReadError:
        return {}
    return dict(found) if isinstance(found, Mapping) else {}
