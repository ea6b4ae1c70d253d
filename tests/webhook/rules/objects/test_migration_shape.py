"""What is refused and what is doubted of a PodMigrationJob."""

import pytest

from api import resources
from webhook import review
from webhook.rules.objects import migration_shape

POD = {"podRef": {"namespace": "shop", "name": "web-0"}}
PICTURE = review.Picture((), {}, {}, lambda _: 0)
GROUP, SIZE = "koord.sh/migration-group", "koord.sh/migration-group-size"


def found(spec, old=None, status=None):
    kind = resources.POD_MIGRATION_JOBS
    body = {"metadata": {"name": "j"}, "spec": spec}
    before = None if old is None else {"spec": old, "status": status or {}}
    operation = "CREATE" if old is None else "UPDATE"
    asked = review.Review(operation, "", body, before, resource=(kind.group, kind.plural))
    return migration_shape.check(asked, PICTURE)


def noted(**notes):
    kind = resources.POD_MIGRATION_JOBS
    keys = {"group": GROUP, "size": SIZE}
    metadata = {"name": "j", "annotations": {keys[name]: value for name, value in notes.items()}}
    body = {"metadata": metadata, "spec": POD}
    asked = review.Review("CREATE", "", body, None, resource=(kind.group, kind.plural))
    return migration_shape.check(asked, PICTURE)


def reserving(**options):
    return {**POD, "reservationOptions": options}


def templating(**spec):
    return reserving(template={"spec": spec})


REFUSED = {
    "no namespace": ({"podRef": {"name": "web-0"}}, "spec.podRef.namespace"),
    "no name": ({"podRef": {"namespace": "shop"}}, "spec.podRef.name"),
    "unknown mode": ({**POD, "mode": "Live"}, "spec.mode"),
    "a Reservation without a name": (
        reserving(reservationRef={"kind": "Reservation"}),
        "spec.reservationOptions.reservationRef.name",
    ),
    "a ttl that is none": (templating(ttl="soon"), "spec.reservationOptions.template"),
    "owners that name nothing": (templating(owners=[{}]), "spec.reservationOptions.template"),
    "both ends": (
        templating(ttl="1h", expires="2030-01-01T00:00:00Z"),
        "give either ttl or expires",
    ),
}


@pytest.mark.parametrize(("spec", "part"), REFUSED.values(), ids=REFUSED)
def test_what_could_not_be_carried_out_is_refused(spec, part):
    (fault,) = found(spec).faults
    assert part in fault


ACCEPTED = {
    "only a pod": POD,
    "evicted directly": {**POD, "mode": "EvictDirectly"},
    "a Reservation of a person": reserving(reservationRef={"name": "mine"}),
    "parts of a template": templating(ttl="1h"),
    "a whole template": templating(
        owners=[{"labelSelector": {}}], template={"spec": {"containers": []}}
    ),
    "nothing about the Reservation": reserving(),
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_what_can_is_accepted(spec):
    assert found(spec) == review.Findings()


USED = reserving(reservationRef={"name": "r"})
CHANGES = {
    "another pod": ({"podRef": {"namespace": "shop", "name": "x"}}, POD, "", "spec.podRef"),
    "another uid": (
        {"podRef": {**POD["podRef"], "uid": "b"}},
        {"podRef": {**POD["podRef"], "uid": "a"}},
        "",
        "spec.podRef.uid",
    ),
    "no uid any more": (POD, {"podRef": {**POD["podRef"], "uid": "a"}}, "", "spec.podRef.uid"),
    "another mode while it runs": ({**POD, "mode": "EvictDirectly"}, POD, "Running", "spec.mode"),
    "another Reservation": (
        reserving(reservationRef={"name": "s"}),
        USED,
        "",
        "spec.reservationOptions.reservationRef",
    ),
    "no Reservation any more": (POD, USED, "", "spec.reservationOptions.reservationRef"),
}


@pytest.mark.parametrize(("spec", "old", "phase", "part"), CHANGES.values(), ids=CHANGES)
def test_a_job_keeps_what_it_is_about(spec, old, phase, part):
    (fault,) = found(spec, old, {"phase": phase}).faults
    assert fault.startswith(part)


COMPLETED = {
    "uid": ({"podRef": {**POD["podRef"], "uid": "a"}}, POD),
    "Reservation": (reserving(reservationRef={"name": "r"}, template={"spec": {}}), POD),
    "pause": ({**POD, "paused": True}, POD),
    "mode before it runs": ({**POD, "mode": "EvictDirectly"}, POD),
}


@pytest.mark.parametrize(("spec", "old"), COMPLETED.values(), ids=COMPLETED)
def test_a_job_may_be_completed_and_paused(spec, old):
    assert found(spec, old, {"phase": "Pending"}) == review.Findings()


DOUBTED = {
    "template beside a Reservation": (
        reserving(reservationRef={"name": "r"}, template={"metadata": {"name": "x"}}),
        "spec.reservationOptions.template",
    ),
    "options without a Reservation": (
        {**reserving(), "mode": "EvictDirectly"},
        "spec.reservationOptions",
    ),
    "a trial": ({**POD, "deleteOptions": {"dryRun": ["All"]}}, "spec.deleteOptions.dryRun"),
}


@pytest.mark.parametrize(("spec", "part"), DOUBTED.values(), ids=DOUBTED)
def test_what_has_no_effect_is_doubted(spec, part):
    result = found(spec)
    assert not result.faults
    assert result.warnings[0].startswith(part)


@pytest.mark.parametrize(
    ("notes", "wrong"),
    [
        ({"group": "g", "size": "3"}, ""),
        ({"group": "g"}, SIZE),
        ({"group": "g", "size": "0"}, SIZE),
        ({"group": "g", "size": "many"}, SIZE),
        ({"group": "g", "size": "9" * 300}, SIZE),
        ({"size": "3"}, GROUP),
    ],
)
def test_a_group_says_how_many_jobs_it_has(notes, wrong):
    faults = noted(**notes).faults
    assert len(faults) == bool(wrong)
    assert all(f"metadata.annotations[{wrong}]" in fault for fault in faults)
