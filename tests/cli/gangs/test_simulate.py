"""`koord simulate gang`: whether a gang fits, where, what is missing and what would help."""

import json

import pytest
import yaml

from api import names, resources
from cli import main
from cli.gangs import answer, asked_gang, preview
from cli.snapshot import reader
from tests import builders
from tests.cli.gangs.test_cluster import a_member, a_pod_group, in_group, planned
from tests.cli.placement import clusters

EIGHT = [builders.a_node("n1", cpu="8"), builders.a_node("n2", cpu="8")]
GPUS = {clusters.GPU: "1"}


def a_gang(count, minimum=None, cpu="4", **more):
    """A Job of so many pods that are one gang."""
    notes = {
        names.ANNOTATION_GANG_NAME: "train",
        names.ANNOTATION_GANG_MIN_AVAILABLE: str(minimum or count),
    }
    template = builders.a_pod("t", cpu=cpu, memory="1Gi", annotations=notes, **more)
    spec = {"parallelism": count, "template": {
        "metadata": {"annotations": notes}, "spec": template["spec"]}}  # fmt: skip
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}


def tried(*documents, of=EIGHT, plugins=()):
    """What is said of the groups of a file."""
    asked = asked_gang.of_file(clusters.snapshot(*of), documents, "default")
    return preview.preview(asked, plugins)


def of(name, *objects):
    asked = asked_gang.named(clusters.snapshot(*objects), name)
    return preview.preview(asked)


def test_a_gang_that_fits_has_a_node_for_every_member():
    (found,) = tried(a_gang(4)).previews
    assert found.fits
    assert found.spread() == {"n1": 2, "n2": 2}
    assert (found.gangs, found.needed, found.members) == (("default/train",), 4, 4)
    assert answer.verdict(found) == (
        "Gang default/train fits: 4 of 4 members (at least 4 together) find a node."
    )


def test_members_beyond_the_minimum_may_lack_a_node():
    (found,) = tried(a_gang(6, minimum=3)).previews
    assert (found.fits, len(found.places), len(found.left)) == (True, 4, 2)


def test_a_gang_that_does_not_fit_says_what_is_the_tightest_and_what_would_help():
    (found,) = tried(a_gang(9)).previews
    assert not found.fits
    assert (len(found.places), found.needed) == (4, 9)
    assert found.tightest == "default/train-4"
    assert found.refused == (preview.Refused("kube-scheduler", "Insufficient cpu", 2),)
    assert found.helps == (
        "a minimum of 4 members of gang default/train instead of 9",
        "3 more nodes like n1, empty (2 nodes are like it)",
    )


@pytest.mark.parametrize(
    ("sizes", "count", "helps"),
    [
        pytest.param(("4", "16"), 9, "1 more node like n2, empty (no other", id="the larger sort"),
        pytest.param(("4", "2"), 3, "2 more nodes like n1, empty", id="one sort takes no member"),
    ],
)
def test_the_sort_of_node_that_helps_most_comes_first(sizes, count, helps):
    nodes = [builders.a_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(sizes, 1)]
    (found,) = tried(a_gang(count), of=nodes).previews
    assert found.helps[1].startswith(helps)


def test_what_helps_is_enough_and_no_more():
    (short,) = tried(a_gang(9)).previews
    more = [builders.a_node(f"m{i}", cpu="8") for i in range(3)]
    assert "3 more nodes" in short.helps[1]
    assert not tried(a_gang(9), of=[*EIGHT, *more[:2]]).previews[0].fits
    assert tried(a_gang(9), of=[*EIGHT, *more]).previews[0].fits
    assert tried(a_gang(9, minimum=4)).previews[0].fits


def test_quota_counts_for_the_whole_gang():
    gang = a_gang(4, cpu="1")
    gang["spec"]["template"]["metadata"]["labels"] = {names.LABEL_QUOTA_NAME: "team"}
    (found,) = tried(gang, of=[*EIGHT, clusters.a_team("3")]).previews
    assert (found.fits, found.refused[0].by, len(found.places)) == (False, "ElasticQuota", 3)
    assert "a higher limit of its quota" in "\n".join(found.helps)
    assert not [one for one in found.helps if "more node" in one]
    assert tried(gang, of=[*EIGHT, clusters.a_team("4")]).previews[0].fits


def test_devices_are_allocated_to_every_member_and_count_on_nodes_that_would_help():
    nodes = [builders.a_node("n1", cpu="64", extra={clusters.GPU: "2"}), clusters.a_device(gpus=2)]
    (found,) = tried(a_gang(2, requests={"cpu": "1", **GPUS}), of=nodes).previews
    assert found.fits
    assert {place.allocated for place in found.places} == {("DeviceShare",)}
    (short,) = tried(a_gang(5, requests={"cpu": "1", **GPUS}), of=nodes).previews
    assert short.helps[1].startswith("2 more nodes like n1, empty")


