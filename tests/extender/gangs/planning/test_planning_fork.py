"""The fork on which gangs are planned one after another is what the state is, whatever happened."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.framework import pipeline, views
from extender.gangs import in_force
from extender.gangs.planning import planner, planning_fork
from extender.state import deltas
from tests.extender.conftest import NOW
from tests.extender.gangs.stage import gang_cluster


@pytest.fixture
def cluster():
    found = gang_cluster.GangCluster()
    found.nodes(3, cpu="8")
    return found


def planned(cluster, fork, members, needed=None):
    for _ in fork.catch_up(NOW):
        pass
    options = planner.Options(needed or {members[0].gang: len(members)})
    made = fork.planner(cluster.pipeline, members, options, NOW)
    for _ in made.steps():
        pass
    return made.result


def shown(cluster):
    """What a fork shows that is made anew, or one that was kept in step."""

    def of(fork):
        for _ in fork.catch_up(NOW):
            pass
        found = {}
        for name, content in fork.fork.fingerprint().items():
            if not name:
                objects = {key: one.after for key, one in content[1].items()}
                found[name] = objects
                continue
            node, report, claims, objects, _, figures = content
            plain = {
                ident: msgspec.structs.replace(
                    one, pod=planning_fork._plain(one.pod), kind=one.kind in KINDS, expires_at=0.0,
                    evidence="",
                )
                for ident, one in claims.items()
            }  # fmt: skip
            found[name] = node, report, plain, objects, figures
        return found

    return of


KINDS = frozenset(views.FIRM)


def same(cluster, fork):
    of, fresh = shown(cluster), planning_fork.PlanningFork(cluster.cluster)
    found, wanted = of(fork), of(fresh)
    fresh.close()
    assert found == wanted


def test_gangs_are_planned_one_after_another_on_one_fork(cluster):
    fork = planning_fork.PlanningFork(cluster.cluster)
    first, second, third = (cluster.gang(name, 3) for name in "abc")
    plan = planned(cluster, fork, first)
    kept = fork.fork
    cluster.hold(plan)
    other = planned(cluster, fork, second)
    cluster.hold(other)
    assert isinstance(planned(cluster, fork, third), planner.Refused)
    assert fork.fork is kept
    every = gang_cluster.nodes_of(plan), gang_cluster.nodes_of(other)
    assert all(sum(one.get(f"n{n}", 0) for one in every) == 2 for n in range(3))
    same(cluster, fork)


def test_a_plan_that_is_refused_or_not_kept_leaves_no_trace(cluster):
    fork = planning_fork.PlanningFork(cluster.cluster)
    large, small = cluster.gang("large", 7), cluster.gang("small", 6)
    assert isinstance(planned(cluster, fork, large), planner.Refused)
    same(cluster, fork)
    for _ in range(2):
        assert isinstance(planned(cluster, fork, small), planner.Plan)
    same(cluster, fork)


def test_members_of_different_gangs_that_are_alike_are_judged_once(cluster):
    asked = []

    class Counting(pipeline.Pipeline):
        """A pipeline that notes about how many nodes it is asked."""

        def filter(self, cycle, view, rows, now):
            asked.append(rows.size)
            return super().filter(cycle, view, rows, now)

    cluster.pipeline = Counting(
        **{
            one.name: getattr(cluster.pipeline, one.name)
            for one in dataclasses.fields(Counting)
            if one.init
        }
    )
    fork = planning_fork.PlanningFork(cluster.cluster)
    for name in "ab":
        cluster.hold(planned(cluster, fork, cluster.gang(name, 2)))
    assert [size for size in asked if size > 1] == [3]


def test_what_an_earlier_plan_keeps_for_the_members_is_free_for_them_and_for_no_others(cluster):
    fork = planning_fork.PlanningFork(cluster.cluster)
    members, others = cluster.gang("a", 6), cluster.gang("b", 1)
    cluster.hold(planned(cluster, fork, members))
    assert isinstance(planned(cluster, fork, others), planner.Refused)
    assert isinstance(planned(cluster, fork, members), planner.Plan)
    assert isinstance(planned(cluster, fork, others), planner.Refused)


def test_capacity_that_is_freed_is_found_where_members_alike_were_refused_before(cluster):
    fork = planning_fork.PlanningFork(cluster.cluster)
    first, second = cluster.gang("a", 6), cluster.gang("b", 6)
    plan = planned(cluster, fork, first)
    cluster.hold(plan)
    for one in plan.placements:
        cluster.books.withdraw(one.pod.uid)
    assert isinstance(planned(cluster, fork, second), planner.Plan)
    cluster.nodes(1, first=3)
    assert isinstance(planned(cluster, fork, cluster.gang("c", 8)), planner.Plan)


def test_members_alike_are_placed_by_what_changed_before_plans_of_others(cluster):
    fork = planning_fork.PlanningFork(cluster.cluster)
    plan = planned(cluster, fork, cluster.gang("a", 3, cpu="2"))
    cluster.hold(plan)
    gone = next(one for one in plan.placements if one.node == "n2")
    cluster.books.withdraw(gone.pod.uid)
    cluster.hold(planned(cluster, fork, cluster.gang("other", 1, cpu="1")))
    assert gang_cluster.nodes_of(planned(cluster, fork, cluster.gang("b", 1, cpu="2"))) == {"n2": 1}


def test_what_came_and_went_between_two_plans_is_not_looked_for(cluster):
    fork = planning_fork.PlanningFork(cluster.cluster)
    planned(cluster, fork, cluster.gang("a", 1))
    cluster.nodes(1, first=8)
    node = cluster.cluster.node("n8")
    cluster.books.node(node, None)
    assert isinstance(planned(cluster, fork, cluster.gang("b", 1)), planner.Plan)
    same(cluster, fork)


def test_it_is_closed_when_it_is_not_used_and_made_anew(cluster):
    fork = planning_fork.PlanningFork(cluster.cluster)
    planned(cluster, fork, cluster.gang("a", 1))
    fork.close_idle(NOW + 4.0, 5.0)
    assert len(cluster.cluster.followers) == 1
    fork.close_idle(NOW + 5.0, 5.0)
    assert not cluster.cluster.followers
    cluster.nodes(1, first=7)
    same(cluster, fork)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("plan", "keep", "bind", "withdraw", "node", "no node", "delete")),
        st.integers(0, 9),
    ),
    max_size=12,
)


@given(STEPS)
def test_after_any_history_it_is_what_a_new_one_is(steps):
    cluster = gang_cluster.GangCluster()
    cluster.nodes(3, cpu="8")
    fork, gangs = planning_fork.PlanningFork(cluster.cluster), []
    for kind, number in steps:
        step(cluster, fork, gangs, kind, number)
    same(cluster, fork)


def step(cluster, fork, gangs, kind, number):
    members = gangs[number % len(gangs)] if gangs else ()
    match kind:
        case "plan" | "keep":
            gangs.append(cluster.gang(f"g{len(gangs)}", number % 4 + 1))
            found = planned(cluster, fork, gangs[-1])
            if kind == "keep" and isinstance(found, planner.Plan):
                cluster.hold(found)
        case "bind":
            for member in members:
                claim = cluster.books.nominations.get(member.pod.uid)
                if claim is not None:
                    cluster.books.assume(member.pod, claim.node, NOW, 0.0, claim.allocations)
        case "withdraw":
            for member in members:
                cluster.books.withdraw(member.pod.uid)
        case "node" | "no node":
            change_node(cluster, f"n{number % 5}", "no" in kind.split(), str(number + 1))
        case _:
            for member in members[:1]:
                cluster.books.pod(member.pod, None, NOW)


def ended(making):
    """What a generator returns."""

    def run():
        found.append((yield from making))

    found = []
    list(run())
    return found[0]


def change_node(cluster, name, goes, cpu):
    if not goes:
        cluster.nodes(1, first=int(name[1:]), cpu=cpu)
    elif (known := cluster.cluster.node(name)) is not None:
        cluster.books.node(known, None)


def test_a_fork_that_is_made_in_steps_starts_from_the_state_at_its_end(cluster):
    state = cluster.cluster
    cluster.pod("old", node="n0")
    making = state.forking(1)
    next(making)
    cluster.pod("new", node="n0")
    cluster.nodes(1, first=5)
    state.view()
    next(making)
    cluster.pod("last", node="n5")
    fork, wanted = ended(making), state.fingerprint()
    assert fork.fingerprint() == wanted
    cluster.pod("later", node="n1")
    assert fork.fingerprint() == wanted


def test_a_claim_that_moves_while_a_fork_is_made_is_on_one_node_of_it(cluster):
    state = cluster.cluster
    uids = [cluster.pod(f"p{number}", node=f"n{number}").uid for number in range(3)]
    making = state.forking(1)
    next(making)
    next(making)
    present = state.claim(uids[2])
    moved = msgspec.structs.replace(
        present, node="n0", pod=msgspec.structs.replace(present.pod, node="n0")
    )
    state.apply(deltas.ClaimDelta(uids[2], present, moved))
    state.apply(deltas.ClaimDelta(uids[1], state.claim(uids[1]), None))
    fork, wanted = ended(making), state.fingerprint()
    assert fork.fingerprint() == wanted
    assert dict(fork.all_claims()) == dict(state.all_claims())
    assert set(fork.all_claims()) == {uids[0], uids[2]}


def test_a_fork_keeps_nothing_for_plug_ins_that_are_left_out(cluster):
    whole = planning_fork.PlanningFork(cluster.cluster)
    fork = planning_fork.PlanningFork(cluster.cluster, frozenset({in_force.PLUGIN}))
    for name in "ab":
        wanted = cluster.gang(name, 2)
        plan = planned(cluster, whole, wanted)
        assert planned(cluster, fork, wanted) == plan
        kept = fork.fork
        cluster.hold(plan)
    assert fork.fork is kept
    trackers = [{one.name for one in each.fork.view().trackers} for each in (whole, fork)]
    assert trackers[0] - trackers[1] == {in_force.PLUGIN}
    assert in_force.PLUGIN not in fork.fork.view().cluster
    assert in_force.PLUGIN in cluster.cluster.view().cluster
