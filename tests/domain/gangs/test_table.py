"""The table of gangs: who is in which gang, what counts of it, and which groups are complete."""

import itertools
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.gangs import declaration, table
from tests import draws, processor_time

Source, State = declaration.Source, table.State
EMPTY = table.Table()


def gang(name="g", least=2, group=(), source=Source.ANNOTATIONS, namespace="ns"):
    found = declaration.unknown(namespace, name, source)
    listed = tuple(sorted(group)) or found.group
    return msgspec.structs.replace(found, min_member=least, initialised=True, group=listed)


def member(uid, of=None, state=State.WAITING, created=0.0, **rest):
    of = of or gang()
    return table.Member(of, uid, f"{of.namespace}/{uid}", state=state, created=created, **rest)


def filled(*members, start=EMPTY):
    for one in members:
        start = start.with_member(one)
    return start


def ids(found):
    return sorted(group.id for group in found.gathered())


def test_of_several_facts_about_a_pod_the_furthest_counts():
    waits, kept = member("p"), member("p", state=State.NOMINATED, node="n1")
    bound = member("p", state=State.BOUND, node="n1")
    found = filled(waits, kept, bound)
    assert found.get("ns/g").counts == table.Counts(bound=1)
    assert found.get("ns/g").member("p") == bound
    left = found.without_member(bound).without_member(waits)
    assert left.get("ns/g").counts == table.Counts(nominated=1)
    assert left.without_member(kept) == EMPTY


def test_one_more_of_the_same_fact_is_taken_back_as_often():
    found = filled(member("p"), member("p"))
    assert found.get("ns/g").counts.children == 1
    assert found.without_member(member("p")) == filled(member("p"))


def test_what_is_not_known_cannot_be_taken_back():
    with pytest.raises(KeyError):
        filled(member("p")).without_member(member("p", state=State.BOUND))


def test_the_oldest_member_that_declares_a_gang_settles_it():
    blank = declaration.unknown("ns", "g", Source.ANNOTATIONS)
    found = filled(
        member("a", gang(least=3), created=3.0),
        member("b", gang(least=2), created=2.0),
        member("c", blank, created=1.0),
    )
    assert found.get("ns/g").gang.min_member == 2
    found = found.without_member(member("b", gang(least=2), created=2.0))
    assert found.get("ns/g").gang.min_member == 3
    found = found.without_member(member("a", gang(least=3), created=3.0))
    assert not found.get("ns/g").gang.initialised


def test_a_pod_group_settles_its_gang_and_its_members_cannot():
    of = gang(least=1, source=Source.POD_GROUP)
    found = filled(member("a", of), member("b", of))
    assert (found.get("ns/g").gang.initialised, ids(found)) == (False, [])
    found = found.with_pod_group(gang(least=2, source=Source.POD_GROUP))
    assert (found.get("ns/g").gang.min_member, ids(found)) == (2, ["ns/g"])
    found = found.with_pod_group(gang(least=3, source=Source.POD_GROUP))
    assert ids(found) == []
    assert found.without_pod_group("ns/g") == filled(member("b", of), member("a", of))


def test_what_a_pod_group_remembers_counts_as_bound_once():
    of = gang(source=Source.POD_GROUP)
    found = filled(member("a", of)).with_pod_group(of, begun=True)
    assert found.get("ns/g").ever_bound
    assert found.group_of("ns/g").ever_bound
    assert not found.without_pod_group("ns/g").get("ns/g").ever_bound
    assert found.without_pod_group("ns/h") is found


A = gang("a", 1, ("ns/a", "ns/b"))
B = gang("b", 2, ("ns/a", "ns/b"))


def test_a_group_gathers_when_all_of_its_gangs_are_ready():
    found = filled(member("p", A), member("q", B))
    assert ids(found) == []
    assert found.group_of("ns/a").missing == ("ns/b",)
    found = found.with_member(member("r", B))
    assert ids(found) == ["ns/a,ns/b"]
    group = next(found.gathered())
    assert [one.uid for one in group.pending] == ["p", "q", "r"]
    assert group == found.group_of("ns/b")


def test_a_group_without_pending_members_is_not_offered():
    kept = [
        member(uid, of, State.BOUND, node="n") for uid, of in zip("pqr", (A, B, B), strict=True)
    ]
    found = filled(*kept)
    assert ids(found) == []
    assert ids(found.with_member(member("s", A))) == ["ns/a,ns/b"]


def test_a_gang_that_is_listed_and_lists_others_is_waited_for_and_not_placed_with_it():
    alone = gang("b", 2)
    found = filled(member("p", A), member("q", alone))
    assert (ids(found), found.group_of("ns/a").missing) == ([], ("ns/b",))
    found = found.with_member(member("r", alone))
    assert ids(found) == ["ns/b"], "what is kept for the first could not be used"
    group = found.group_of("ns/a")
    assert (group.missing, group.elsewhere) == (("ns/b",), ("ns/b",))
    for uid in "qr":
        found = found.with_member(member(uid, alone, State.ASSUMED, node="n"))
    assert ids(found) == ["ns/a,ns/b"]
    group = found.group_of("ns/a")
    assert (group.missing, [one.uid for one in group.pending]) == ((), ["p"])


