"""`koord status --reservations` and `koord explain reservation`: what objects say, line by line."""

import json

import pytest

from api import names, resources
from cli import main
from cli.explain import reservation_story, stories
from cli.explain.pod import pod_facts, reservation_layer
from cli.reservations import cluster, table
from cli.snapshot import format as formats
from cli.snapshot import projection, renaming
from tests import builders

NOW = "2026-07-01T12:00:00Z"
CREATED = "2026-07-01T11:00:00Z"
TEAM = {"labelSelector": {"matchLabels": {"team": "x"}}}


def a_reservation(name="r", phase="Available", *, node="n1", cpu="6", status=None, **spec):
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    placed = {"phase": phase}
    if node:
        placed |= {"nodeName": node, "allocatable": {"cpu": cpu}}
    return {
        "apiVersion": resources.RESERVATIONS.api_version,
        "kind": "Reservation",
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED},
        "spec": {"template": template, "owners": [TEAM], "allocateOnce": False} | spec,
        "status": placed | (status or {}),
    }


def an_owner(name, of="r", node="n1", cpu="2"):
    marked = {names.ANNOTATION_RESERVATION_ALLOCATED: json.dumps({"name": of, "uid": f"uid-{of}"})}
    return builders.a_pod(name, node=node, cpu=cpu, annotations=marked, labels={"team": "x"})


def a_stand_in(of="r"):
    return builders.a_pod(
        f"standing-{of}", cpu="6", labels={names.LABEL_STAND_IN: of},
        annotations={names.ANNOTATION_STAND_IN_UID: f"uid-{of}"},
    )  # fmt: skip


def snapshot(reservations=(), pods=(), nodes=None):
    held = {
        resources.RESERVATIONS: reservations,
        resources.PODS: pods,
        resources.NODES: [builders.a_node("n1")] if nodes is None else nodes,
    }
    found = {
        kind.review_name(): tuple(projection.kept(kind, raw) for raw in raws)
        for kind, raws in held.items()
    }
    return formats.Snapshot(NOW, found)


def build(*args, **more):
    return cluster.build(snapshot(*args, **more))


def rows(found):
    return [" ".join(line.split()) for line in table.lines(found)]


def pending(message="0/3 nodes are available: 3 Insufficient cpu.", **more):
    condition = {"type": "Scheduled", "status": "False", "reason": "Unschedulable"}
    condition["message"] = message
    return a_reservation(phase="Pending", node="", status={"conditions": [condition]}, **more)


def test_a_line_says_what_is_reserved_used_and_left():
    found = build([a_reservation()], [an_owner("a"), an_owner("b", cpu="1"), an_owner("gone", "q")])
    assert rows(found)[1:] == [
        "r Available n1 6 3 3 2 23h0m -",
        "1 Reservation: 1 Available. Reserved 6; owners use 3; unused 3.",
    ]


def test_one_that_waits_says_what_runs_in_its_place_and_what_it_keeps_beside():
    running = {"namespace": "default", "name": "old", "uid": "uid-old"}
    status = {
        "currentOwners": [running],
        "allocated": {"cpu": "4"},
        "conditions": [{"type": "Ready", "status": "False", "reason": "Waiting"}],
    }
    one = a_reservation(phase="Waiting", preAllocation=True, status=status)
    found = build([one], [builders.a_pod("old", node="n1", cpu="4", labels={"team": "x"})])
    assert rows(found)[1:] == [
        "r Waiting n1 6 4 - (1) 23h0m Waiting",
        "1 Reservation: 1 Waiting. Waiting ones keep 2 beside the pods that run in their place.",
    ]
    document = table.document(found)
    assert document["totals"]["waiting"] == {"cpu": "2"}
    (item,) = document["items"]
    assert (item["waitsFor"], item["unused"]) == (["default/old"], {"cpu": "2"})


