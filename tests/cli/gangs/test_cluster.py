"""What snapshots say of gangs: members, places, what each waits for, and what is wrong."""

import json

import pytest

from api import names, resources
from cli.gangs import cluster, table
from cli.snapshot import format as formats
from domain.gangs import plan_record
from tests import builders
from tests.cli.placement import clusters

NOW = cluster.durations.timestamp(clusters.NOW)
EARLIER = "2026-07-01T11:58:30Z"
PLAN = {"v": 1, "group": "default/g", "generation": "p1", "node": "n7", "until": NOW + 60}


def a_member(name, minimum="2", gang="g", node="", phase="", **annotations):
    notes = {
        names.ANNOTATION_GANG_NAME: gang, names.ANNOTATION_GANG_MIN_AVAILABLE: minimum,
        **annotations,
    }  # fmt: skip
    pod = builders.a_pod(name, cpu="4", node=node, annotations=notes)
    pod["metadata"]["creationTimestamp"] = EARLIER
    if phase:
        pod["status"]["phase"] = phase
    return pod


def planned(name, generation="p1", until=60.0, **more):
    plan = PLAN | {"generation": generation, "until": NOW + until}
    return a_member(name, **{names.ANNOTATION_PLAN: json.dumps(plan)}, **more)


def recent(name, *, gated=False, refused="", **more):
    """A member of a gang that has just been created."""
    pod = a_member(name, **more)
    pod["metadata"]["creationTimestamp"] = clusters.NOW
    if gated:
        pod["spec"]["schedulingGates"] = [{"name": names.GATE_GANG}]
    if refused:
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        pod["status"]["conditions"] = [said | {"message": refused}]
    return pod


def listing(name, *others, until=60.0):
    """A member that was bound by a plan, with a record that lists others."""
    uids = [builders.a_pod(other)["metadata"]["uid"] for other in others]
    plan = PLAN | {"until": NOW + until, "members": plan_record.digests(uids)}
    return a_member(name, node="n7", **{names.ANNOTATION_PLAN: json.dumps(plan)})


def told(pod, message):
    condition = {
        "type": names.CONDITION_GANG, "status": "False", "reason": "NoPlace", "message": message,
    }  # fmt: skip
    pod["status"]["conditions"] = [condition]
    return pod


def leaving(pod):
    pod["metadata"]["deletionTimestamp"] = clusters.NOW
    return pod


def a_pod_group(name="g", minimum=2, **annotations):
    kind = resources.POD_GROUPS
    return {
        "apiVersion": kind.api_version, "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"minMember": minimum},
        "status": {"phase": "Scheduling"},
    }  # fmt: skip


def in_group(name, gang="g", **more):
    return builders.a_pod(name, cpu="4", labels={names.LABEL_POD_GROUP: gang}, **more)


def built(*objects):
    return cluster.build(clusters.snapshot(*objects))


FIRST = "is complete and has place 1 of 1 in line"
BEING_BOUND = (
    "is planned and being bound; its pods have no gates, so each shows its place once bound"
)
BOTH = '["default/g", "default/h"]'
GROUPS = {names.ANNOTATION_GANG_GROUPS: BOTH}


@pytest.mark.parametrize(
    ("objects", "state", "waits_for"),
    [
        pytest.param([a_member("a")], table.WAITING, "waits for 1 of 2 members", id="incomplete"),
        pytest.param(
            [a_member("a"), leaving(a_member("b"))],
            table.WAITING,
            "waits for 1 of 2 members",
            id="one is leaving",
        ),
        pytest.param([a_member("a"), a_member("b")], table.WAITING, FIRST, id="complete"),
        pytest.param(
            [recent("a"), recent("b")], table.WAITING, BEING_BOUND, id="planned without gates"
        ),
        pytest.param(
            [recent("a", gated=True), recent("b")], table.WAITING, FIRST, id="one has a gate"
        ),
        pytest.param(
            [recent("a", refused="gang has no plan yet: x"), recent("b")],
            table.WAITING,
            BEING_BOUND,
            id="was refused before its plan",
        ),
        pytest.param(
            [recent("a", refused="Insufficient cpu"), recent("b")],
            table.WAITING,
            FIRST,
            id="was refused",
        ),
        pytest.param(
            [told(recent("a"), "no room"), recent("b")], table.WAITING, "no room", id="is told"
        ),
        pytest.param(
            [recent("a"), listing("b", "a")], table.PLANNED, "", id="a Binding lists the other"
        ),
        pytest.param(
            [recent("a", minimum="3"), listing("b", "a"), recent("c", minimum="3")],
            table.PLANNED,
            BEING_BOUND,
            id="and not the third one",
        ),
        pytest.param(
            [a_member("a"), told(a_member("b"), "no room; place 2 in line")],
            table.WAITING,
            "no room; place 2 in line",
            id="what the extender says",
        ),
        pytest.param([planned("a"), planned("b")], table.PLANNED, "", id="planned"),
        pytest.param(
            [planned("a", until=-1), planned("b", until=-1)],
            table.WAITING,
            FIRST,
            id="a plan that has ended",
        ),
        pytest.param(
            [a_member("a", node="n1", phase="Running"), a_member("b", node="n2")],
            table.RUNNING,
            "",
            id="bound",
        ),
        pytest.param(
            [a_member("a", node="n1", phase="Running"), a_member("b", phase="Failed")],
            table.BELOW,
            "",
            id="fewer than its minimum",
        ),
        pytest.param(
            [a_member("a", node="n1", phase="Running"), a_member("b", phase="Succeeded")],
            table.RUNNING,
            "",
            id="one is done",
        ),
        pytest.param(
            [a_member("a", phase="Succeeded"), a_member("b", phase="Failed")],
            table.ENDED,
            "",
            id="ended",
        ),
        pytest.param([a_pod_group()], table.EMPTY, "", id="a PodGroup without pods"),
        pytest.param(
            [in_group("a"), in_group("b")],
            table.WAITING,
            "waits for the PodGroup default/g of sigs.k8s.io, which does not exist",
            id="no PodGroup",
        ),
        pytest.param(
            [a_member("a", minimum="x")],
            table.WAITING,
            "the annotation gang.scheduling.koordinator.sh/min-available is missing",
            id="no minimum",
        ),
        pytest.param(
            [a_member("a", "1", **GROUPS), a_member("b", "2", gang="h", **GROUPS)],
            table.WAITING,
            "waits for its gang group: default/h waits for 1 of 2 members",
            id="another gang of its group",
        ),
        pytest.param(
            [a_member("a", "1", **GROUPS)],
            table.WAITING,
            "waits for its gang group: default/h has neither members nor a PodGroup",
            id="an absent gang",
        ),
        pytest.param(
            [a_member("a", "1", **GROUPS), a_member("b", "1", gang="h")],
            table.WAITING,
            "waits for its gang group: default/h is not placed yet, and does not list this gang",
            id="a gang that does not list it",
        ),
    ],
)
def test_how_a_gang_is_doing(objects, state, waits_for):
    found = built(*objects)
    gang = found.named("default/g")
    assert table.state(gang) == state
    said = table.waits_for(found, gang)
    assert said.startswith(waits_for) if waits_for else said == ""


