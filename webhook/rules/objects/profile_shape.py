"""Check ClusterColocationProfiles: what would break, or be refused by, every pod they select."""

from collections.abc import Iterator
from typing import Final

from api.koordinator import colocation
from api.koordinator.metadata import qos
from domain.pods import label_syntax, profile_effects, profiles
from webhook import review

_POD: Final = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def check(asked: review.Review, picture: review.Picture) -> review.Findings:
    """Apply the profile to a pod that says nothing, and look at each thing that it gives."""
    read = colocation.review_profile(asked.object)
    profile, spec = read.value, read.value.spec
    faults = [
        *label_syntax.bad_keys("spec.labels", spec.labels),
        *label_syntax.bad_values("spec.labels", spec.labels),
        *label_syntax.bad_keys("spec.annotations", spec.annotations),
        *label_syntax.bad_keys("spec.labelKeysMapping", iter(spec.label_keys_mapping.values())),
        *label_syntax.bad_keys(
            "spec.annotationKeysMapping", iter(spec.annotation_keys_mapping.values())
        ),
        # A suffix follows a value, so it may begin with what a value may not begin with.
        *label_syntax.bad_values(
            "spec.labelSuffixes", {key: f"x{value}" for key, value in spec.label_suffixes.items()}
        ),
    ]
    classes = {**picture.priority_classes}
    named = spec.priority_class_name
    if named:
        classes.setdefault(named, profile_effects.PriorityClass(named, 0))
    try:
        profile_effects.on_pod(_POD, profile, classes)
    except profile_effects.EffectError as wrong:
        faults.append(str(wrong))
    warnings = (*read.warnings, *_chance(profile), *_class(profile, picture))
    return review.Findings(tuple(faults), warnings)


def _chance(profile: profiles.Profile) -> Iterator[str]:
    percent = profile.percentage
    if percent <= 0:
        yield f"spec.probability: {percent} applies to no pod at all"
    elif percent > 100:
        yield f"spec.probability: {percent} applies to every pod, as 100 does"


def _class(profile: profiles.Profile, picture: review.Picture) -> Iterator[str]:
    named = profile.spec.priority_class_name
    if not named:
        return
    found = picture.priority_classes.get(named)
    if found is None:
        yield (
            f'spec.priorityClassName: there is no PriorityClass "{named}", so every pod that this '
            "profile selects is refused until there is one"
        )
        return
    quality = qos.QoS(profile.spec.qos_class or "")
    band = qos.band_of(found.value, profile.spec.labels)
    if not qos.legal(quality, band):
        yield (
            f"spec: qosClass {quality.value} and priorityClassName {named} (priority "
            f"{found.value}) cannot be used in combination, so the pods are refused"
        )
