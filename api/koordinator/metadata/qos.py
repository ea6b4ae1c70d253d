"""QoS classes and priority bands, and the rules that connect them."""

import enum
from collections.abc import Mapping
from typing import Final

from api import names
from api.kubernetes import core
from api.wire import quantity


class QoS(enum.StrEnum):
    """How a pod is treated on its node."""

    LSE = "LSE"
    LSR = "LSR"
    LS = "LS"
    BE = "BE"
    SYSTEM = "SYSTEM"
    NONE = ""


class Band(enum.StrEnum):
    """The Koordinator priority class that a priority value falls into."""

    PROD = "koord-prod"
    MID = "koord-mid"
    BATCH = "koord-batch"
    FREE = "koord-free"
    NONE = ""


RANGES: Final[Mapping[Band, range]] = {
    Band.PROD: range(9000, 10000),
    Band.MID: range(7000, 8000),
    Band.BATCH: range(5000, 6000),
    Band.FREE: range(3000, 4000),
}
DEFAULT_PRIORITY: Final[Mapping[Band, int]] = {
    Band.PROD: 9500,
    Band.MID: 7500,
    Band.BATCH: 5500,
    Band.FREE: 3500,
    Band.NONE: 0,
}
_ALL: Final = frozenset(Band)
LEGAL: Final[Mapping[QoS, frozenset[Band]]] = {
    QoS.LSE: _ALL,
    QoS.LSR: frozenset({Band.PROD}),
    QoS.LS: _ALL,
    QoS.BE: frozenset({Band.MID, Band.BATCH, Band.FREE}),
    QoS.SYSTEM: _ALL,
    QoS.NONE: _ALL,
}
# Native resource to the one that a band consumes instead; bands that are absent keep native ones.
TRANSLATION: Final[Mapping[Band, Mapping[str, str]]] = {
    Band.BATCH: {names.CPU: names.BATCH_CPU, names.MEMORY: names.BATCH_MEMORY},
    Band.MID: {names.CPU: names.MID_CPU, names.MEMORY: names.MID_MEMORY},
}
_FROM_KUBERNETES: Final = {"Guaranteed": QoS.LSR, "Burstable": QoS.LS, "BestEffort": QoS.BE}
_BY_NAME: Final[Mapping[str, QoS]] = {one.value: one for one in QoS}
_NO_CLASS: Final = QoS.NONE
_NATIVE: Final = (names.CPU, names.MEMORY)


def qos_of(labels: Mapping[str, str]) -> QoS:
    """Return the class that the label names; anything else is none."""
    named = labels.get(names.LABEL_QOS)
    # Labels of raw objects may hold anything.
    return _BY_NAME.get(named, _NO_CLASS) if isinstance(named, str) else _NO_CLASS


def qos_with_default(labels: Mapping[str, str], kubernetes_qos: str) -> QoS:
    """Return the labelled class, else the one that the Kubernetes QoS class stands for."""
    return qos_of(labels) or _FROM_KUBERNETES.get(kubernetes_qos, QoS.NONE)


def band_of_value(priority: int | None) -> Band:
    """Return the band whose range contains a priority value."""
    if priority is None:
        return Band.NONE
    return next((band for band, values in RANGES.items() if priority in values), Band.NONE)


def band_of(priority: int | None, labels: Mapping[str, str]) -> Band:
    """Return the band by label if the label exists, else by the priority value."""
    named = labels.get(names.LABEL_PRIORITY_CLASS)
    if named is None:
        return band_of_value(priority)
    try:
        return Band(named)
    except ValueError:
        return Band.NONE


def band_of_qos(qos: QoS) -> Band:
    """Return the band that a class stands for where no priority says more."""
    if qos is QoS.BE:
        return Band.BATCH
    return Band.NONE if qos is QoS.NONE else Band.PROD


def band_with_default(priority: int | None, labels: Mapping[str, str], kubernetes_qos: str) -> Band:
    """Return the band, derived from the QoS class where neither label nor priority names one."""
    return band_of(priority, labels) or band_of_qos(qos_with_default(labels, kubernetes_qos))


def priority_with_default(
    priority: int | None, labels: Mapping[str, str], kubernetes_qos: str
) -> int:
    """Return the priority, or the default of the band if it is unset or zero."""
    return priority or DEFAULT_PRIORITY[band_with_default(priority, labels, kubernetes_qos)]


def sub_priority(labels: Mapping[str, str]) -> int:
    """Return the order inside a band, zero when the label is missing or no 32-bit integer."""
    written = labels.get(names.LABEL_PRIORITY, "")
    sign, digits = (-1, written[1:]) if written[:1] == "-" else (1, written.removeprefix("+"))
    legacy_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    if not digits or digits[0] in "+-_" or not digits.isascii() or digits != digits.strip():
        return 0
    try:
        value = sign * (int(digits, 8) if legacy_octal else int(digits, 0))
    except ValueError:
        return 0
    return value if -(2**31) <= value < 2**31 else 0


def legal(qos: QoS, band: Band) -> bool:
    """Tell whether a pod may combine this class with this band."""
    return band in LEGAL[qos]


def kubernetes_qos(pod: core.Pod) -> str:
    """Return the Kubernetes QoS class from the status, or computed while it is empty."""
    if pod.status.qos_class:
        return pod.status.qos_class
    parts: tuple[core.ResourceRequirements, ...]
    if pod.spec.resources is not None and (
        pod.spec.resources.requests or pod.spec.resources.limits
    ):
        parts = (pod.spec.resources,)
    else:
        parts = tuple(c.resources for c in (*pod.spec.init_containers, *pod.spec.containers))
    limits = [_positive(part.limits) for part in parts]
    # A request that is missing becomes the limit; one that is written as zero does not.
    asked = [{**limit, **_native(part.requests)} for part, limit in zip(parts, limits, strict=True)]
    if not any(limits) and not any(any(requests.values()) for requests in asked):
        return "BestEffort"
    guaranteed = all(
        len(limit) == len(_NATIVE) and requests == limit
        for requests, limit in zip(asked, limits, strict=True)
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _native(resources: core.ResourceList) -> dict[str, int]:
    return {name: quantity.milli(resources[name]) for name in _NATIVE if name in resources}


def _positive(resources: core.ResourceList) -> dict[str, int]:
    return {name: value for name, value in _native(resources).items() if value > 0}


def of_pod(pod: core.Pod) -> QoS:
    """Return the QoS class of a pod, derived from Kubernetes where no label names one."""
    return qos_of(pod.metadata.labels) or qos_with_default(pod.metadata.labels, kubernetes_qos(pod))


def band_of_pod(pod: core.Pod) -> Band:
    """Return the band of a pod, derived from its QoS class where nothing names one."""
    band = band_of(pod.spec.priority, pod.metadata.labels)
    return band or band_of_qos(of_pod(pod))
