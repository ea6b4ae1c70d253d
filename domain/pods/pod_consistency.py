"""What the QoS class, the priority and the requests of a pod may not say at the same time."""

from collections.abc import Iterator, Mapping
from typing import Final

from api import names
from api.koordinator.metadata import qos
from api.wire import quantity

CPU_FIELD: Final = "pod.spec.containers[*].resources.requests"

REMEDY: Final[Mapping[qos.QoS, str]] = {
    qos.QoS.BE: "set priorityClassName to koord-batch, koord-mid or koord-free",
    qos.QoS.LSR: "set priorityClassName to koord-prod",
}


def reserved(annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence where a pod carries what only the system may write."""
    if names.ANNOTATION_RESERVE_POD in annotations:
        field = f"annotations.{names.ANNOTATION_RESERVE_POD}"
        yield f"{field}: Forbidden: it is written by the system alone"


def of_pod(quality: qos.QoS, band: qos.Band, requests: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence per contradiction; `requests` is what the pod asks as a whole.

    CPU is in milli, everything else in whole units.
    """
    batch = requests.get(names.BATCH_CPU, 0) or requests.get(names.BATCH_MEMORY, 0)
    if batch and quality is not qos.QoS.BE:
        yield (
            f"labels.{names.LABEL_QOS}: Required value: a pod that requests batch resources must "
            f"carry {names.LABEL_QOS}=BE"
        )
    if not qos.legal(quality, band):
        yield (
            f"Pod: Forbidden: {names.LABEL_QOS}={quality.value} and priorityClass={band.value} "
            f"cannot be used in combination; {REMEDY[quality]}"
        )
    if quality in (qos.QoS.LSR, qos.QoS.LSE):
        cpu = requests.get(names.CPU, 0)
        remedy = f"{quality.value} binds CPUs: request a whole number of them"
        if not cpu:
            yield f"{CPU_FIELD}: Required value: {remedy}"
        elif cpu % 1000:
            yield f'{CPU_FIELD}: Invalid value: "{quantity.format_milli(cpu)}": {remedy}'