def test_a_gang_of_the_cluster_that_lacks_members_is_tried_with_copies():
    found = of("default/g", *EIGHT, a_member("a", "3"), a_member("b", "3"))
    assert "1 member of gang default/g does not exist; it is tried as a copy of" in str(found.notes)
    (one,) = found.previews
    assert (one.fits, one.needed, one.members) == (True, 3, 3)
    assert one.since > 0
    assert "It has been waiting for " in "\n".join(answer.lines(found))
    assert "It has been waiting" not in "\n".join(answer.lines(tried(a_gang(9))))


def test_members_that_come_after_the_minimum_was_bound_are_placed_one_by_one():
    (found,) = of("default/g", *EIGHT, a_member("a", "1", node="n1"), a_member("b", "1")).previews
    assert (found.fits, found.needed, found.spread()) == (True, 0, {"n2": 1})
    assert "further members are placed one by one: 1 of 1" in answer.verdict(found)


def test_what_other_gangs_were_promised_is_not_given_twice():
    members = [a_member(name, "2") for name in "ab"]
    held = [planned(name, gang="h", minimum="1") for name in "cd"]
    nodes = [builders.a_node("n7", cpu="8")]
    (alone,) = of("default/g", *nodes, *members).previews
    (beside,) = of("default/g", *nodes, *members, *held).previews
    assert (alone.fits, beside.fits, len(beside.places)) == (True, False, 0)


def test_bound_pods_and_gangs_before_it_in_line_count():
    first = [a_member("a", "1", gang="first"), a_member("b", "1", gang="later")]
    first[0]["spec"]["priority"] = 9
    members = [a_member("c", "2"), a_member("d", "2")]
    busy = builders.a_pod("busy", cpu="6", node="n1")
    (found,) = of("default/g", *EIGHT, *first, *members, busy).previews
    assert found.before == ("default/first",)
    assert found.spread() == {"n2": 2}


def test_gangs_of_one_group_fit_together_or_not_at_all():
    both = '["default/g", "default/h"]'
    notes = {names.ANNOTATION_GANG_GROUPS: both}
    objects = [
        a_pod_group(minimum=2, **notes), a_pod_group("h", minimum=3, **notes),
        *(in_group(f"g{i}") for i in range(2)), *(in_group(f"h{i}", gang="h") for i in range(3)),
    ]  # fmt: skip
    (found,) = of("default/g", *EIGHT, *objects).previews
    assert (found.gangs, found.needed, found.fits) == (("default/g", "default/h"), 5, False)
    assert answer.verdict(found).startswith("The gang group of default/g, default/h does not fit")
    more = builders.a_node("n3", cpu="8")
    assert of("default/h", more, *EIGHT, *objects).previews[0].fits


def test_groups_of_a_file_are_planned_one_after_another():
    other = a_gang(4)
    other["metadata"]["name"] = "other"
    notes = other["spec"]["template"]["metadata"]["annotations"]
    notes[names.ANNOTATION_GANG_NAME] = "other"
    first, second = tried(a_gang(4), other).previews
    assert (first.fits, second.fits, second.gangs) == (True, False, ("default/other",))


def test_a_changed_pod_group_is_tried_with_the_pods_of_the_cluster():
    pods = [in_group(f"g{i}") for i in range(6)]
    file = a_pod_group(minimum=4)
    del file["status"]
    (found,) = tried(file, of=[*EIGHT, a_pod_group(minimum=6), *pods]).previews
    assert (found.fits, found.needed, len(found.left)) == (True, 4, 2)
    (before,) = of("default/g", *EIGHT, a_pod_group(minimum=6), *pods).previews
    assert not before.fits


def a_network(*blocks):
    """Nodes of 8 cores in blocks, and the object that says which label names a block."""
    kind = resources.CLUSTER_NETWORK_TOPOLOGIES
    layers = [
        {"topologyLayer": "BlockLayer", "labelKey": ["block"]},
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "BlockLayer"},
    ]
    network = {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "default"},
        "spec": {"networkTopologySpec": layers},
    }  # fmt: skip
    nodes = [
        builders.a_node(f"{block}-{number}", cpu="8", labels={"block": block})
        for block, count in blocks
        for number in range(count)
    ]
    return [network, *nodes]


def near(count, strategy):
    gang = a_gang(count)
    rules = {"gatherStrategy": [{"layer": "BlockLayer", "strategy": strategy}]}
    notes = gang["spec"]["template"]["metadata"]["annotations"]
    notes[names.ANNOTATION_GANG_NETWORK_TOPOLOGY] = json.dumps(rules)
    return gang


