"""`koord get quota`: three groups side by side, from a snapshot."""

import json

import pytest
import yaml

from api import names, resources
from cli import main
from cli.snapshot import format as formats
from cli.snapshot import reader
from tests import builders

PLAIN, QUOTA, SHORT = resources.QUOTA_RESOURCES


def a_quota(name, namespace, resource=SHORT, minimum="10", most="50", created=1.0, **labels):
    return {
        "apiVersion": resource.api_version,
        "kind": "ElasticQuota",
        "metadata": {
            "name": name, "namespace": namespace, "uid": f"{resource.group}-{name}",
            "creationTimestamp": f"2026-07-01T12:00:{created:02.0f}Z",
            "labels": {"tier" if key == "tier" else names.LABEL_QUOTA_PARENT: value
                       for key, value in labels.items()},
        },
        "spec": {"min": {"cpu": minimum}, "max": {"cpu": most}},
    }  # fmt: skip


def a_snapshot(quotas, pods=(), nodes=("40",), unread=()):
    found = {resource.review_name(): [] for resource in resources.QUOTA_RESOURCES}
    for quota in quotas:
        group = quota["apiVersion"].partition("/")[0]
        found[f"elasticquotas.{group}"].append(quota)
    found |= {
        "pods": list(pods),
        "nodes": [builders.a_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(nodes)],
    }
    return formats.Snapshot("2026-07-01T13:00:00Z", found, dict(unread))


def a_pod(name, namespace, cpu, node="n0", **other):
    pod = builders.a_pod(name, namespace, cpu=cpu, node=node, **other)
    pod["metadata"]["uid"] = f"{namespace}-{name}"
    return pod


@pytest.fixture
def file(tmp_path):
    def save(snapshot):
        reader.save(tmp_path / "file", snapshot)
        return f"--snapshot={tmp_path / 'file'}"

    return save


TEAMS = a_snapshot(
    [
        a_quota("team-a", "team-a"),
        a_quota("team-b", "team-b", QUOTA, minimum="20"),
        a_quota("team-c", "quotas", PLAIN, minimum="10"),
    ],
    [a_pod("p", "team-a", "25"), a_pod("q", "team-b", "5", ""), a_pod("r", "team-a", "3", "")],
)


