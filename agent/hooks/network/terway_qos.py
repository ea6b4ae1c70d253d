"""What Terway, a network plug-in that shapes traffic by itself, reads of classes and pods."""

import json
from typing import Final

from agent.hooks.network import bandwidth
from agent.model import edits, state, strategy_settings
from api.koordinator.metadata import qos
from domain import wording

POLICY: Final = "terway-qos"
_R = edits.Role
_NONE = strategy_settings.Network()
_PRIORITY: Final = {
    qos.QoS.SYSTEM: 0,
    qos.QoS.LSE: 1,
    qos.QoS.LSR: 1,
    qos.QoS.LS: 1,
    qos.QoS.BE: 2,
}
_BY_KUBERNETES: Final = {"Guaranteed": 1, "Burstable": 1, "BestEffort": 2}
_CGROUPS: Final = "/sys/fs/cgroup/net_cls"


def decide(picture: state.NodeState, wanted: strategy_settings.Strategies) -> edits.Decision:
    """Return both files, none where Terway is not to be told anything."""
    if not wanted.classes.by_terway:
        return edits.switched_off(f"netQOSPolicy is not {POLICY}")
    if _R.TERWAY_PODS not in picture.kernel.roles:
        return edits.impossible(
            "there is no folder of Terway's files, or host.terwayQos does not name it"
        )
    try:
        speeds = limits(wanted.classes, wanted.system.bandwidth)
    except bandwidth.BandwidthError as error:
        why = str(error)
        return edits.Decision(f"{why}; what Terway was told stands", decided=False, unmet=why)
    listed, problems = pods(picture, wanted)
    reason = f"Terway reads the limits of {wording.count(len(listed), 'pod', 'pods')}"
    if problems:
        reason += f"; left out: {'; '.join(problems[:3])}"
    text = json.dumps(listed, sort_keys=True, separators=(",", ":"))
    return edits.Decision(
        reason,
        (
            edits.Edit(_R.TERWAY_LIMITS, "", speeds, "network QoS of the classes"),
            edits.Edit(_R.TERWAY_PODS, "", text, "classes and limits of the pods"),
        ),
        figures={"problems": len(problems)},
    )


def limits(classes: strategy_settings.Classes, total_bits: int) -> str:
    """Return bytes per second of the node and of both classes, a line each."""
    total = total_bits // bandwidth.BITS
    lines = [("hw_tx_bps_max", total), ("hw_rx_bps_max", total)]
    for level, named in (("l1", qos.QoS.LS), ("l2", qos.QoS.BE)):
        written = classes.network.get(named, _NONE)
        wanted = written if written.enable else _NONE
        for name, amount in (
            ("tx_bps_min", wanted.egress_request),
            ("tx_bps_max", wanted.egress_limit),
            ("rx_bps_min", wanted.ingress_request),
            ("rx_bps_max", wanted.ingress_limit),
        ):
            share = bandwidth.share(amount, total_bits)
            if share > total:
                raise bandwidth.BandwidthError(
                    f"networkQOS: {amount} of the class {named} is more than the node has"
                )
            lines.append((f"offline_{level}_{name}", share))
    return "".join(f"{name} {value}\n" for name, value in lines)


def pods(
    picture: state.NodeState, wanted: strategy_settings.Strategies | None = None
) -> tuple[dict[str, object], list[str]]:
    """Return what Terway reads of each pod, by uid, and what is wrong with the others."""
    listed: dict[str, object] = {}
    problems = []
    for pod in picture.pods:
        meta = pod.pod.metadata
        try:
            limit = bandwidth.of_pod(pod)
            if limit is not None and not bandwidth.both_named(pod):
                raise bandwidth.BandwidthError("networkQOS names one limit only")
        except bandwidth.BandwidthError as error:
            problems.append(f"{meta.key}: {error}")
            continue
        amounts = limit or bandwidth.Limits()
        if wanted is not None:
            amounts = _within(amounts, pod, wanted)
        listed[meta.uid] = {
            "podName": meta.name,
            "podNamespace": meta.namespace,
            "podUID": meta.uid,
            "prio": _PRIORITY.get(pod.qos, _BY_KUBERNETES.get(pod.kubernetes_qos, 0)),
            "cgroupDir": f"{_CGROUPS}/{pod.group}",
            "qosConfig": {
                "ingressBandwidth": amounts.ingress,
                "egressBandwidth": amounts.egress,
            },
        }
    return listed, problems


def _within(
    asked: bandwidth.Limits, pod: state.PodState, wanted: strategy_settings.Strategies
) -> bandwidth.Limits:
    """Keep the limits that a pod asks for within those of its class, and within the node's."""
    total = wanted.system.bandwidth
    named = qos.QoS.BE if pod.best_effort else qos.QoS.LS
    written = wanted.classes.network.get(named, _NONE)
    of_class = written if written.enable else _NONE

    def least(amount: int, limit: int | str) -> int:
        bounds = [bandwidth.share(limit, total), total // bandwidth.BITS]
        given = [bound for bound in bounds if bound > 0]
        # Zero is no limit, and stays one: the class as a whole is held by its own.
        return min([amount, *given]) if amount > 0 else amount

    return bandwidth.Limits(
        least(asked.ingress, of_class.ingress_limit), least(asked.egress, of_class.egress_limit)
    )
