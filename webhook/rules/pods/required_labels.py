"""Refuse pods that lack labels which the cluster's administrator demands."""

from collections.abc import Sequence

from api import names
from domain.pods import required_labels
from webhook import review

GROUP = "labels"


def check(asked: review.Review, demanded: Sequence[required_labels.Rule]) -> review.Refusal | None:
    """Refuse a pod by the first rule that it breaks."""
    labels = review.section(review.section(asked.object, "metadata"), "labels")
    if labels.get(names.LABEL_SKIP_ENHANCED_VALIDATION) == "true":
        return None
    for rule in demanded:
        if asked.namespace in rule.namespace_whitelist:
            continue
        missing = [key for key in rule.required_labels if key not in labels]
        if missing:
            reason = (
                f"metadata.labels: Required value: rule {rule.name or '(without a name)'} demands "
                f"the label{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            )
            return review.Refusal(GROUP, (reason,))
    return None
