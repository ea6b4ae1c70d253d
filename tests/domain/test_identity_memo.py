"""What follows from objects is worked out once for each of them."""

from domain import identity_memo


def test_equal_objects_that_are_others_are_looked_at_themselves():
    asked = []

    def total(values):
        asked.append(values)
        return sum(values)

    memo = identity_memo.IdentityMemo(total, most=2)
    first, alike, third = [1, 2], [1, 2], [3]
    assert [memo.get(one) for one in (first, first, alike, alike)] == [3, 3, 3, 3]
    assert [one is two for one, two in zip(asked, (first, alike), strict=True)] == [True, True]
    assert memo.get(third) == 3, "the others are forgotten"
    assert memo.get(first) == 3
    assert len(asked) == 4


def test_objects_are_kept_so_that_no_other_takes_their_identity():
    memo = identity_memo.IdentityMemo(lambda values: values[0], most=1000)
    assert [memo.get([number]) for number in range(500)] == list(range(500))
