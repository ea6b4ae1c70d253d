"""No pod goes from a node to where others have come from lately."""

from descheduler.framework.planning import history
from descheduler.gain import exchanges
from tests.descheduler import builders

NOW, HOUR = builders.NOW, 3600.0


def moved(source, target, ago=600.0):
    return history.Moved(NOW - ago, "default", source, target=target)


def test_nodes_that_pods_have_left_for_a_node_are_no_targets_from_there():
    found = exchanges.Exchanges([moved("a", "b"), moved("c", "b")], NOW, HOUR)
    assert found.sources_of("b") == {"a", "c"}
    assert found.sources_of("a") == frozenset()
    found.add("b", "a")
    assert found.sources_of("a") == {"b"}


def test_what_is_long_ago_or_not_known_does_not_count():
    found = exchanges.Exchanges([moved("a", "b", HOUR), moved("", "b"), moved("a", "")], NOW, HOUR)
    assert found.sources_of("b") == frozenset()
    assert found.sources_of("") == frozenset()
