"""Borrowers give back what others are entitled to: few, the right ones, on one node, or nobody."""

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from api.kubernetes import core
from domain.quota import model, placement, reclaim
from tests import draws
from tests.domain.quota.forests import a_forest, a_pod, a_quota

TOTAL = {"cpu": 100, "memory": 1000, "pods": 1000}
LENDER = a_quota("lender", {"cpu": 60}, {"cpu": 100})
BORROWER = a_quota("borrower", {"cpu": 40}, {"cpu": 100})


def holds(uid, cpu, quota="borrower", node="n1", **other):
    return reclaim.Holder(uid, f"pods/{uid}", quota, (("cpu", cpu),), node, **other)


def wants(cpu, quota="lender", uid="w", **other):
    return reclaim.Waiter(uid, f"pods/{uid}", quota, (("cpu", cpu),), **other)


def site(name="n1", cpu=100, **other):
    return reclaim.Site(name, other.pop("labels", {}), (("cpu", cpu), ("pods", 110)), **other)


def tree_of(holders, waiters, quotas=(LENDER, BORROWER), **rules):
    uses = [
        msgspec.structs.replace(
            a_pod(one.uid, one.quota, one.requests, preemptible=one.preemptible), assigned=True
        )
        for one in holders
        if not one.leaving
    ]
    uses += [a_pod(one.uid, one.quota, one.requests) for one in waiters]
    return a_forest(quotas, uses, TOTAL, model.Rules(**rules))


def planned(holders, waiter, sites=None, quotas=(LENDER, BORROWER), **terms):
    by_node = {}
    for one in holders:
        by_node.setdefault(one.node, []).append(one)
    given = reclaim.Terms(terms.pop("overdue", frozenset({"borrower"})), **terms)
    tree = tree_of(holders, [waiter], quotas)
    return reclaim.plan(tree, waiter, sites or [site()], by_node, given)


def uids(found):
    assert isinstance(found, reclaim.Reclaim), found
    return [one.uid for one in found.victims]


class TestWhoLeaves:
    """Victims on one node of 100, of a borrower that may keep 70 or less."""

    def test_the_youngest_of_the_lowest_priority(self):
        holders = [
            holds("old", 25, started_at=1.0),
            holds("high", 25, priority=9, started_at=9.0),
            holds("young", 25, started_at=5.0),
            holds("middle", 25, started_at=3.0),
        ]
        assert uids(planned(holders, wants(30))) == ["young", "middle"]
        assert uids(planned(holders, wants(20))) == ["young"]

    def test_who_need_not_leave_after_all_stays(self):
        holders = [holds("small", 10, started_at=9.0), holds("large", 90 - 0, started_at=1.0)]
        assert uids(planned(holders, wants(50))) == ["large"]

    @pytest.mark.parametrize(
        ("holders", "waiter", "terms", "reason"),
        [
            pytest.param(
                [holds("a", 100)], wants(70), {}, reclaim.NOT_ENTITLED, id="above-its-own-share"
            ),
            pytest.param(
                [holds("a", 100)],
                wants(30),
                {"overdue": frozenset()},
                reclaim.NOBODY_OVERDUE,
                id="within-the-grace",
            ),
            pytest.param(
                [holds("a", 40), holds("b", 60, "lender")],
                wants(30, "borrower"),
                {"overdue": frozenset({"lender", "borrower"})},
                reclaim.NOT_ENTITLED,
                id="nobody-borrows",
            ),
            pytest.param(
                [holds("a", 100, preemptible=False)],
                wants(30),
                {},
                reclaim.NO_NODE,
                id="never-preempted",
            ),
            pytest.param(
                [holds("a", 100)],
                wants(30),
                {"excluded": frozenset({"a"})},
                reclaim.NO_NODE,
                id="disruption-budget",
            ),
            pytest.param(
                [holds("a", 100)],
                wants(30),
                {"avoided": frozenset({"n1"})},
                reclaim.NO_NODE,
                id="tried-in-vain",
            ),
            pytest.param(
                [holds("a", 60), holds("b", 40, leaving=True)],
                wants(30),
                {},
                reclaim.NOBODY_OVERDUE,
                id="enough-leave-already",
            ),
        ],
    )
    def test_nobody(self, holders, waiter, terms, reason):
        found = planned(holders, waiter, **terms)
        assert isinstance(found, reclaim.Nothing)
        assert found.reason == reason

    def test_no_more_than_the_borrower_has_too_much(self):
        holders = [
            holds("b1", 40),
            holds("b2", 30),
            holds("other", 30, "third"),
        ]
        quotas = (*(LENDER, BORROWER), a_quota("third", {"cpu": 0}, {"cpu": 100}))
        found = planned(holders, wants(50), quotas=quotas, overdue=frozenset({"borrower", "third"}))
        assert sorted(uids(found)) == ["b2", "other"]

    def test_a_minimum_is_cut_into_only_for_another_minimum_and_last(self):
        holders = [holds("whole", 100, started_at=1.0)]
        assert uids(planned(holders, wants(30))) == ["whole"]
        greedy = a_quota("lender", {"cpu": 0}, {"cpu": 100})
        found = planned(holders, wants(30), quotas=(greedy, BORROWER))
        assert found == reclaim.Nothing(reclaim.NO_NODE)
        split = [holds("part", 50, node="n2"), *(holds(f"s{n}", 10, node="n1") for n in range(5))]
        sites = [site("n1", 50), site("n2", 50)]
        quotas = (
            a_quota("lender", {"cpu": 40}, {"cpu": 100}),
            a_quota("borrower", {"cpu": 60}, {"cpu": 100}),
        )
        assert planned(split, wants(30), sites, quotas).node == "n1"


