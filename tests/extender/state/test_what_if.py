"""A what-if of some nodes shows them as they are given, and of the cluster all of it."""

from extender.state import records
from tests.extender.clusters import slots_cluster
from tests.extender.sample_plugin import tracker

NAME = tracker.Tracker.name


def test_the_value_of_the_cluster_is_that_of_all_nodes():
    cluster = slots_cluster.SlotsCluster()
    cluster.node("n1", 4)
    cluster.node("n2", 4)
    cluster.hold("a", 2, node="n1", team="red", numbers="0,1")
    cluster.hold("b", 1, node="n2", team="red", numbers="0")
    before = cluster.state.fingerprint()
    node = cluster.state.node("n2")
    other = cluster.state.what_if([node, records.NodeRecord("new", (), ())]).view()
    assert set(other.rows) == {"n2", "new"}
    assert other.cluster[NAME].by_team == {"red": 3}
    assert cluster.state.fingerprint() == before
