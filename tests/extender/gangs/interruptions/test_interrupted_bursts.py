"""Which members belong together, by the records on those that are bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gangs import plan_record
from extender.gangs import interrupted_bursts
from extender.state import gang_facts, records

UNTIL = 1000.0


def noted(generation, members, uid, *, completes="", count=None):
    return plan_record.Record(
        "team/a",
        generation,
        "n1",
        UNTIL,
        completes=completes,
        members=plan_record.others(plan_record.digests(members), uid),
        count=len(members) if count is None else count,
    )


def pod(uid, node="", record=None, created=0.0):
    text = plan_record.encode(record) if record is not None else ""
    facts = gang_facts.GangFacts(text, created_at=created) if text or not node else None
    return records.PodRecord(f"team/{uid}", uid, node, None, gang=facts)


def bound(uids, generation, members, **more):
    return [pod(uid, "n1", noted(generation, members, uid, **more)) for uid in uids]


def waiting(uids, **more):
    return [pod(uid, **more) for uid in uids]


def found(members):
    return [
        (sorted(one.bound), [p.uid for p in members if not p.node and one.waits_for(p)],
         one.lost(members))
        for one in interrupted_bursts.bursts(members)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param(
            bound("ab", "g1", "abcd") + waiting("cd"), [(["a", "b"], ["c", "d"], 0)], id="listed"
        ),
        pytest.param(
            bound("ab", "g1", "abcd") + waiting("cde"),
            [(["a", "b"], ["c", "d"], 0)],
            id="not those that came too late for the plan",
        ),
        pytest.param(
            bound("ab", "g1", "abcd") + waiting("e"), [(["a", "b"], [], 2)], id="replaced members"
        ),
        pytest.param(
            bound("abc", "g1", "abcdef") + bound("d", "g2", "abcdef") + waiting("ef"),
            [(["a", "b", "c", "d"], ["e", "f"], 0)],
            id="another scheduler took over in the middle",
        ),
        pytest.param(
            bound("a", "g1", "abc") + bound("b", "g2", "bc", completes="g1") + waiting("c"),
            [(["a", "b"], ["c"], 0)],
            id="a plan that completes another one",
        ),
        pytest.param(
            bound("ab", "g1", "abcd") + bound("e", "g2", "ef") + waiting("f"),
            [(["a", "b"], [], 2), (["e"], ["f"], 0)],
            id="a plan for what others have lost",
        ),
        pytest.param(
            [*bound("a", "g1", "abcd"), pod("b", "n2"), *waiting("cd")],
            [(["a", "b"], ["c", "d"], 0)],
            id="placed as a pod of its own",
        ),
        pytest.param(
            bound("ab", "g1", "", count=4) + waiting("cd"),
            [(["a", "b"], [], 0)],
            id="records that list nobody",
        ),
        pytest.param(
            bound("ab", "g1", "", count=4)
            + waiting("c", record=noted("g1", "", "c"))
            + waiting("d", created=UNTIL + 1.0),
            [(["a", "b"], ["c"], 1)],
            id="records that list nobody, and one that was created later",
        ),
        pytest.param([pod("a", "n1"), *waiting("b")], [], id="no record"),
    ],
)
def test_members_belong_together_by_what_was_bound(members, expected):
    assert found(members) == expected


@given(st.sets(st.integers(0, 10_000), min_size=2, max_size=80), st.data())
def test_of_members_that_are_bound_in_part_a_record_lists_one_that_is_not(numbers, data):
    uids = [f"uid-{number}" for number in sorted(numbers)]
    some = data.draw(st.lists(st.sampled_from(uids), unique=True, max_size=len(uids) - 1))
    some = some or uids[:1]
    members = plan_record.digests(uids)
    listed = {digest for uid in some for digest in plan_record.others(members, uid)}
    assert not listed.isdisjoint({*members} - set(map(plan_record.digest, some)))


@pytest.mark.parametrize("count", [1, 2, 32, 33, 512])
def test_no_record_lists_more_than_readers_take(count):
    uids = [f"uid-{number}" for number in range(count)]
    members = plan_record.digests(uids)
    listed = [plan_record.others(members, uid) for uid in uids]
    each = count - 1 if count <= plan_record.MOST_LISTED else 16
    assert {len(one) for one in listed} == {each}
    assert all(plan_record.digest(uid) not in one for uid, one in zip(uids, listed, strict=True))