def test_quotas_of_all_three_groups_stand_side_by_side(file, capsys):
    assert main.main(["get", "quota", "-A", file(TEAMS)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    cells = {line.split()[1]: line.split() for line in lines if "team" in line}
    assert head.split()[:5] == ["NAMESPACE", "QUOTA", "GROUP", "PARENT", "RESOURCE"]
    assert {name: row[2] for name, row in cells.items()} == {
        "team-a": SHORT.group, "team-b": QUOTA.group, "team-c": PLAIN.group,
    }  # fmt: skip
    # used, entitled, guaranteed, cap, borrowed, lent, waiting
    assert cells["team-a"][5:] == ["25", "28", "10", "50", "15", "0", "3"]
    assert cells["team-b"][5:] == ["0", "5", "20", "50", "0", "10", "5"]
    assert cells["team-c"][5:] == ["0", "0", "10", "50", "0", "5", "0"]


def test_programs_get_the_same_with_who_holds_what_is_lent(file, capsys):
    assert main.main(["get", "quota", "-A", "-o", "json", file(TEAMS)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main.main(["get", "quota", "-A", "-o", "yaml", file(TEAMS)]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == found
    lender = next(item for item in found["items"] if item["name"] == "team-b")
    assert lender["lentTo"] == {"team-a": {"cpu": "10"}}
    assert (lender["lent"], lender["waitingPods"]) == ({"cpu": "10"}, 1)


def test_a_namespace_or_names_choose(file, capsys):
    saved = file(TEAMS)
    assert main.main(["get", "quota", "-n", "team-b", saved]) == 0
    assert "team-a " not in capsys.readouterr().out
    assert main.main(["get", "quota", "-A", "team-c", saved]) == 0
    assert capsys.readouterr().out.count("\n") == 2
    assert main.main(["get", "quota", "-n", "empty", saved]) == 0
    assert "no ElasticQuota in namespace empty; -A shows all" in capsys.readouterr().err


def test_labels_choose(file, capsys):
    saved = file(
        a_snapshot(
            [a_quota("a", "one", tier="web"), a_quota("b", "two", tier="db"), a_quota("c", "one")]
        )
    )

    def chosen(*words):
        assert main.main(["get", "quota", saved, "-o", "name", *words]) == 0
        return capsys.readouterr().out.split()

    assert chosen("-A", "-l", "tier") == ["one/a", "two/b"]
    assert chosen("-A", "-l", "tier in (db)") == ["two/b"]
    assert chosen("-n", "one", "-l", "!tier") == ["one/c"]
    assert chosen("-n", "one", "-l", "tier=db") == []
    assert main.main(["get", "quota", saved, "-n", "one", "-l", "tier=db"]) == 0
    said = capsys.readouterr().err
    assert "no ElasticQuota with labels tier=db in namespace one; -A shows all" in said
    with pytest.raises(SystemExit):
        main.main(["get", "quota", saved, "-l", "tier in db"])
    assert "unable to parse requirement" in capsys.readouterr().err


def test_a_wide_table_has_tree_and_priority(file, capsys):
    assert main.main(["get", "quota", "-A", "-o", "wide", file(TEAMS)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    for word in ("TREE", "PRIORITY", "WAITING PODS", "RESOURCE"):
        assert word in head
    (row,) = (row.split() for row in rows if " team-b " in row)
    assert row[4:8] == ["-", "0", "1", "cpu"]


def test_an_unknown_name_gets_the_nearest_ones(file, capsys):
    assert main.main(["get", "quota", "-A", "tema-a", file(TEAMS)]) == 1
    assert "there is no ElasticQuota tema-a here: did you mean team-a" in capsys.readouterr().err


def test_a_second_object_of_the_same_name_is_told_and_counts_for_nothing(file, capsys):
    twice = a_snapshot(
        [a_quota("t", "one"), a_quota("t", "two", PLAIN, minimum="40", created=9)],
        unread=[("nodes", "403: no")],
    )
    assert main.main(["get", "quota", "-A", file(twice)]) == 0
    told = capsys.readouterr()
    assert "ignored: scheduling.sigs.k8s.io/v1alpha1 two/t: another ElasticQuota" in told.out
    assert "the name t is taken by the older" in told.err
    assert "note: nodes could not be read: 403: no" in told.err


def test_quotas_that_may_not_be_read_are_not_an_empty_list(file, capsys):
    kinds = [kind.review_name() for kind in resources.QUOTA_RESOURCES]
    assert main.main(["get", "quota", "-A", file(a_snapshot([], unread=[(kinds[0], "403: no")]))])
    assert f"koord get: {kinds[0]} could not be read: 403: no" in capsys.readouterr().err
    some = a_snapshot([a_quota("t", "one")], unread=[(kinds[0], "403: no")])
    assert main.main(["get", "quota", "-A", file(some)]) == 0


def test_children_stand_below_their_parent(file, capsys):
    tree = a_snapshot(
        [
            a_quota("z", "x", PLAIN),
            a_quota("b", "x", PLAIN, parent="z"),
            a_quota("a", "x", PLAIN, parent="y"),
            a_quota("y", "x", PLAIN),
        ]
    )
    assert main.main(["get", "quota", "-A", file(tree)]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "y", "a", "z", "b",
    ]  # fmt: skip


def test_what_is_not_limited_is_called_so_in_the_table_alone(file, capsys):
    words = ["get", "quota", "-A", file(a_snapshot([a_quota("all", "x", most=str(2**61))]))]
    assert main.main(words) == 0
    assert "unlimited" in capsys.readouterr().out
    assert main.main([*words, "-o", "json"]) == 0
    assert "unlimited" not in capsys.readouterr().out