@pytest.mark.parametrize(
    ("reservation", "pods", "line"),
    [
        pytest.param(
            pending(), [], "r Pending - 6 - - 0 23h0m Unschedulable: 0/3 nodes are available: 3 "
            "Insufficient cpu.", id="pending",
        ),
        pytest.param(
            a_reservation(allocateOnce=True), [an_owner("a")],
            "r Available n1 6 2 - 1 23h0m -", id="used up by its only owner",
        ),
        pytest.param(
            a_reservation(ttl="0s"), [], "r Available n1 6 0 6 0 never -", id="for ever",
        ),
        pytest.param(
            a_reservation(ttl="65m"), [], "r Available n1 6 0 6 0 5m0s -", id="soon over",
        ),
        pytest.param(
            a_reservation(
                phase="Failed",
                status={"conditions": [{"type": "Ready", "status": "False", "reason": "Expired"}]},
            ),
            [an_owner("a")], "r Failed n1 6 2 - 1 - Expired", id="expired",
        ),
        pytest.param(
            a_reservation(allocatePolicy="Restricted"), [an_owner("a", cpu="7")],
            "r Available n1 6 7 0 1 23h0m -", id="more than is reserved",
        ),
        pytest.param(a_reservation(), [an_owner("a", node="n2")],
                     "r Available n1 6 0 6 0 23h0m -", id="an owner elsewhere"),
    ],
)  # fmt: skip
def test_phases_and_ends_of_reservations(reservation, pods, line):
    assert rows(build([reservation], pods))[1] == line


def test_what_cannot_stay_is_named_with_its_remedy():
    restricted = a_reservation(allocatePolicy="Restricted")
    over = a_reservation("over", ttl="10m")
    odd = a_reservation("odd")
    odd["metadata"]["annotations"] = {names.ANNOTATION_NODE_RESERVATION: "{"}
    pods = [
        an_owner("big", cpu="9"), an_owner("lost", node="n2"), a_stand_in("nothing"),
    ]  # fmt: skip
    told = table.document(build([restricted, over, odd], pods))
    said = [one["message"] for one in told["problems"]]
    assert said == [
        f"Reservation odd cannot be used: {said[0].partition(': ')[2]}",
        "Reservation over has expired and is still Available",
        "owners of Reservation r use more cpu than it reserves",
        "pod default/standing-nothing stands in for a Reservation that does not exist",
        "pod default/lost names a Reservation of another node than its own",
    ]
    assert all(one["remedy"] for one in told["problems"])


def test_unreadable_objects_are_named_and_hide_no_others():
    broken = a_reservation("broken")
    broken["spec"]["ttl"] = "ten minutes"
    found = build([broken, a_reservation()])
    assert list(found.found) == ["r"]
    assert found.notes == ("Reservation broken cannot be read and is left out",)


def told(found, name="r", **more):
    story = reservation_story.told(reservation_story.Facts(found, name, **more))
    assert json.dumps(stories.document(story))
    return "\n".join(stories.lines(story))


def test_the_story_of_one_in_use():
    waiting = builders.a_pod("late", cpu="5", labels={"team": "x"})
    text = told(build([a_reservation(allocatePolicy="Restricted")], [an_owner("a"), waiting]))
    assert text.startswith(
        "Reservation r holds 6 cores on node n1: 1 owner uses 2 cores, 4 cores left."
    )
    for sentence in (
        "pods with labels team=x.",
        "Pod default/late waits and does not fit into what is left: 4 cores.",
        "Pod default/a uses it; it requests 2 cores, 1.0 GiB of memory.",
        "cpu: 6 reserved, 2 used by owners, 4 left.",
        "It expires at 2026-07-02T11:00:00Z, in 23h0m.",
    ):
        assert sentence in text


