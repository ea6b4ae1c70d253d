"""Refuse bindings by anybody but the schedulers that an administrator lists."""

from collections.abc import Mapping
from typing import Any

from webhook import gates, review

GROUP = "binding"

DENIED = "binding denied: username is not in the allowed list"


def allowed_unseen(asked: review.Review, policy: review.Binding, on: frozenset[str]) -> str:
    """Return why a binding is allowed whatever the pod says, nothing if the pod decides."""
    if gates.BINDING not in on:
        return "gate_off"
    if not policy.users or asked.operation != "CREATE":
        return "not_asked"
    if any(part in asked.user for part in policy.users):
        return "allowed_username"
    if asked.namespace in policy.excluded:
        return "excluded_ns"
    if "*" not in policy.namespaces and asked.namespace not in policy.namespaces:
        return "out_of_scope"
    return ""


def check(
    asked: review.Review, policy: review.Binding, pod: Mapping[str, Any] | None
) -> tuple[str, review.Refusal | None]:
    """Decide by the pod, None where it could not be read; returns the decision in one word."""
    if pod is None:
        return "pod_not_found", None
    metadata = review.section(pod, "metadata")
    if any(key in review.section(metadata, "labels") for key in policy.labels):
        return "bypass_label", None
    if any(key in review.section(metadata, "annotations") for key in policy.annotations):
        return "bypass_annotation", None
    if asked.dry_run:
        return "dry_run", None
    reason = (
        f'{DENIED}: "{asked.user}" has none of {", ".join(policy.users)} in its name; bind by a '
        f"listed scheduler, or give the pod the label {policy.labels[0] if policy.labels else '-'}"
    )
    return "denied", review.Refusal(GROUP, (reason,), code=review.FORBIDDEN)
