"""Which stored pods admission would have changed or refused, had it been asked."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator import colocation
from api.koordinator.metadata import qos
from api.kubernetes import core, selectors
from api.kubernetes.webhooks import webhook_configuration
from api.wire import durations
from domain.devices.allocation import gpus
from domain.lending import colocation as lending
from domain.pods import pod_consistency, profiles, resources
from manager.admission import registered
from manager.model import projections

UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"
_SKIP_RESOURCES: Final = "ColocationProfileSkipMutatingResources"
_CHECKED_DEVICES: Final = "ValidatePodDeviceResource"
_KEPT_DEVICES: Final = "DisableDeviceResourceSpec"
_MIRROR: Final = "kubernetes.io/config.mirror"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_NATIVE: Final = (names.CPU, names.MEMORY)


Judge = Callable[[core.Pod], tuple[projections.Fault, ...]]
"""Returns what is wrong with a stored pod."""


class Profile(NamedTuple):
    """A profile, and since when it says what it says."""

    profile: colocation.ClusterColocationProfile
    since: float


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """What admission decides on, and which namespaces it is asked about."""

    profiles: Sequence[Profile]
    namespaces: Mapping[str, Mapping[str, str]]
    mutating: registered.Registered | None
    validating: registered.Registered | None
    unreviewed: frozenset[str]
    """Namespaces that are never reviewed where nothing is registered."""

    @property
    def answering(self) -> webhook_configuration.Answering:
        """How the webhook answers."""
        return (
            webhook_configuration.Answering() if self.mutating is None else self.mutating.answering
        )


def view(pod: core.Pod, judge: Judge) -> projections.Pod | None:
    """Project a pod together with what is wrong with it; one that waits counts only for that."""
    placed, found = projections.pod(pod), judge(pod)
    if not found:
        return placed
    waiting = projections.Pod("", qos.Band.NONE, lending.NOTHING, exclusive=False)
    return msgspec.structs.replace(placed or waiting, faults=found, uid=pod.metadata.uid)


def profile(raw: Mapping[str, Any]) -> Profile:
    """Project a profile."""
    metadata = raw["metadata"]
    moments = [metadata["creationTimestamp"]]
    moments += [
        one["time"]
        for one in metadata.get("managedFields") or ()
        if "time" in one and not one.get("subresource")
    ]
    return Profile(colocation.read_profile(raw), max(map(durations.timestamp, moments)))


def faults(pod: core.Pod, picture: Picture) -> tuple[projections.Fault, ...]:
    """Return what is wrong with a pod that admission cannot have seen."""
    if picture.answering.mode != "enforce" or pod.status.phase in _FINISHED:
        return ()
    if _MIRROR in pod.metadata.annotations or pod.metadata.creation_timestamp is None:
        return ()
    namespace = picture.namespaces.get(pod.metadata.namespace)
    if namespace is None:
        return ()
    created = durations.timestamp(pod.metadata.creation_timestamp)
    return (
        *_unchanged(pod, namespace, created, picture),
        *_old_names(pod, namespace, created, picture),
        *_plain_devices(pod, namespace, created, picture),
        *_refused(pod, namespace, created, picture),
    )


def _unchanged(
    pod: core.Pod, namespace: Mapping[str, str], created: float, picture: Picture
) -> Iterator[projections.Fault]:
    labels = pod.metadata.labels
    matched = [one for one in picture.profiles if profiles.matches(one.profile, namespace, labels)]
    # Of a profile that is younger than the pod, or was changed since, nothing can be told.
    if not matched or any(created <= one.since for one in matched):
        return
    if not _is_reviewed(picture.mutating, pod, namespace, picture):
        return
    rewrites = _SKIP_RESOURCES not in picture.answering.gates
    among = [one.profile for one in matched]
    lacking = profiles.passed_by(among, _stored(pod), rewrites=rewrites)
    if lacking:
        named = ", ".join(sorted(one.name for one in among))
        yield projections.Fault(
            UNCHANGED,
            f"was created without admission, so ClusterColocationProfile {named} was not applied "
            f"({lacking}); these fields are set at creation only: create the pod anew",
        )


def _refused(
    pod: core.Pod, namespace: Mapping[str, str], created: float, picture: Picture
) -> Iterator[projections.Fault]:
    asked = picture.validating
    if asked is None or created <= asked.created:
        return
    if not _is_reviewed(asked, pod, namespace, picture):
        return
    labels = pod.metadata.labels
    quality, band = qos.qos_of(labels), qos.band_of(pod.spec.priority, labels)
    found = (
        *pod_consistency.reserved(pod.metadata.annotations),
        *pod_consistency.of_pod(quality, band, resources.pod_requests(pod)),
        *(dict.fromkeys(_devices(pod)) if _CHECKED_DEVICES in picture.answering.gates else ()),
    )
    if found:
        yield projections.Fault(
            REFUSED,
            f"was created without admission, which would have refused it: {'; '.join(found)}; "
            "delete it and create it as it should be",
        )


def _devices(pod: core.Pod) -> Iterator[str]:
    for asked in _containers(pod):
        yield from gpus.faults(asked.requests)


def _old_names(
    pod: core.Pod, namespace: Mapping[str, str], created: float, picture: Picture
) -> Iterator[projections.Fault]:
    """Yield a fault where a pod waits for resources by names that admission always replaces."""
    asked = picture.mutating
    if pod.spec.node_name or asked is None or created <= asked.created:
        return
    if not _is_reviewed(asked, pod, namespace, picture):
        return
    found = names.DEPRECATED_RESOURCES.keys() & {
        name for one in _containers(pod) for name in (*one.requests, *one.limits)
    }
    if found:
        listed = ", ".join(f"{old} ({names.DEPRECATED_RESOURCES[old]})" for old in sorted(found))
        yield projections.Fault(
            UNCHANGED,
            "was created without admission, so it still asks by retired names, which no node "
            f"offers: {listed}; create the pod anew, best with the names in brackets",
        )


def _containers(pod: core.Pod) -> tuple[core.ResourceRequirements, ...]:
    return tuple(one.resources for one in (*pod.spec.containers, *pod.spec.init_containers))


def _plain_devices(
    pod: core.Pod, namespace: Mapping[str, str], created: float, picture: Picture
) -> Iterator[projections.Fault]:
    """Yield a fault where a pod asks for GPUs in words that admission always replaces."""
    asked = picture.mutating
    if _KEPT_DEVICES in picture.answering.gates or asked is None or created <= asked.created:
        return
    if not _is_reviewed(asked, pod, namespace, picture):
        return
    if any(names.GPU in asked_for.requests for asked_for in _containers(pod)):
        yield projections.Fault(
            UNCHANGED,
            f"was created without admission, so its {names.GPU} was not replaced by "
            f"{names.GPU_CORE} and {names.GPU_MEMORY_RATIO}, by which devices are shared out; "
            "create the pod anew",
        )


def _is_reviewed(
    found: registered.Registered | None,
    pod: core.Pod,
    namespace: Mapping[str, str],
    picture: Picture,
) -> bool:
    if found is None or not found.webhooks:
        return pod.metadata.namespace not in picture.unreviewed
    try:
        return found.reviews(namespace, pod.metadata.labels)
    except (selectors.SelectorError, KeyError):
        return False


def _stored(pod: core.Pod) -> profiles.Stored:
    return profiles.Stored(
        labels=pod.metadata.labels,
        annotations=pod.metadata.annotations,
        priority_class=pod.spec.priority_class_name,
        scheduler=pod.spec.scheduler_name,
        band=qos.band_of_pod(pod),
        native=any(
            name in side
            for one in _containers(pod)
            for side in (one.requests, one.limits)
            for name in _NATIVE
        ),
    )
