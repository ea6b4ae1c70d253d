"""What is wrong with a ClusterColocationProfile: with itself, its priority class, its neighbours.

Pure: admission refuses a profile by these rules and warns, the manager writes them into its status.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from api.koordinator import colocation
from api.koordinator.metadata import qos
from api.kubernetes import meta
from domain.pods import label_syntax, profile_effects, profiles

Classes = Mapping[str, profile_effects.PriorityClass]

_POD: Final = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def faults(profile: profiles.Profile, classes: Classes) -> Iterator[str]:
    """Yield what would break, or be refused by, every pod that a profile selects.

    The profile is applied to a pod that says nothing; a priority class that is not there may come.
    """
    spec = profile.spec
    yield from label_syntax.bad_keys("spec.labels", spec.labels)
    yield from label_syntax.bad_values("spec.labels", spec.labels)
    yield from label_syntax.bad_keys("spec.annotations", spec.annotations)
    yield from label_syntax.bad_keys(
        "spec.labelKeysMapping", iter(spec.label_keys_mapping.values())
    )
    yield from label_syntax.bad_keys(
        "spec.annotationKeysMapping", iter(spec.annotation_keys_mapping.values())
    )
    # A suffix follows a value, so it may begin with what a value may not begin with.
    suffixed = {key: f"x{value}" for key, value in spec.label_suffixes.items()}
    yield from label_syntax.bad_values("spec.labelSuffixes", suffixed)
    known, named = {**classes}, spec.priority_class_name
    if named:
        known.setdefault(named, profile_effects.PriorityClass(named, 0))
    try:
        profile_effects.on_pod(_POD, profile, known)
    except profile_effects.EffectError as wrong:
        yield str(wrong)


def missing_class(profile: profiles.Profile, classes: Classes) -> str:
    """Return what is to be said where the priority class of a profile is not there."""
    named = profile.spec.priority_class_name
    if not named or named in classes:
        return ""
    return (
        f'spec.priorityClassName: there is no PriorityClass "{named}", so every pod that this '
        "profile selects is refused until there is one"
    )


def contradiction(profile: profiles.Profile, classes: Classes) -> str:
    """Return what is to be said where priority class and QoS class exclude each other."""
    found = classes.get(profile.spec.priority_class_name)
    if found is None:
        return ""
    quality = qos.QoS(profile.spec.qos_class or "")
    if qos.legal(quality, qos.band_of(found.value, profile.spec.labels)):
        return ""
    return (
        f"spec: qosClass {quality.value} and priorityClassName {found.name} (priority "
        f"{found.value}) cannot be used in combination, so the pods are refused"
    )


def chance(profile: profiles.Profile) -> str:
    """Return what is to be said of a probability that never holds, or says no more than 100."""
    percent = profile.percentage
    if percent <= 0:
        return f"spec.probability: {percent} applies to no pod at all"
    if percent > 100:
        return f"spec.probability: {percent} applies to every pod, as 100 does"
    return ""


def overridden(
    profile: profiles.Profile, others: Iterable[profiles.Profile]
) -> Iterator[tuple[str, str, str]]:
    """Yield (field, value, profile) where another profile always sets a field to another value.

    Admission applies profiles in the order of their names. Another profile counts where it comes
    later, is applied for certain, and selects every pod that this one selects, as its selectors
    show. Profiles that happen to share pods are not found.
    """
    ours = dict(profiles.given(profile.spec))
    for other in others:
        if other.name <= profile.name or not profiles.is_certain(other):
            continue
        if not _selects_all_of(other.spec, profile.spec):
            continue
        for field, value in profiles.given(other.spec):
            if ours.get(field, value) != value:
                yield field, value, other.name


def _selects_all_of(wide: colocation.Spec, narrow: colocation.Spec) -> bool:
    return _covers(wide.selector, narrow.selector) and _covers(
        wide.namespace_selector, narrow.namespace_selector
    )


def _covers(wide: meta.LabelSelector | None, narrow: meta.LabelSelector | None) -> bool:
    """Tell whether a selector demands nothing that another one does not demand as well."""
    if wide is None:
        return True
    labels = {} if narrow is None else narrow.match_labels
    demands = () if narrow is None else narrow.match_expressions
    return wide.match_labels.items() <= labels.items() and all(
        one in demands for one in wide.match_expressions
    )
