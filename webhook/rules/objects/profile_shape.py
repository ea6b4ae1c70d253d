"""Check ClusterColocationProfiles: what would break, or be refused by, every pod they select."""

from api.koordinator import colocation
from domain.pods import label_syntax, profile_checks
from webhook import review


def check(asked: review.Review, picture: review.Picture) -> review.Findings:
    """Refuse what cannot be applied to a pod; warn of what has no effect, or refuses pods."""
    read = colocation.review_profile(asked.object)
    profile, classes = read.value, picture.priority_classes
    remarks = (
        profile_checks.chance(profile),
        profile_checks.missing_class(profile, classes),
        profile_checks.contradiction(profile, classes),
    )
    warnings = (*read.warnings, *filter(None, remarks))
    faults = (
        *label_syntax.bad_selector("spec.selector", profile.spec.selector),
        *label_syntax.bad_selector("spec.namespaceSelector", profile.spec.namespace_selector),
        *profile_checks.faults(profile, classes),
    )
    return review.Findings(faults, warnings)