SPREAD = [
    *(holds(f"b{n}", 12, node=f"n{n}") for n in range(5)),
    *(holds(f"t{n}", 8, "third", node=f"n{n}") for n in range(5)),
]
"""Five full nodes of 20. The borrower may use 40 and uses 60, the third quota 40 and uses them."""
FIVE = [site(f"n{n}", 20) for n in range(5)]


def thirds(lender=40, third=10):
    least = {"lender": lender, "borrower": 10, "third": third}
    return [a_quota(name, {"cpu": cpu}, {"cpu": 100}) for name, cpu in least.items()]


class TestThinlySpread:
    """Overuse is enough in sum, and on no node."""

    def test_a_minimum_displaces_what_others_have_above_theirs(self):
        found = planned(SPREAD, wants(20), FIVE, thirds())
        assert found.node == "n0"
        assert sorted(uids(found)) == ["b0", "t0"]
        assert "quota borrower uses cpu:60m and may use cpu:40m" in found.sentence
        assert "quota third uses cpu:40m of which cpu:10m is guaranteed" in found.sentence

    def test_whoever_is_displaced_may_then_have_what_is_overused_elsewhere(self):
        found = planned(SPREAD, wants(20), FIVE, thirds())
        stay = [one for one in SPREAD if one.uid not in uids(found)]
        placed = holds("w", 20, "lender", node="n0")
        back = wants(8, "third", uid="t0")
        after = reclaim.plan(
            tree_of([*stay, placed], [back, wants(12, "borrower", uid="b0")], thirds()),
            back,
            FIVE,
            {one.name: [h for h in [*stay, placed] if h.node == one.name] for one in FIVE},
            reclaim.Terms(frozenset({"borrower"})),
        )
        assert {one.quota for one in after.victims} == {"borrower"}

    @pytest.mark.parametrize(
        ("holders", "quotas"),
        [
            pytest.param(SPREAD, thirds(lender=10), id="above-its-own-minimum"),
            pytest.param(SPREAD, thirds(third=40), id="others-at-their-minimum"),
            pytest.param(
                [msgspec.structs.replace(h, preemptible=h.quota == "borrower") for h in SPREAD],
                thirds(),
                id="not-preemptible",
            ),
        ],
    )
    def test_nobody_is_displaced(self, holders, quotas):
        assert planned(holders, wants(20), FIVE, quotas) == reclaim.Nothing(reclaim.NO_NODE)

    def test_no_more_than_is_overused(self):
        # The borrower uses 44 and may use 40: what it gives back does not cover the others' 8.
        holders = [
            holds("b0", 4, node="n0"),
            holds("t0", 16, "third", node="n0"),
            holds("b1", 40, node="n1"),
            holds("t1", 24, "third", node="n1"),
        ]
        sites = [site("n0", 20), site("n1", 64)]
        found = planned(holders, wants(20), sites, thirds())
        assert found == reclaim.Nothing(reclaim.NO_NODE) or "t0" not in uids(found)

    def test_a_parents_minimum_holds_for_all_below_it(self):
        family = [
            a_quota("lender", {"cpu": 40}, {"cpu": 100}),
            a_quota("borrower", {"cpu": 10}, {"cpu": 100}),
            a_quota("family", {"cpu": 40}, {"cpu": 100}, is_parent=True),
            a_quota("third", {"cpu": 0}, {"cpu": 100}, parent="family"),
        ]
        found = planned(SPREAD, wants(20), FIVE, family)
        assert found == reclaim.Nothing(reclaim.NO_NODE)


