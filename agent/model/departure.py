"""Why an agent ends: it comes back, or it was taken off this node and puts the node back. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from api.kubernetes import core, selectors

_OWN_TAINTS = "node.kubernetes.io/"


class _Template(msgspec.Struct, frozen=True):
    spec: core.PodSpec = core.PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _DaemonSet(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


def why(found: Mapping[str, Any], node: core.Node | None) -> str | None:
    """Say why no agent of a DaemonSet will follow on this node; None where one will.

    A node whose object is not known counts as wanted: to leave values standing is the safe side.
    """
    if (found.get("metadata") or {}).get("deletionTimestamp"):
        return "the DaemonSet of the agent is being deleted"
    if node is None:
        return None
    try:
        spec = msgspec.convert(found, _DaemonSet, strict=False).spec.template.spec
    except msgspec.MsgspecError:
        return None
    if not selectors.matches_node(spec, node):
        return "the DaemonSet of the agent does not select this node any more"
    for taint in node.spec.taints:
        # The DaemonSet controller tolerates those that Kubernetes itself sets.
        ours = taint.effect != "NoExecute" or taint.key.startswith(_OWN_TAINTS)
        if not ours and not any(selectors.tolerates(one, taint) for one in spec.tolerations):
            return f"the node's taint {taint.key} keeps agents away"
    return None
