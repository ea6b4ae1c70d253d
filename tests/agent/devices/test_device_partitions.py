"""Which devices belong together."""

import hypothesis
import pytest
from hypothesis import strategies as st

from agent.devices import device_partitions
from tests import draws

Link = device_partitions.Link
LINKS = st.lists(
    st.builds(
        Link,
        st.integers(0, 15),
        st.lists(st.integers(0, 15), max_size=7).map(lambda found: ",".join(map(str, found))),
        st.sampled_from(["", "HCCS", "PIX"]),
    ),
    max_size=20,
)


def sets(found):
    return {size: [entry["minors"] for entry in entries] for size, entries in found.items()}


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([], {}),
        ([Link(0, "1", "HCCS")], {"2": [[0, 1]]}),
        ([Link(0, "1", "HCCS"), Link(1, "0", "HCCS")], {"2": [[0, 1]]}),
        ([Link(0, " 1 , 2", "HCCS"), Link(3, "2", "PIX")], {"3": [[0, 1, 2]], "2": [[2, 3]]}),
        ([Link(0, "", "HCCS"), Link(0, "1", ""), Link(0, "x", "HCCS")], {}),
        ([Link(0, "1,", "HCCS"), Link(0, "9999999", "HCCS"), Link(0, "-1", "HCCS")], {}),
    ],
    ids=["none", "one", "both ends", "two sizes", "parts missing", "no indices"],
)
def test_partitions(links, expected):
    assert sets(device_partitions.partitions(links)) == expected


def test_the_text_is_empty_without_any():
    assert device_partitions.text([]) == ""
    assert device_partitions.text([Link(1, "0", "HCCS")]) == (
        '{"2":[{"minors":[0,1],"gpuLinkType":"HCCS","allocationScore":1}]}'
    )


@hypothesis.settings(max_examples=draws.at_least(30), deadline=None)
@hypothesis.given(LINKS)
def test_every_set_stands_once_below_its_size(links):
    found = device_partitions.partitions(links)
    listed = [tuple(entry["minors"]) for entries in found.values() for entry in entries]
    assert len(listed) == len(set(listed))
    for size, entries in found.items():
        assert all(len(entry["minors"]) == int(size) for entry in entries)
    wanted = {
        tuple(sorted({one.minor, *map(int, one.peers.split(","))}))
        for one in links
        if one.peers and one.type
    }
    assert set(listed) == wanted


@hypothesis.settings(max_examples=draws.at_least(15), deadline=None)
@hypothesis.given(LINKS, st.randoms(use_true_random=False))
def test_the_order_of_the_links_does_not_matter(links, random):
    links = [one for one in links if one.type != "PIX"]
    mixed = list(links)
    random.shuffle(mixed)
    assert device_partitions.text(mixed) == device_partitions.text(links)