def test_gangs_that_list_each_other_in_part_do_not_wait_for_one_another():
    wider = gang("b", 1, ("ns/a", "ns/b", "ns/c"))
    found = filled(member("p", A), member("q", wider), member("r", gang("c", 1)))
    assert ids(found) == ["ns/a,ns/b", "ns/c"]
    assert found.group_of("ns/b").missing == ("ns/c",)


def test_a_gang_of_another_namespace_cannot_join_a_group_that_does_not_list_it():
    evil = gang("x", 100, ("ns/a", "ns/b"), namespace="evil")
    found = filled(member("p", A), member("q", B), member("r", B), member("z", evil))
    assert ids(found) == ["ns/a,ns/b"]
    assert [entry.gang.id for entry in next(found.gathered()).gangs] == ["ns/a", "ns/b"]


def test_a_group_without_gangs_is_none():
    assert EMPTY.group(("ns/a",)) is None
    assert EMPTY.group_of("ns/a") is None


GANGS = [
    gang("a", 1), gang("a", 2, ("ns/a", "ns/b")), gang("b", 1, ("ns/a", "ns/b")),
    gang("b", 1, source=Source.POD_GROUP), gang("c", 0, ("ns/a",)),
    declaration.unknown("ns", "a", Source.ANNOTATIONS),
]  # fmt: skip
FACTS = [
    member(uid, of, state, created, node=node)
    for uid, of, state, created, node in itertools.product(
        ("p", "q", "r"), GANGS, State, (1.0, 2.0), ("", "1")
    )
]
OBJECTS = [gang(name, least, source=Source.POD_GROUP) for name in "ab" for least in (1, 3)]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.integers(0, len(FACTS) - 1)),
        st.tuples(st.just("go"), st.integers(0, 20)),
        st.tuples(st.just("object"), st.integers(0, len(OBJECTS) - 1)),
        st.tuples(st.just("no object"), st.integers(0, 1)),
    ),
    max_size=24,
)


def rebuilt(facts, objects, shuffle):
    facts = list(facts)
    shuffle.shuffle(facts)
    found = EMPTY
    for position, fact in enumerate(facts):
        if position == len(facts) // 2:
            for one, begun in objects.values():
                found = found.with_pod_group(one, begun=begun)
        found = found.with_member(fact)
    for one, begun in objects.values():
        found = found.with_pod_group(one, begun=begun)
    return found


def gathered_by_definition(found):
    """Groups as they are defined, found by looking at all gangs."""
    due = set()
    for entry in found.entries.values():
        listed = declaration.listed(entry.gang)
        others = [found.get(one) for one in listed]
        mates = [o for o in others if o is not None and declaration.listed(o.gang) == listed]
        pending = any(
            one.state in (State.WAITING, State.NOMINATED) for mate in mates for one in mate.members
        )
        if (
            pending
            and all(
                o is not None and o.gang.initialised and len(list(o.members)) >= o.gang.min_member
                for o in others
            )
            and not any(_is_ahead(other, mates) for other in others if other not in mates)
        ):
            due.add(",".join(listed))
    return sorted(due)


def _is_ahead(other, mates):
    """Whether a gang that does not list any of these has not been placed yet."""
    names = {mate.gang.id for mate in mates}
    going = sum(one.state in (State.ASSUMED, State.BOUND) for one in other.members)
    once = other.gang.match_policy is declaration.MatchPolicy.ONCE_SATISFIED and other.ever_bound
    free = names.isdisjoint(declaration.listed(other.gang))
    return free and not once and going < other.gang.min_member


@settings(max_examples=draws.at_least(100))
@given(steps, st.integers(0, 2**32))
def test_a_table_in_step_is_the_table_built_anew_and_the_inverse_leads_back(taken, seed):
    found, facts, objects = EMPTY, [], {}
    for kind, number in taken:
        before = found
        if kind == "come":
            facts.append(FACTS[number])
            found = before.with_member(FACTS[number])
            assert found.without_member(FACTS[number]) == before
        elif kind == "go" and facts:
            gone = facts.pop(number % len(facts))
            found = before.without_member(gone)
            assert found.with_member(gone) == before
        elif kind == "object":
            one = OBJECTS[number]
            kept = objects.get(one.id)
            objects[one.id] = one, bool(number % 2)
            found = before.with_pod_group(one, begun=bool(number % 2))
            if kept is None:
                assert found.without_pod_group(one.id) == before
            else:
                assert found.with_pod_group(kept[0], begun=kept[1]) == before
        elif kind == "no object":
            gone = f"ns/{'ab'[number]}"
            objects.pop(gone, None)
            found = before.without_pod_group(gone)
        assert ids(found) == gathered_by_definition(found)
    assert found == rebuilt(facts, objects, random.Random(seed))
    if not facts and not objects:
        assert found == EMPTY


@pytest.mark.parametrize(("gangs", "size"), [(1, 5_000), (2_000, 2)], ids=["one gang", "many"])
def test_an_event_costs_the_same_in_a_large_table(gangs, size):
    of = [gang(f"g{number}", size) for number in range(gangs)]
    found = EMPTY
    for number in range(gangs * size):
        found = found.with_member(member(f"p{number}", of[number % gangs], created=float(number)))
    with processor_time.below(1.0):
        for number in range(500):
            waits = member(f"p{number}", of[number % gangs], created=float(number))
            kept = msgspec.structs.replace(waits, state=State.NOMINATED)
            found = found.with_member(kept).without_member(kept).without_member(waits)
    assert sum(entry.counts.children for entry in found.entries.values()) == gangs * size - 500
