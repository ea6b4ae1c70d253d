"""What the live switches say, and that what makes no sense changes nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.model import live_switches
from tests import draws

NAMES = ("cpu-suppress", "cpu-burst", "memory-evict")
OFF, OBSERVE, ENFORCE = (
    live_switches.Mode.OFF,
    live_switches.Mode.OBSERVE,
    live_switches.Mode.ENFORCE,
)
NOTHING = live_switches.Live()


def read(data, before=NOTHING):
    return live_switches.read(data, before, NAMES)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(None, live_switches.Here(), id="no map"),
        pytest.param({"webhook": "off"}, live_switches.Here(), id="another process"),
        pytest.param({"agent": "off"}, live_switches.Here(agent=OFF), id="everything"),
        pytest.param({"agent": " Off\n"}, live_switches.Here(agent=OFF), id="as a file has it"),
        pytest.param({"agent": "observe"}, live_switches.Here(agent=OBSERVE), id="observe"),
        pytest.param(
            {"agent.evictions": "off"}, live_switches.Here(evictions=OFF), id="evictions only"
        ),
        pytest.param(
            {"agent.cpu-burst": "enforce"},
            live_switches.Here(strategies={"cpu-burst": ENFORCE}),
            id="one strategy",
        ),
        pytest.param(
            {"agent.namespaces.observe": "a, b", "agent.namespaces.off": "b"},
            live_switches.Here(namespaces={"a": OBSERVE, "b": OFF}),
            id="namespaces, and off beats observe",
        ),
        pytest.param(
            {"agent.classes.off": "LS LSR"},
            live_switches.Here(classes={"LS": OFF, "LSR": OFF}),
            id="classes",
        ),
    ],
)
def test_the_words_of_the_map_count(data, expected):
    live = read(data)
    assert live.of_node({}) == expected
    assert live.problems == ()


@pytest.mark.parametrize(
    ("text", "labels", "off"),
    [
        pytest.param("pool=gpu", {"pool": "gpu"}, True, id="the label"),
        pytest.param("pool=gpu", {"pool": "cpu"}, False, id="another value"),
        pytest.param("pool", {"pool": "any"}, True, id="any value"),
        pytest.param("pool=", {"pool": ""}, True, id="an empty value"),
        pytest.param("pool=gpu,zone=a", {"pool": "gpu"}, False, id="all of a line"),
        pytest.param("zone=b\nzone=a\n", {"zone": "a"}, True, id="any line"),
        pytest.param("", {}, False, id="nothing"),
    ],
)
def test_nodes_are_told_by_their_labels(text, labels, off):
    here = read({"agent.nodes.off": text}).of_node(labels)
    assert (here.agent is OFF) is off
    assert here.key == ("agent.nodes.off" if off else "agent")


def test_the_switch_for_all_nodes_is_not_loosened_by_one_for_some():
    live = read({"agent": "off", "agent.nodes.observe": "pool=gpu"})
    assert live.of_node({"pool": "gpu"}) == live_switches.Here(agent=OFF)


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        ("agent", "offf", "write enforce, observe, off"),
        ("agent.evictons", "off", "there is no such switch"),
        ("agent.cpu-burst.off", "a", "there is no such switch"),
        ("agent.namespaces", "a", "write agent.namespaces.off or"),
        ("agent.namespaces.enforce", "a", "write agent.namespaces.off or"),
        ("agent.namespaces.off", "A_b", "no name of a namespace"),
        ("agent.classes.off", "LSX", "none of BE, LS"),
        ("agent.nodes.off", "=x", "no label"),
    ],
)
def test_what_makes_no_sense_is_named_and_changes_nothing(key, text, named):
    before = read({"agent": "observe", "agent.evictions": "off"})
    live = read({"agent": "observe", "agent.evictions": "off", key: text}, before)
    assert live.everywhere == before.everywhere
    (problem,) = live.problems
    assert problem.startswith(key)
    assert named in problem
    assert read({"agent": "observe", "agent.evictions": "off"}, live).problems == ()


def test_a_key_that_goes_is_normal_again():
    assert read({}, read({"agent": "off"})).everywhere == live_switches.Here()


@settings(max_examples=draws.at_least(20))
@given(st.sampled_from(live_switches.Mode), st.sampled_from(live_switches.Mode))
def test_the_lesser_of_two_modes(one, other):
    found = live_switches.least(one, other)
    assert found is live_switches.least(other, one)
    assert found in (one, other)
    assert OFF not in (one, other) or found is OFF
    assert {one, other} != {OBSERVE, ENFORCE} or found is OBSERVE


@settings(max_examples=draws.at_least(40))
@given(st.dictionaries(st.text(max_size=30).map(lambda t: f"agent.{t}"), st.text(max_size=30)))
def test_no_text_breaks_it(data):
    live = read(data)
    assert set(live.accepted) <= set(data)
    assert len(live.accepted) + len(live.problems) == len(data)
