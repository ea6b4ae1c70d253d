"""Reads what pods ask for: one object for all pods that ask for the same.

So 150,000 pods of some thousand shapes stay small.
"""

import weakref
from typing import Final

import msgspec

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.pods import resources
from extender.state import bounds, gang_facts, requirements

PodRequirements = requirements.PodRequirements

_LABELS: Final = frozenset({names.LABEL_QOS, names.LABEL_PRIORITY_CLASS})
_NOTES: Final = frozenset(
    {
        names.ANNOTATION_LOAD_SCALING_FACTORS,
        names.ANNOTATION_LOAD_SECONDS_AFTER_SCHEDULED,
        names.ANNOTATION_LOAD_SECONDS_AFTER_INITIALIZED,
    }
)
_SHAPE: Final = msgspec.json.Encoder()
_MOST_KNOWN: Final = 16384
"""Shapes by which what pods ask for is found; of what some pod has, only the text is extra."""
_LONGEST_SHAPE: Final = 4096
"""Bytes of such a text; authors of pods could make long ones at will."""
_GRACE: Final = 30
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - compared, not bound


class Inputs(msgspec.Struct, frozen=True):
    """The labels and annotations of pods that plug-ins look at, by name."""

    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()


NO_INPUTS: Final = Inputs()


class Reader:
    """Reads pods, sharing what those that are alike ask for."""

    def __init__(self, inputs: Inputs = NO_INPUTS) -> None:
        self._inputs = inputs
        self._shaping = Inputs(_LABELS | inputs.labels, _NOTES | inputs.annotations)
        """What requirements depend on, of plug-ins and of the framework itself."""
        self._alike: weakref.WeakValueDictionary[tuple[object, ...], PodRequirements] = (
            weakref.WeakValueDictionary()
        )
        self._shapes: weakref.WeakValueDictionary[bytes, PodRequirements] = (
            weakref.WeakValueDictionary()
        )

    def read(self, pod: core.Pod) -> PodRequirements:
        """Return what a pod asks for, the same object for pods that are alike."""
        shape = _shape(pod, self._shaping)
        text = _SHAPE.encode(shape)
        found = self._shapes.get(text)
        if found is None:
            found = self._shared(shape)
            if len(text) <= _LONGEST_SHAPE:
                if len(self._shapes) >= _MOST_KNOWN:
                    self._shapes.clear()
                self._shapes[text] = found
        return found

    def _shared(self, shape: core.Pod) -> PodRequirements:
        nonzero = resources.nonzero_requests(shape)
        notes, grace = shape.metadata.annotations, shape.spec.termination_grace_period_seconds
        parts = (
            bounds.pairs(resources.pod_requests(shape)),
            bounds.pairs(resources.pod_limits(shape)),
            qos.band_of_pod(shape),
            any(owner.kind == "DaemonSet" for owner in shape.metadata.owner_references),
            bounds.short(notes, names.ANNOTATION_LOAD_SCALING_FACTORS),
            bounds.short(notes, names.ANNOTATION_LOAD_SECONDS_AFTER_SCHEDULED),
            bounds.short(notes, names.ANNOTATION_LOAD_SECONDS_AFTER_INITIALIZED),
            shape.spec.priority or 0,
            self._noted(shape.metadata),
            shape.spec.preemption_policy != "Never",
            bounds.bounded(_GRACE if grace is None else grace),
            (
                bounds.bounded(nonzero.get(names.CPU, 0)),
                bounds.bounded(nonzero.get(names.MEMORY, 0)),
            ),
            bounds.pairs(resources.sequential_requests(shape)),
            _host_ports(shape.spec),
            gang_facts.scheduling_group(shape.spec),
            gang_facts.is_member(shape),
            notes.get(names.ANNOTATION_NETWORK_TOPOLOGY_SELECTOR, ""),
        )
        found = self._alike.get(parts)
        if found is None:
            found = self._alike[parts] = PodRequirements(*parts)
        return found

    def _noted(self, metadata: core.ObjectMeta) -> tuple[tuple[str, str], ...]:
        """Return what plug-ins look at; a name that is both counts as a label."""
        inputs, notes, labels = self._inputs, metadata.annotations, metadata.labels
        found = [
            (name, notes[name])
            for name in inputs.annotations.intersection(notes)
            if name not in inputs.labels
        ]
        found += [(name, labels[name]) for name in inputs.labels.intersection(labels)]
        return tuple(sorted(found))


def _host_ports(spec: core.PodSpec) -> tuple[requirements.HostPort, ...]:
    """Return the ports of the node that containers listen on, sorted, each once."""
    found = {
        ("" if port.host_ip == _ANY_ADDRESS else port.host_ip, port.protocol, port.host_port)
        for container in (*spec.containers, *spec.init_containers)
        for port in container.ports
        if port.host_port > 0
    }
    return tuple(sorted(found)) if found else ()


def _shape(pod: core.Pod, inputs: Inputs) -> core.Pod:
    """Return the pod without all that does not matter to what it asks for."""
    metadata, spec = pod.metadata, pod.spec
    notes, labels = metadata.annotations, metadata.labels
    return core.Pod(
        metadata=core.ObjectMeta(
            # In one order, so that pods that are alike have one text.
            labels={name: labels[name] for name in sorted(inputs.labels.intersection(labels))},
            annotations={
                name: bounds.short(notes, name)
                for name in sorted(inputs.annotations.intersection(notes))
            },
            owner_references=tuple(
                core.OwnerReference(kind=owner.kind) for owner in metadata.owner_references
            ),
        ),
        spec=core.PodSpec(
            containers=spec.containers,
            init_containers=spec.init_containers,
            resources=spec.resources,
            overhead=spec.overhead,
            priority=spec.priority,
            preemption_policy=spec.preemption_policy,
            termination_grace_period_seconds=spec.termination_grace_period_seconds,
            scheduling_group=spec.scheduling_group,
        ),
        status=core.PodStatus(qos_class=pod.status.qos_class),
    )
