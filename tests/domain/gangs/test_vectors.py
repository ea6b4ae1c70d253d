"""Settings of gangs, compared with what the reference reads from pods and PodGroups."""

from api.koordinator import scheduling
from api.wire import base
from domain.gangs import declaration
from tests.reference import cases

SETTINGS = (
    "id", "minRequired", "totalChildren", "mode", "matchPolicy", "waitSeconds", "gangGroup",
    "gangGroupId",
)  # fmt: skip


def defaults(given):
    return declaration.Defaults(
        wait_seconds=given["defaultTimeoutSeconds"],
        match_policy=declaration.MatchPolicy(given["defaultMatchPolicy"]),
    )


def written(rule):
    found = {
        "layer": rule.layer,
        "strategy": "MustGather" if rule.must else "PreferGather",
    }
    return found | ({"podCountMultiple": rule.multiple} if rule.multiple else {})


def settings(gang):
    values = (
        gang.id, gang.min_member, gang.total, gang.mode.value, gang.match_policy.value,
        gang.wait_seconds, list(gang.group), gang.group_id,
    )  # fmt: skip
    found = dict(zip(SETTINGS, values, strict=True))
    if gang.topology is not None:
        rules = [written(rule) for rule in gang.topology.rules]
        found["networkTopologySpec"] = {"gatherStrategy": rules} if rules else {}
    return found


def answer(case):
    given = case.given
    notes = given.get("annotations") or {}
    if given["kind"] == "PodGroup":
        spec = base.read(scheduling.PodGroupSpec, given["spec"])
        return settings(
            declaration.of_pod_group(
                given["namespace"], given["name"], notes, spec, defaults(given)
            )
        )
    labels = given.get("labels") or {}
    gang = declaration.of_pod(given["namespace"], labels, notes, defaults(given))
    member = declaration.membership(given["namespace"], labels, notes)
    assert (gang is None) == (member is None)
    if gang is None:
        return {"gangName": ""}
    assert member == (gang.id, gang.source)
    found = {"gangName": gang.name, "initialised": gang.initialised}
    return found | (settings(gang) if gang.initialised else {})


def recorded(case):
    if case.expected.get("initialised") is False:
        return {name: case.expected[name] for name in ("gangName", "initialised")}
    return case.expected


def test_settings_are_read_as_the_reference_reads_them():
    counted = cases.check("gang_args", answer, recorded, {})
    assert counted[""] > 0
