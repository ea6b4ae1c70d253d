"""The story of a quota: every figure in it can be added up by hand."""

import json

from api import names
from cli import main
from cli.explain import quota_story, stories
from cli.quota import cluster
from tests.cli.commands import test_get as quotas

UNLIMITED = "1844674407370955161"
"""What Koordinator writes as the maximum of its default quota."""
a_quota, a_pod, file = quotas.a_quota, quotas.a_pod, quotas.file


def text(snapshot, name):
    told = quota_story.told(cluster.build(snapshot), name)
    assert json.dumps(stories.document(told))
    return "\n".join(stories.lines(told))


def test_a_borrower_sees_the_sum_and_whose_it_is():
    told = text(quotas.TEAMS, "team-a")
    assert told.startswith("Quota team-a uses 25 of 28 cores; pods that ask for 3 cores wait.")
    assert "borrows 15; 3 wait" in told
    assert "It uses 10 cores that team-b lends." in told
    assert "the root shares out 40; the minimums of all children are 40 together" in told
    assert "its 50 of 50 give 25, of which it returns 7" in told
    assert "So its share of cpu is 28." in told


def test_a_lender_sees_who_holds_its_part_with_the_pods_that_give_back_first():
    pods = [
        a_pod("old", "team-a", "5", priority=1),
        a_pod("low", "team-a", "10", priority=0),
        a_pod("firm", "team-a", "10", labels={names.LABEL_QUOTA_PREEMPTIBLE: "false"}),
        a_pod("mine", "team-b", "20", ""),
    ]
    snapshot = quotas.a_snapshot(
        [a_quota("team-a", "team-a"), a_quota("team-b", "team-b", minimum="30")], pods
    )
    told = text(snapshot, "team-b")
    assert "team-a uses 15 cores of its idle minimum; its pods" in told
    assert "the first to give back first: team-a/low, team-a/old." in told
    assert "team-a/firm" not in told
    assert "1 of 1: team-b/mine (priority 0): its quota has room." in told
    assert "borrowed cpu given back by team-a" in told


def test_a_quota_at_its_cap_is_told_what_would_help():
    pods = [a_pod("p", "t", "50"), a_pod("q", "t", "5", "")]
    told = text(quotas.a_snapshot([a_quota("t", "t")], pods, nodes=("80",)), "t")
    assert "Insufficient quotas, quotaName: t, runtime: cpu:50,used: cpu:50" in told.replace(
        ", used", ",used"
    )
    assert "a larger max (and hard) of t: all its pods together ask for 55 cores" in told


def test_conflicts_scaled_minimums_and_unreadable_objects_are_told():
    twice = a_quota("t", "two", quotas.PLAIN, minimum="40", created=9)
    odd = a_quota("odd", "x")
    odd["spec"] = 7
    snapshot = quotas.a_snapshot(
        [a_quota("t", "t", minimum="30"), a_quota("u", "u", minimum="30"), twice, odd],
        [a_pod("p", "t", "40", ""), a_pod("q", "u", "40", "")],
    )
    told = text(snapshot, "t")
    assert "the minimum of t counts as 20 of 30" in told
    assert "the name t is taken by the older" in told
    assert "elasticquotas.koordinator.sh x/odd cannot be read and is left out." in told


def test_every_quota_of_a_tree_and_the_default_quota_have_a_story():
    pods = [a_pod("p", "c", "4"), a_pod("q", "nobody", "2")]
    tree = quotas.a_snapshot([a_quota("p", "x", quotas.PLAIN), a_quota("c", "c", parent="p")], pods)
    assert "It shares with its children: c." in text(tree, "p")
    child = text(tree, "c")
    assert "the root shares out" in child
    assert "p shares out" in child
    assert "No object states it" in text(tree, names.DEFAULT_QUOTA)


def test_a_quota_without_a_limit_is_told_without_the_figure_that_stands_for_none():
    everything = a_quota(names.DEFAULT_QUOTA, "x", quotas.PLAIN, minimum="0", most=UNLIMITED)
    snapshot = quotas.a_snapshot([everything], [a_pod("p", "nobody", "2")])
    told = text(snapshot, names.DEFAULT_QUOTA)
    assert told.startswith(f"Quota {names.DEFAULT_QUOTA} uses 2 cores without a limit.")
    assert "cpu: uses 2, is guaranteed 0, is not limited now." in told


def test_the_command_names_the_nearest_quotas(file, capsys):
    saved = file(quotas.TEAMS)
    assert main.main(["explain", "quota", "team-b", saved]) == 0
    assert capsys.readouterr().out.startswith("Quota team-b uses 0 of 5 cores")
    assert main.main(["explain", "quota", "team-x", saved, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["found"], "did you mean team-" in found["verdict"]) == (False, True)