def test_settings_are_those_of_the_pod_group_and_of_the_arguments():
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": names.SCHEDULER, "pluginConfig": [
            {"name": "Coscheduling", "args": {"defaultTimeout": "30s"}}]}],
    }  # fmt: skip
    settings = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": names.CONFIG_MAP_SCHEDULER},
        "data": {names.CONFIG_MAP_SCHEDULER: json.dumps(document)},
    }  # fmt: skip
    note = {names.ANNOTATION_GANG_MODE: "NonStrict"}
    found = built(settings, a_pod_group(minimum=3, **note), in_group("a"))
    gang = found.named("default/g")
    assert (gang.declared.min_member, gang.declared.mode.value) == (3, "NonStrict")
    assert gang.declared.wait_seconds == 30
    assert gang.phase == "Scheduling"


def test_a_line_per_gang_then_totals_and_problems():
    found = built(
        planned("a", minimum="3"), planned("b", minimum="3", generation="p2"),
        a_member("c", minimum="3"),
        a_member("d", "1", gang="h", node="n1", phase="Running"),
        in_group("e", gang="none"),
    )  # fmt: skip
    lines = [" ".join(line.split()) for line in table.lines(found)]
    assert lines[0] == "NAME STATE MIN MEMBERS PLACES BOUND NODES SINCE MESSAGE"
    assert lines[1] == f"default/g Planned 3 3 2 0 1 1m30s {FIRST}"
    assert lines[2] == "default/h Running 1 1 0 1 1 - -"
    assert lines[3].startswith("default/none Waiting - 1 0 0 - ")
    assert lines[4] == "3 gangs: 1 Waiting, 1 Planned, 1 Running. 1 of 5 members is bound."
    told_of = "\n".join(lines[5:])
    assert "problem: members of gang default/g have places of 2 plans" in told_of
    assert "remedy: create PodGroup default/none with spec.minMember" in told_of


def test_a_document_holds_members_and_nodes():
    found = built(planned("a"), planned("b"))
    (item,) = table.document(found)["items"]
    assert (item["state"], item["minMember"], item["nodes"]) == ("Planned", 2, {"n7": 2})
    assert item["members"][0] == {
        "pod": "default/a", "state": "has a place", "node": "n7", "plan": "p1",
    }  # fmt: skip


HOSTILE = (
    pytest.param({names.ANNOTATION_PLAN: "{" * 10_000}, id="a plan that is none"),
    pytest.param({names.ANNOTATION_PLAN: '{"node": 7}'}, id="a plan of another shape"),
    pytest.param({names.ANNOTATION_PLAN: "x" * (1 << 20)}, id="a plan without end"),
    pytest.param({names.ANNOTATION_GANG_GROUPS: "[" * 5000}, id="groups that are none"),
    pytest.param({names.ANNOTATION_GANG_MODE: "\x1b[2Jx"}, id="a mode with control characters"),
)


@pytest.mark.parametrize("notes", HOSTILE)
def test_what_tenants_write_hides_no_other_gang(notes):
    found = built(a_member("a", **notes), a_member("b"), a_member("c", "1", gang="h"))
    assert set(found.gangs) == {"default/g", "default/h"}
    assert len(found.gangs["default/g"].members) == 2
    assert len(list(table.lines(found))) >= 4


def test_kinds_of_others_that_are_not_installed_are_no_doubt():
    native = resources.NATIVE_POD_GROUPS[0].review_name()
    ours = resources.POD_GROUPS.review_name()
    absent = dict.fromkeys((native, resources.CLONE_SETS.review_name(), ours), "not installed")
    found = cluster.build(formats.Snapshot("2026-07-01T13:00:00Z", {}, absent))
    assert found.notes == (f"{ours} could not be read: not installed",)
    refused = formats.Snapshot("2026-07-01T13:00:00Z", {}, {native: "403: no"})
    assert cluster.build(refused).notes == (f"{native} could not be read: 403: no",)