def test_the_network_topology_that_a_gang_asks_for():
    network = a_network(("a", 3), ("b", 2))
    (found,) = tried(near(4, "MustGather"), of=network).previews
    assert found.spread() == {"b-0": 2, "b-1": 2}, "the smallest block that takes it"
    (found,) = tried(near(8, "MustGather"), of=network).previews
    assert (found.fits, found.scattered, len(found.places)) == (False, True, 8)
    assert "no part of the network takes 8 members; 8 of 8 find a node" in answer.verdict(found)
    assert found.helps[0].startswith("PreferGather instead of MustGather")
    assert tried(near(8, "PreferGather"), of=network).previews[0].fits
    (short,) = tried(near(11, "MustGather"), of=network).previews
    assert (short.scattered, short.tightest) == (False, "default/train-9")


def test_native_pod_groups():
    group = {
        "apiVersion": resources.NATIVE_POD_GROUPS[0].api_version, "kind": "PodGroup",
        "metadata": {"name": "native"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }  # fmt: skip
    pods = [builders.a_pod(f"p{i}", cpu="4") for i in range(3)]
    for pod in pods:
        pod["spec"]["schedulingGroup"] = {"podGroupName": "native"}
    (found,) = tried(group, *pods).previews
    assert (found.fits, found.needed, found.gangs) == (True, 3, ("default/native",))


def test_pods_without_a_gang_are_tried_as_one():
    found = tried(*(builders.a_pod(f"p{i}", cpu="4") for i in range(5)))
    (one,) = found.previews
    assert (one.fits, one.needed) == (False, 5)
    assert "5 pods of the file declare no gang; they are tried as one gang of 5 members" in (
        found.notes
    )


@pytest.mark.parametrize(
    ("name", "objects", "why"),
    [
        pytest.param("default/x", [], "there is no gang default/x", id="unknown"),
        pytest.param(
            "default/g", [a_pod_group()], "has no pods yet: write them to a file", id="no pods"
        ),
        pytest.param(
            "default/g", [a_member("a", "1", node="n1")], "no member of gang default/g waits",
            id="all bound",
        ),
        pytest.param(
            "default/g", [a_member("a", "x")], "states no minimum of pods: write min-available",
            id="no minimum",
        ),
        pytest.param("default/g", [a_member("a", "99999")], "lacks 99998 members", id="too many"),
    ],
)  # fmt: skip
def test_gangs_that_cannot_be_tried(name, objects, why):
    with pytest.raises(asked_gang.AskedGangError) as caught:
        of(name, *objects)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("documents", "why"),
    [
        pytest.param([{"kind": "Service"}], "neither pods nor a PodGroup", id="no pods"),
        pytest.param([{"kind": "PodGroup", "apiVersion": "x/v1", "metadata": {"name": "g"}}],
                     "apiVersion 'x/v1' is none of scheduling.sigs.k8s.io/v1alpha1", id="a group"),
        pytest.param([a_pod_group() | {"spec": {"minMember": "many"}}],
                     "PodGroup g cannot be read", id="unreadable"),
        pytest.param([a_pod_group()], "gang default/g has no pods", id="a group without pods"),
        pytest.param([a_gang("many", 1)], "spec.parallelism: 'many' is no number", id="a count"),
        pytest.param([a_gang(1, spec={"priorityClassName": "x"})],
                     "there is no PriorityClass x", id="a class"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_tried(documents, why):
    with pytest.raises(asked_gang.AskedGangError) as caught:
        tried(*documents)
    assert why in str(caught.value)


def test_the_document_holds_the_whole_answer():
    found = tried(a_gang(5))
    (group,) = answer.document(found)["groups"]
    assert (group["fits"], group["tightest"]) == (False, "default/train-4")
    assert group["withoutNode"] == ["default/train-4"]
    assert json.loads(json.dumps(group)) == group
    assert "What would make it fit, each on its own:" in list(answer.lines(found))


@pytest.mark.parametrize(
    ("words", "documents", "code", "told"),
    [
        pytest.param([], [a_gang(2)], 0, "Gang default/train fits", id="a file"),
        pytest.param(["-n", "team"], [a_gang(2)], 0, "Gang team/train fits", id="a namespace"),
        pytest.param(["g"], [], 0, "Gang default/g fits", id="a name"),
        pytest.param([], [], 2, "name either a gang that waits, or a file", id="nothing"),
        pytest.param(["g"], [a_gang(2)], 2, "name either a gang", id="both"),
        pytest.param(["x"], [], 2, "there is no gang default/x", id="unknown"),
        pytest.param(["g", "--plugin", "X"], [], 2, "X does not exist", id="plug-in"),
    ],
)
def test_from_arguments_to_the_answer(tmp_path, capsys, words, documents, code, told):
    objects = [*EIGHT, a_member("a"), a_member("b")]
    reader.save(tmp_path / "snapshot", clusters.snapshot(*objects))
    file = []
    if documents:
        (tmp_path / "gang.yaml").write_text(yaml.safe_dump_all(documents))
        file = ["-f", str(tmp_path / "gang.yaml")]
    where = f"--snapshot={tmp_path / 'snapshot'}"
    assert main.main(["simulate", "gang", where, *file, *words]) == code
    out, err = capsys.readouterr()
    assert told in (err if code else out)
