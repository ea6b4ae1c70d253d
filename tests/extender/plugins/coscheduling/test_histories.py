"""Random histories of members, PodGroups and plans: a state that was kept equals one made anew."""

import hypothesis
from hypothesis import strategies as st

from extender.state import deltas
from tests.domain.topology import networks
from tests.extender.clusters import gang_cluster

NAMES = ("a", "b", "c", "d", "e")
STEPS = st.tuples(
    st.sampled_from(["waits", "bound", "leaves", "gone", "group", "no group", "plan", "give up",
                     "arrive", "forget", "leave the gang", "has a selector", "network"]),
    st.sampled_from(NAMES),
    st.sampled_from(["one", "two"]),
)  # fmt: skip


class History:
    """A cluster that follows steps, whatever sense they make."""

    def __init__(self):
        self.cluster = gang_cluster.GangCluster()
        self.cluster.nodes("n1", "n2")
        self.changes = []
        self.before = self.cluster.value
        self.cluster.state.followers.append(self.changes.append)

    def do(self, step, name, gang):
        known = self.cluster.pods.get(f"team/{name}")
        self.watch(step, name, gang, known)
        if known is not None and not known.node and known.requirements.is_member:
            self.decide(step, known)

    def watch(self, step, name, gang, known):
        here = self.cluster
        both = {"groups": '["team/one","team/two"]'} if name in "ab" else {}
        if step == "waits" and (known is None or not known.node):
            here.pod(name, gang, least=2, **both)
        if step == "leave the gang" and known is not None and not known.node:
            here.pod(name)
        if step == "bound" and known is not None:
            here.pod(name, gang, node=known.node or "n1", least=2, **both)
        if step == "leaves" and known is not None and known.node:
            here.pod(name, gang, node=known.node, least=2, leaves=True, **both)
        if step == "gone" and known is not None:
            here.gone(known)
        if step == "has a selector" and known is not None:
            here.pod(name, node=known.node, selector=gang)
        if step == "network":
            here.layers(networks.LAYERS if gang == "one" else None)
        if step == "group":
            here.pod_group(gang, 2)
        if step == "no group" and (told := here.state.told(deltas.POD_GROUP, f"team/{gang}")):
            here.no_pod_group(told.after)

    def decide(self, step, known):
        here = self.cluster
        if step == "plan":
            here.plan((known, "n2"))
        if step == "give up" and (plan := here.value.plan(here.group_of(known))):
            here.give_up(plan.plan)
        if step == "arrive" and isinstance(found := here.passing(known), list):
            here.reserve(known, found[0])
        if step == "forget":
            here.books.forget(known.uid)


@hypothesis.given(st.lists(STEPS, max_size=30))
def test_a_kept_state_equals_one_made_anew_and_undoing_leads_back(steps):
    history = History()
    for step in steps:
        history.do(*step)
    cluster = history.cluster
    assert cluster.problems() == []
    assert cluster.rebuilt() == cluster.value
    value = cluster.value
    for delta in reversed(history.changes):
        value = cluster.plugin.cluster(value, deltas.inverse(delta))
    assert value == history.before