def test_the_story_of_one_that_waits_has_the_latest_reasons_of_its_stand_in():
    pod = a_stand_in()
    pod["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
         "message": "0/1 nodes are available: 1 Insufficient cpu. preemption: none"}
    ]  # fmt: skip
    nearest = {"node": "n1", "figures": "6 asked, 4 free", "wouldHelp": ["2 cores more on n1"]}
    group = {"reason": "Insufficient cpu by node", "count": 1, "nodes": ["n1"], "nearest": nearest}
    page = {"present": {"asked": 1, "passed": 0, "groups": [group]}}
    facts = pod_facts.Facts("default/standing-r", pod, page=page)
    events = [{"type": "Warning", "reason": "FailedScheduling", "message": "no room"}]
    text = told(build([pending()], [pod]), stand_in=facts, events=events)
    for sentence in (
        "Reservation r is Pending and waits: Unschedulable: 0/3 nodes are available",
        "Pod default/standing-r stands in for it at the scheduler.",
        "Scheduler default-scheduler says: 0/1 nodes are available: 1 Insufficient cpu.",
        "1 refused: Insufficient cpu by node (n1).",
        "The nearest miss is n1: 6 asked, 4 free.",
        "Event FailedScheduling: no room.",
        "2 cores more on n1",
        "a smaller template than 6 cores",
    ):
        assert sentence in text


@pytest.mark.parametrize(
    ("owner", "sentence"),
    [
        pytest.param({"object": {"namespace": "d", "name": "p"}}, "pod d/p.", id="object"),
        pytest.param(
            {"controller": {"kind": "Job", "name": "j", "uid": "", "apiVersion": ""}},
            "pods of Job j of any namespace.", id="controller",
        ),
        pytest.param(
            {"labelSelector": {"matchExpressions": [
                {"key": "team", "operator": "In", "values": ["a", "b"]},
                {"key": "gone", "operator": "DoesNotExist"}]}},
            "pods with labels team In (a, b) and gone DoesNotExist.", id="expressions",
        ),
        pytest.param(
            {"object": {"name": "p"}, **TEAM},
            "pod p of any namespace that are also pods with labels team=x.", id="two parts",
        ),
    ],
)  # fmt: skip
def test_owners_in_words(owner, sentence):
    assert sentence in told(build([a_reservation(owners=[owner])]))