class TestWhere:
    """The node has to take the pod once the victims have left."""

    def test_only_a_node_that_the_pod_may_use(self):
        wanted = placement.requirements(core.PodSpec(node_selector={"disk": "ssd"}))
        holders = [holds("a", 50, node="n1"), holds("b", 50, node="n2", priority=5)]
        sites = [site("n1", 50), site("n2", 50, labels={"disk": "ssd"})]
        assert planned(holders, wants(40, requires=wanted), sites).node == "n2"
        assert planned(holders, wants(40), sites).node == "n1"

    @pytest.mark.parametrize(
        "bad",
        [
            pytest.param({"schedulable": False}, id="cordoned"),
            pytest.param({"taints": (core.Taint("k", "v", "NoSchedule"),)}, id="tainted"),
            pytest.param({"cpu": 30}, id="too-small"),
        ],
    )
    def test_not_a_node_that_would_not_take_it(self, bad):
        found = planned([holds("a", 100)], wants(40), [site(**bad)])
        assert found == reclaim.Nothing(reclaim.NO_NODE)

    def test_victims_on_several_nodes_do_not_help(self):
        holders = [holds("a", 50, node="n1"), holds("b", 50, node="n2")]
        found = planned(holders, wants(60), [site("n1", 50), site("n2", 50)])
        assert found == reclaim.Nothing(reclaim.NO_NODE)

    def test_what_is_promised_to_others_is_not_there(self):
        holders = [holds("a", 60, node="n1"), holds("b", 40, node="n2")]
        sites = [site("n1", 60), site("n2", 70)]
        assert planned(holders, wants(30), sites) == reclaim.Nothing(reclaim.HAS_ROOM, "n2")
        found = planned(holders, wants(30), sites, promised={"n2": {"cpu": 30}})
        assert found.node in ("n1", "n2")
        assert found.victims

    def test_room_that_the_scheduler_does_not_take_for_long_is_not_believed(self):
        holders = [holds("a", 60, node="n1"), holds("b", 40, node="n2")]
        sites = [site("n1", 60), site("n2", 70)]
        found = planned(holders, wants(30), sites, distrusts_room=True)
        assert (found.node, uids(found)) == ("n1", ["a"])

    def test_fewest_and_least_important_of_all_nodes(self):
        holders = [
            holds("a1", 20, node="n1"),
            holds("a2", 20, node="n1"),
            holds("b", 40, node="n2", priority=0),
            holds("c", 20, node="n3", priority=7),
        ]
        sites = [site("n1", 40), site("n2", 40), site("n3", 40)]
        holders.append(holds("c2", 20, node="n3", priority=7))
        found = planned(holders[:4] + holders[4:], wants(40, uid="w"), sites)
        assert (found.node, uids(found)) == ("n2", ["b"])


def test_the_sentence_has_the_arithmetic_and_is_bounded():
    found = planned([holds(f"p{n}", 1) for n in range(100)], wants(20))
    assert len(found.victims) == 20
    said = found.sentence
    assert "quota borrower uses cpu:100m and may use cpu:80m" in said
    assert "pods/w of quota lender asks for cpu:20m" in said
    assert "and 15 more" in said
    assert len(said) < 1000


