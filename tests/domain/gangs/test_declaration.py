"""What declares a gang beyond the recorded cases: sources, native PodGroups, bad texts."""

import pytest

from api import names
from api.koordinator import scheduling
from api.kubernetes import core
from domain.gangs import declaration, option_texts

DEFAULTS = declaration.Defaults()
Source = declaration.Source


def of_pod(labels=None, notes=None, native=""):
    group = core.SchedulingGroup(pod_group_name=native) if native else None
    return declaration.of_pod("ns", labels or {}, notes or {}, DEFAULTS, group)


def annotated(**values):
    keys = {
        "name": names.ANNOTATION_GANG_NAME,
        "least": names.ANNOTATION_GANG_MIN_AVAILABLE,
        "groups": names.ANNOTATION_GANG_GROUPS,
        "repair": names.ANNOTATION_GANG_REPAIR,
        "wait": names.ANNOTATION_GANG_WAITING_TIME,
        "mode": names.ANNOTATION_GANG_MODE,
        "topology": names.ANNOTATION_GANG_NETWORK_TOPOLOGY,
    }
    return {keys[key]: value for key, value in ({"name": "g", "least": "2"} | values).items()}


SOURCES = {
    "the label of a PodGroup comes first": (
        {names.LABEL_POD_GROUP: "a", names.LABEL_POD_GROUP_OLD: "b"}, {"name": "c"}, "d",
        ("ns/a", Source.POD_GROUP),
    ),
    "the old label second": (
        {names.LABEL_POD_GROUP_OLD: "b"}, {"name": "c"}, "d", ("ns/b", Source.LABELS),
    ),
    "the annotation third": ({}, {"name": "c"}, "d", ("ns/c", Source.ANNOTATIONS)),
    "spec.schedulingGroup last": (
        {}, {"name": ""}, "d", ("ns/d@scheduling.k8s.io", Source.NATIVE),
    ),
    "nothing": ({}, {"name": ""}, "", None),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "notes", "native", "due"), SOURCES.values(), ids=SOURCES)
def test_source_of_a_gang(labels, notes, native, due):
    notes = annotated(**notes)
    group = core.SchedulingGroup(pod_group_name=native) if native else None
    assert declaration.membership("ns", labels, notes, group) == due
    gang = of_pod(labels, notes, native)
    assert (gang and (gang.id, gang.source)) == due


def test_a_native_gang_has_its_settings_from_its_pod_group_alone():
    assert not of_pod(native="d").initialised


NO_NAMES = {
    "a list of gangs": "a,ns/b",
    "another namespace": "../other/a",
    "the end of native ids": "a@scheduling.k8s.io",
    "line breaks": "a\n",
    "too long": "a" * 254,
    "what stands for no name": "?",
}


@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES)
def test_what_is_no_name_never_makes_an_id_of_another_gang(name):
    gang = of_pod(notes=annotated(name=name))
    assert (gang.id, gang.initialised) == ("ns/?", False)


GROUPS = {
    "no slash": '["g"]',
    "two in one": '["ns/a,ns/b"]',
    "no text": "[1]",
    "deep": "[" * 5000,
    "too many": str([f"ns/g{n}" for n in range(65)]).replace("'", '"'),
    "too long": '["ns/a"' + " " * 20_000 + "]",
}


@pytest.mark.parametrize("text", GROUPS.values(), ids=GROUPS)
def test_bad_lists_of_gangs_leave_the_gang_alone(text):
    gang = of_pod(notes=annotated(groups=text))
    assert (gang.group, gang.initialised) == (("ns/g",), True)
    found = [key for key, _ in option_texts.faults("ns", annotated(groups=text))]
    assert found == [names.ANNOTATION_GANG_GROUPS]


def test_a_gang_starts_with_itself_whatever_it_lists():
    gang = of_pod(notes=annotated(groups='["team/b","ns/a","ns/a"]'))
    assert gang.group == ("ns/a", "ns/a", "team/b")
    assert declaration.listed(gang) == ("ns/a", "ns/g", "team/b")


def test_options_that_only_this_product_knows():
    assert of_pod(notes=annotated(repair="restart")).repair is declaration.Repair.RESTART
    assert of_pod(notes=annotated(repair="Restart")).repair is declaration.Repair.NONE


def test_members_that_declare_the_same_share_one_object():
    assert of_pod(notes=annotated()) is of_pod(notes=annotated())
    long = '{"gatherStrategy": []}' + " " * 4000
    assert of_pod(notes=annotated(topology=long)).topology == declaration.Topology()


NATIVE_SPECS = {
    "a gang": ({"schedulingPolicy": {"gang": {"minCount": 3}}}, (3, True)),
    "no gang": ({"schedulingPolicy": {"basic": {}}}, None),
    "nothing": ({}, None),
    "no mapping": ({"schedulingPolicy": []}, None),
    "no minimum": ({"schedulingPolicy": {"gang": {}}}, (0, False)),
    "a truth": ({"schedulingPolicy": {"gang": {"minCount": True}}}, (0, False)),
    "zero": ({"schedulingPolicy": {"gang": {"minCount": 0}}}, (0, False)),
}


@pytest.mark.parametrize(("spec", "due"), NATIVE_SPECS.values(), ids=NATIVE_SPECS)
def test_native_pod_groups(spec, due):
    gang = declaration.of_native("ns", "d", annotated(groups='["ns/x"]', wait="9s"), spec, DEFAULTS)
    assert (gang and (gang.min_member, gang.initialised)) == due
    if gang is not None:
        assert gang.id == "ns/d@scheduling.k8s.io"
        assert gang.group == (gang.id,)
    if gang is not None and gang.initialised:
        assert gang.match_policy is declaration.MatchPolicy.WAITING_AND_RUNNING
        assert gang.wait_seconds == 9.0


def test_a_pod_group_has_its_timeout_in_its_spec():
    spec = scheduling.PodGroupSpec(minMember=2, scheduleTimeoutSeconds=20)
    gang = declaration.of_pod_group("ns", "g", annotated(wait="90s"), spec, DEFAULTS)
    assert (gang.id, gang.wait_seconds, gang.source) == ("ns/g", 20.0, Source.POD_GROUP)


FAULTS = {
    "mode": (annotated(mode="strict"), names.ANNOTATION_GANG_MODE),
    "repair": (annotated(repair="all"), names.ANNOTATION_GANG_REPAIR),
    "waiting time": (annotated(wait="100"), names.ANNOTATION_GANG_WAITING_TIME),
    "topology": (annotated(topology="bad"), names.ANNOTATION_GANG_NETWORK_TOPOLOGY),
    "groups": (annotated(groups="bad"), names.ANNOTATION_GANG_GROUPS),
    "another namespace": (annotated(groups='["team/b"]'), names.ANNOTATION_GANG_GROUPS),
}


@pytest.mark.parametrize(("notes", "key"), FAULTS.values(), ids=FAULTS)
def test_faults_name_the_annotation(notes, key):
    assert [one for one, _ in option_texts.faults("ns", notes)] == [key]


def test_a_good_declaration_has_no_faults():
    notes = annotated(mode="NonStrict", repair="replace", wait="10m", groups='["ns/a"]')
    assert list(option_texts.faults("ns", notes)) == []
