"""Apply ClusterColocationProfiles to a Reservation at creation."""

from api import names
from domain.pods import profile_effects, profiles
from webhook import review

GROUP = "profile"


def apply(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Apply every profile whose selector matches the Reservation's labels, in name order.

    A Reservation has no namespace, so namespace selectors are not looked at. One that carries the
    names of its profiles already is left as it is.
    """
    unreadable = profile_effects.unreadable(asked.object)
    if unreadable:
        return review.Decision(review.Refusal(GROUP, (f"Reservation: {unreadable}",)))
    metadata = review.section(asked.object, "metadata")
    annotations = review.section(metadata, "annotations")
    if names.ANNOTATION_PROFILES in annotations:
        return review.Decision()
    labels = review.section(metadata, "labels")
    changed, applied = asked.object, []
    effects: list[profile_effects.Effect] = []
    for profile in sorted(picture.profiles, key=lambda one: one.metadata.name):
        if profiles.matches(profile, None, labels) is False:
            continue
        lot = 0 if profiles.is_certain(profile) else picture.draw(profile.name)
        if not profiles.chosen(profile.percentage, lot):
            continue
        try:
            made = profile_effects.on_reservation(changed, profile, picture.priority_classes)
        except profile_effects.EffectError as wrong:
            text = f"ClusterColocationProfile {profile.name}: {wrong}"
            return review.Decision(review.Refusal(GROUP, (text,), code=review.FAILED))
        changed = made.object
        applied.append(profile.name)
        effects += made.effects
    if not applied:
        return review.Decision()
    after = review.section(changed, "metadata")
    signed = {**review.section(after, "annotations"), names.ANNOTATION_PROFILES: ",".join(applied)}
    return review.Decision(
        object={**changed, "metadata": {**after, "annotations": signed}}, effects=tuple(effects)
    )
