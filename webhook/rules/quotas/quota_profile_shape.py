"""Check ElasticQuotaProfiles: ratios that would be ignored, and selectors that select all nodes."""

from api.koordinator import quota
from api.koordinator.metadata import annotations
from api.wire import base
from domain.pods import label_syntax
from webhook import review


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Refuse a ratio that is none; warn of what falls back to a default."""
    read = quota.review_elastic_quota_profile(asked.object)
    written = read.value.spec.resource_ratio
    ratio = 'write a number above 0 and up to 1 as text, such as "0.9"'
    faults = [f'spec.resourceRatio: Invalid value: "{written}": {ratio}'] * bool(read.warnings)
    warnings = []
    selector = read.value.spec.node_selector
    faults += label_syntax.bad_selector("spec.nodeSelector", selector)
    if not selector.match_labels and not selector.match_expressions:
        warnings.append("spec.nodeSelector: empty, so the quota shares out every node")
    try:
        annotations.QUOTA_RESOURCE_KEYS.read(read.value.metadata.annotations)
    except base.ReadError as wrong:
        warnings.append(f"metadata.annotations: {wrong}; cpu and memory are used")
    return review.Findings(tuple(faults), tuple(warnings))
