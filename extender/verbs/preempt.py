"""The preempt verb: which proposed victims stay victims."""

import msgspec

from api.kubernetes import extender as wire
from extender.requeue import unschedulable_pods
from extender.verbs import parts, response

_PREEMPTION = msgspec.json.Decoder(wire.PreemptionArgs)


def answer(on: parts.Parts, body: bytes, now: float) -> bytes:
    """Answer as proposed: nothing that we keep account of is protected from preemption yet."""
    try:
        asked = _PREEMPTION.decode(body)
    except parts.BAD_INPUT as error:
        return response.failure(f"preempt: the request cannot be read: {error}")
    proposed = dict(asked.node_name_to_meta_victims or {})
    for node, victims in (asked.node_name_to_victims or {}).items():
        pods = tuple(wire.MetaPod(pod.metadata.uid) for pod in victims.pods or ())
        proposed[node] = wire.MetaVictims(pods, victims.violations)
    proposed = {node: found for node, found in proposed.items() if found.pods}
    leaving = {
        node: frozenset(pod.uid for pod in found.pods or ()) for node, found in proposed.items()
    }
    if leaving:
        preemptor = unschedulable_pods.Preemptor(asked.pod.metadata.uid, leaving, now)
        on.waits.preempts(asked.pod.metadata.key, preemptor)
    return parts.ENCODER.encode(wire.PreemptionResult(proposed))
