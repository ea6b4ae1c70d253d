"""Who gives way when places or memory run out: whoever has most, named callers last."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from process.limits import places

BLOCKS = tuple(map(places.network, ("10.0.0.0/24", "fd00:1::/64")))


@dataclasses.dataclass(eq=False)
class Guest:
    """A connection."""

    source: places.Source
    held: int = 0
    handling: bool = False


def of(address: str) -> places.Source:
    return places.source(address, BLOCKS)


@pytest.mark.parametrize(
    ("address", "name", "named"),
    [
        ("10.0.0.7", "10.0.0.7", True),
        ("10.0.1.7", "10.0.1.7", False),
        ("::ffff:10.0.0.7", "10.0.0.7", True),
        ("::ffff:10.9.0.7", "10.9.0.7", False),
        ("fd00:1::8", "fd00:1::/64", True),
        ("fd00:2:0:3::8", "fd00:2:0:3::/64", False),
        ("fd00:2:0:3:ffff::1", "fd00:2:0:3::/64", False),
        ("fe80::1%eth0", "fe80::/64", False),
        ("", "", False),
    ],
)
def test_sources(address: str, name: str, named: bool) -> None:
    assert of(address) == places.Source(name, named)


@pytest.mark.parametrize("text", ["10.0.0.0/33", "ten", "", "10.0.0.1/-1"])
def test_what_is_no_address_block(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear to be|not permitted"):
        places.network(text)


@pytest.mark.parametrize(
    ("there", "newcomer", "loser"),
    [
        pytest.param(["1.1.1.1"] * 3 + ["2.2.2.2"], "3.3.3.3", "1.1.1.1", id="who has most"),
        pytest.param(["1.1.1.1"] * 3 + ["2.2.2.2"], "1.1.1.1", "1.1.1.1", id="own"),
        pytest.param(["1.1.1.1"] * 2 + ["2.2.2.2"] * 2, "2.2.2.2", "2.2.2.2", id="as many: own"),
        pytest.param(["10.0.0.1"] * 3 + ["2.2.2.2"], "10.0.0.2", "2.2.2.2", id="not named first"),
        pytest.param(["10.0.0.1"] * 3 + ["2.2.2.2"], "3.3.3.3", "2.2.2.2", id="never the named"),
        pytest.param(["10.0.0.1"] * 4, "3.3.3.3", "", id="nobody for a stranger"),
        pytest.param(["10.0.0.1"] * 3 + ["10.0.0.2"], "10.0.0.2", "10.0.0.1", id="among the named"),
    ],
)
def test_who_gives_way(there: list[str], newcomer: str, loser: str) -> None:
    book: places.Places[Guest] = places.Places(len(there), 100)
    for address in there:
        book.add(Guest(of(address)))
    assert book.lacks(of(newcomer))
    found = book.gives_way(of(newcomer))
    assert (found.source.name if found else "") == loser


def test_the_longest_silent_one_that_does_not_wait_gives_way() -> None:
    book: places.Places[Guest] = places.Places(4, 4)
    first, second, third, last = guests = [Guest(of("1.1.1.1")) for _ in range(4)]
    for guest in guests:
        book.add(guest)
    second.handling = True
    book.touch(first)
    assert book.gives_way(of("2.2.2.2")) is third
    book.drop(third)
    assert book.gives_way(of("2.2.2.2")) is last
    book.drop(last)
    book.drop(last)
    assert list(book) == [second, first]
    first.handling = True
    assert book.gives_way(of("2.2.2.2")) is None


def test_an_address_that_has_its_share_takes_from_its_own() -> None:
    book: places.Places[Guest] = places.Places(100, 2)
    for address in ("1.1.1.1", "2.2.2.2", "2.2.2.2", "10.0.0.1", "10.0.0.1"):
        book.add(Guest(of(address)))
    assert not book.lacks(of("1.1.1.1"))
    assert not book.lacks(of("10.0.0.1"))
    assert book.lacks(of("2.2.2.2"))
    loser = book.gives_way(of("2.2.2.2"))
    assert loser is not None
    assert loser.source == of("2.2.2.2")


def test_memory_is_taken_from_whoever_holds_most() -> None:
    book: places.Places[Guest] = places.Places(10, 10)
    sizes = {"1.1.1.1": [5, 1], "2.2.2.2": [4, 3], "10.0.0.1": [90, 90]}
    for address, held in sizes.items():
        for size in held:
            guest = Guest(of(address))
            book.add(guest)
            book.hold(guest, size)
    assert book.held == 193
    order = []
    while (guest := book.heaviest()) is not None:
        order.append((guest.source.name, guest.held))
        book.drop(guest)
    assert order == [
        *(("2.2.2.2", 4), ("1.1.1.1", 5), ("2.2.2.2", 3), ("1.1.1.1", 1)),
        *(("10.0.0.1", 90), ("10.0.0.1", 90)),
    ]
    assert book.held == 0


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=30, max_size=200),
    victim=st.integers(1, 8),
)
def test_one_attacker_never_costs_somebody_else_a_place(
    arrivals: list[tuple[int, bool]], victim: int
) -> None:
    """Somebody with less than half of the places keeps all of them, whoever dials how often."""
    book: places.Places[Guest] = places.Places(20, 20)
    mine = [Guest(of("9.9.9.9")) for _ in range(victim)]
    for guest in mine:
        book.add(guest)
    for _count, busy in arrivals:
        source = of("6.6.6.6")
        if book.lacks(source):
            loser = book.gives_way(source)
            if loser is None:
                continue
            assert loser not in mine
            book.drop(loser)
        attacker = Guest(source, handling=busy)
        book.add(attacker)
        assert len(book) <= 20
    if book.lacks(mine[0].source):
        loser = book.gives_way(mine[0].source)
        assert loser is None or loser not in mine or all(g.handling for g in book if g not in mine)