@pytest.mark.parametrize(
    ("reservation", "words"),
    [
        pytest.param(a_reservation(phase="Succeeded", allocateOnce=True, status={
            "currentOwners": [{"namespace": "d", "name": "p", "uid": "u"}]}),
            "Pod d/p used it; the pod has ended.", id="succeeded"),
        pytest.param(a_reservation(phase="Waiting"), "waits there for 6 cores to be free",
                     id="waiting"),
        pytest.param(a_reservation(phase="Failed"), "a new Reservation, with a longer ttl",
                     id="failed"),
        pytest.param(a_reservation(unschedulable=True), "it takes no new owners", id="closed"),
        pytest.param(a_reservation(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
                     "Taint k=v:NoSchedule.", id="taints"),
        pytest.param(a_reservation(expires="2026-07-01T11:30:00Z"),
                     "It expired at 2026-07-01T11:30:00Z", id="overdue"),
    ],
)  # fmt: skip
def test_stories_of_other_phases(reservation, words):
    assert words in told(build([reservation]))


def test_a_name_that_does_not_exist_gets_those_near_it():
    assert "There is no Reservation r among 2; there are r-1, r-2." in told(
        build([a_reservation("r-1"), a_reservation("r-2")])
    )


def layer(found, pod):
    read = pod_facts.read(pod_facts.Facts("k", pod))
    return reservation_layer.told(found, read).sentences, reservation_layer.helps(found, read)


@pytest.mark.parametrize(
    ("reservation", "node", "sentence"),
    [
        pytest.param(a_reservation(), "n1", "It uses Reservation r: it has 4 cores left.",
                     id="in use"),
        pytest.param(a_reservation(phase="Failed"), "n1", "has ended; the pod runs on.", id="over"),
        pytest.param(a_reservation(), "n2", "It names Reservation r of another node", id="else"),
        pytest.param(a_reservation("other"), "n1", "is gone; what the pod requests stays its own.",
                     id="gone"),
    ],
)  # fmt: skip
def test_a_pod_with_a_node_says_which_it_uses(reservation, node, sentence):
    pod = an_owner("a", node=node)
    said, _ = layer(build([reservation], [pod]), pod)
    assert sentence in said[0]


@pytest.mark.parametrize(
    ("reservation", "notes", "sentence"),
    [
        pytest.param(a_reservation(), {}, "names it as an owner: it has 6 cores left.",
                     id="may use it"),
        pytest.param(a_reservation(cpu="1", allocatePolicy="Restricted"), {},
                     "but has too little cpu: it has 1 core left.", id="too little"),
        pytest.param(a_reservation(unschedulable=True), {}, "but: Reservation(s) is unschedulable.",
                     id="closed"),
        pytest.param(pending(), {}, "is Pending: it has no room for it yet.", id="pending"),
        pytest.param(a_reservation(), {names.ANNOTATION_RESERVATION_AFFINITY: '{"name":"q"}'},
                     "It may use Reservation q and no other capacity.", id="another name"),
        pytest.param(a_reservation(), {names.ANNOTATION_RESERVATION_AFFINITY: "{"},
                     "No Reservation takes it:", id="unreadable"),
    ],
)  # fmt: skip
def test_a_pod_that_waits_says_which_it_may_use(reservation, notes, sentence):
    pod = builders.a_pod("late", cpu="2", labels={"team": "x"}, annotations=notes)
    said, helps = layer(build([reservation], [pod]), pod)
    assert any(sentence in one for one in said)
    usable = "left." in said[0] and "too little" not in said[0]
    assert bool(helps) is not (usable or "{" in notes.values())


def test_pods_that_no_reservation_concerns_are_told_nothing():
    pod = builders.a_pod("p", cpu="1")
    assert layer(build([a_reservation()], [pod]), pod) == ((), ())


def test_without_pods_the_status_of_reservations_counts():
    stated = {"allocated": {"cpu": "2"}, "currentOwners": [{"namespace": "d", "name": "p"}]}
    whole = snapshot([a_reservation(status=stated)])
    found = cluster.build(
        formats.Snapshot(NOW, {k: v for k, v in whole.objects.items() if k != "pods"})
    )
    assert rows(found)[1] == "r Available n1 6 2 4 1 23h0m -"


def test_a_snapshot_keeps_relations_and_loses_images_and_names(tmp_path, capsys):
    secret = "hunter2-hunter2"
    named = {"object": {"namespace": "berlin", "name": "acme-pod", "uid": "u-acme"}}
    one = a_reservation("acme", owners=[named, TEAM])
    one["spec"]["template"]["spec"]["containers"][0] |= {
        "image": f"acme/{secret}", "env": [{"name": "PASSWORD", "value": secret}]}  # fmt: skip
    one["spec"]["template"]["spec"]["nodeName"] = "n1"
    waiting = builders.a_pod("acme-late", cpu="1", labels={"team": "x"}, annotations={
        names.ANNOTATION_RESERVATION_AFFINITY: '{"name":"acme"}'})  # fmt: skip
    before = snapshot([one], [an_owner("acme-1", "acme"), a_stand_in("acme"), waiting])
    assert secret not in json.dumps(before.objects)
    after = renaming.renamed(before)
    text = json.dumps(after.objects)
    assert not [word for word in ("acme", "berlin", '"n1"') if word in text]
    found = cluster.build(after)
    ((name, held),) = found.found.items()
    assert (held.usage.node, held.usage.allocated) == (*found.nodes, {"cpu": 2000})
    assert held.written.pod.spec.node_name == held.usage.node
    assert len(found.stand_ins(name)) == 1
    assert f"may use Reservation {name} and no other" in " ".join(
        layer(found, next(p for p in after.of(resources.PODS) if "nodeName" not in p["spec"]
                          and names.LABEL_STAND_IN not in p["metadata"]["labels"]))[0])  # fmt: skip
    file = tmp_path / "s.snapshot"
    file.write_bytes(formats.encode(after))
    assert main.main(["explain", "reservation", name, "--snapshot", str(file)]) == 0
    assert f"Reservation {name} holds 6 cores" in capsys.readouterr().out
    assert main.main(["status", "--reservations", "--snapshot", str(file)]) == 0
    assert f"{name}  Available" in capsys.readouterr().out
    assert main.main(["status", "--snapshot", str(file)]) == 2
    capsys.readouterr()
    assert main.main(["status", "--reservations", "--snapshot", str(file), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["unused"] == {"cpu": "4"}