@pytest.mark.parametrize(
    ("holders", "limit", "expected"),
    [
        pytest.param([holds("a", 50), holds("b", 50)], 100, [], id="within"),
        pytest.param(
            [holds("a", 50, started_at=1.0), holds("b", 50, started_at=2.0)],
            60,
            ["b"],
            id="youngest",
        ),
        pytest.param(
            [holds("small", 10, started_at=9.0), holds("large", 90, started_at=1.0)],
            15,
            ["large"],
            id="gives-back",
        ),
        pytest.param(
            [holds("firm", 90, preemptible=False), holds("soft", 10)], 50, ["soft"], id="as-far-as"
        ),
    ],
)
def test_revoked_without_a_waiter(holders, limit, expected):
    tree = tree_of(holders, [], [a_quota("borrower", {}, {"cpu": limit})])
    found = reclaim.revoke(tree.figures("borrower"), holders)
    assert [one.uid for one in found] == expected


POD = some.builds(
    lambda number, cpu, quota, node, priority, firm, age: holds(
        f"p{number}", cpu, quota, node, priority=priority, preemptible=not firm, started_at=age
    ),
    some.integers(0, 10**6),
    some.integers(0, 30),
    some.sampled_from(("a", "b", "c")),
    some.sampled_from(("n1", "n2", "n3")),
    some.integers(0, 2),
    some.booleans(),
    some.floats(0, 9),
)


DISPLACING = [
    *(holds(f"b{n}", 12, "b", node=f"n{n}") for n in (1, 2)),
    *(holds(f"c{n}", 12, "c", node=f"n{n}") for n in (1, 2)),
    *(holds(f"f{n}", 16, "b", node=f"n{n}", preemptible=False) for n in (1, 2)),
    *(holds("f3", 20, "b", node="n3", preemptible=False), holds("a3", 20, "a", node="n3")),
]
"""Overuse of b is enough in sum, and on no node: pods of c leave for the minimum of a as well."""


@settings(max_examples=draws.at_least(150))
@given(
    some.lists(POD, max_size=14, unique_by=lambda one: one.uid),
    some.integers(1, 40),
    some.tuples(*map(some.sampled_from, ((0, 20, 60), (0, 10, 20), (0, 10, 20)))),
)
@example(DISPLACING, 20, (40, 10, 10))
def test_a_plan_keeps_its_promises(holders, cpu, least):
    quotas = [
        a_quota(name, {"cpu": one}, {"cpu": 100}) for name, one in zip("abc", least, strict=True)
    ]
    waiter, overdue = wants(cpu, "a"), frozenset("abc")
    sites = [site(name, 40) for name in ("n1", "n2", "n3")]
    found = planned(holders, waiter, sites, quotas, overdue=overdue)
    tree = tree_of(holders, [waiter], quotas)
    if isinstance(found, reclaim.Nothing):
        if found.reason == reclaim.HAS_ROOM:
            assert sum(h.requests[0][1] for h in holders if h.node == found.node) + cpu <= 40
        return
    victims = set(uids(found))
    assert victims
    assert tree.shortage("a", waiter.requests, preemptible=True) is None
    stay = [one for one in holders if one.node == found.node and one.uid not in victims]
    free = 40 - sum(one.requests[0][1] for one in stay)
    assert free >= cpu, "it fits"
    figures = {name: tree.figures(name) for name in "abc"}
    displaced = 0
    for victim in found.victims:
        assert victim.node == found.node
        assert victim.preemptible
        assert victim.quota != "a"
        if "cpu" not in reclaim.overdrawn(figures[victim.quota]):
            displaced += victim.requests[0][1]
        assert free - victim.requests[0][1] < cpu, "nobody leaves for nothing"
    after = tree_of([one for one in holders if one.uid not in victims], [waiter], quotas)
    if displaced:
        assert figures["a"].used.get("cpu", 0) + cpu <= figures["a"].scaled_minimum["cpu"]
        over = (one.used["cpu"] - one.limit["cpu"] for one in figures.values() if "cpu" in one.used)
        assert displaced <= sum(max(0, one) for one in over), "they may have that elsewhere"
        for victim in found.victims:
            if "cpu" not in reclaim.overdrawn(figures[victim.quota]):
                kept = after.figures(victim.quota)
                assert kept.used.get("cpu", 0) >= kept.scaled_minimum["cpu"]
    assert after.shortage("a", waiter.requests, preemptible=True) is None
