"""What holds of quotas in any order of events, on any trees, also broken ones."""

import dataclasses

import msgspec
import pytest
from hypothesis import settings, stateful
from hypothesis import strategies as st

from api import names
from domain.quota import model
from domain.quota.tree import forest as forests
from tests.domain.quota import oracle
from tests.domain.quota.forests import a_quota

KEYS = ("cpu", "memory", "pods")
NAMES = ("a", "b", "c", "d", "e", "f")
NAMESPACES = ("a", "n1", "n2")
PARENTS = (names.ROOT_QUOTA, names.ROOT_QUOTA, "a", "b", "c", "missing")
HUGE = 1 << 70

amounts = st.one_of(st.integers(0, 40), st.integers(0, 40), st.sampled_from((-7, 10**15, HUGE)))
lists = st.dictionaries(st.sampled_from(KEYS), amounts, max_size=3)
bounds = st.fixed_dictionaries({"cpu": amounts}, optional={"memory": amounts, "pods": amounts})


@st.composite
def quotas(draw):
    """Return a quota that may have any parent, tree and figures, or a name that is taken."""
    name = draw(st.sampled_from(NAMES))
    maximum = draw(bounds)
    root = draw(st.integers(0, 5)) == 0
    return a_quota(
        name,
        draw(lists),
        maximum,
        namespace=draw(st.sampled_from(("q1", "q1", "q1", "q2", name))),
        parent=draw(st.sampled_from(PARENTS)),
        hard=draw(st.one_of(st.just({}), lists)),
        weight=draw(st.one_of(st.just({}), lists)),
        lends=draw(st.booleans()),
        priority=draw(st.sampled_from((0, 0, 5))),
        tree=draw(st.sampled_from(("", "", "", "t"))),
        is_root=root,
        total=draw(lists) if root else {},
        ignores_default_tree=draw(st.booleans()),
        namespaces=tuple(draw(st.lists(st.sampled_from(NAMESPACES), max_size=2))),
        borrowed=draw(lists),
        borrowed_at=float(draw(st.integers(0, 100))),
        created_at=float(draw(st.integers(0, 2))),
    )


rules = st.builds(
    model.Rules,
    scale_min=st.sampled_from((True, True, False)),
    guarantee=st.sampled_from((False, False, True)),
    multi_tree=st.sampled_from((True, True, False)),
    half_life=st.sampled_from((0.0, 50.0)),
    default_quota=st.sampled_from((True, True, False)),
    default_max=st.just({"cpu": 1000, "memory": 1000}),
)


@st.composite
def pods(draw, uid):
    """Return a pod of any quota or none."""
    label = draw(st.sampled_from((*NAMES, "", "", "nothing", names.SYSTEM_QUOTA)))
    requests = draw(st.dictionaries(st.sampled_from(("cpu", "memory")), st.integers(1, 30)))
    return model.PodUse(
        uid,
        label,
        draw(st.sampled_from(NAMESPACES)),
        tuple(sorted(requests.items())),
        draw(st.booleans()),
        draw(st.sampled_from((True, True, False))),
    )


class Events(stateful.RuleBasedStateMachine):
    """A forest that lives through events, beside lists of what there is."""

    def __init__(self):
        super().__init__()
        self.rules = model.Rules()
        self.quotas = {}
        self.pods = {}
        self.nodes = []
        self.forest = forests.Forest.empty(self.rules)
        self.seen = self.forest

    @stateful.rule(rules=rules)
    def other_rules(self, rules):
        self.rules = rules
        self.forest = self.forest.with_rules(rules)

    @stateful.rule(one=quotas())
    def quota_comes_or_changes(self, one):
        before = self.quotas.get(one.identity)
        self.quotas[one.identity] = one
        self.turn(self.forest.with_quota(before, one), lambda now: now.with_quota(one, before))

    @stateful.precondition(lambda self: self.quotas)
    @stateful.rule(data=st.data())
    def quota_goes(self, data):
        gone = self.quotas.pop(data.draw(st.sampled_from(sorted(self.quotas))))
        self.turn(self.forest.with_quota(gone, None), lambda now: now.with_quota(None, gone))

    @stateful.precondition(lambda self: self.quotas)
    @stateful.rule(data=st.data(), parent=st.sampled_from(PARENTS))
    def quota_moves(self, data, parent):
        before = self.quotas[data.draw(st.sampled_from(sorted(self.quotas)))]
        self.quota_becomes(before, parent=parent)

    @stateful.precondition(lambda self: self.quotas)
    @stateful.rule(data=st.data(), one=quotas())
    def quota_gets_other_figures(self, data, one):
        before = self.quotas[data.draw(st.sampled_from(sorted(self.quotas)))]
        kept = {key: one.maximum.get(key, 9) for key in before.maximum}
        fields = ("minimum", "weight", "lends", "priority", "borrowed", "borrowed_at", "used")
        self.quota_becomes(before, maximum=kept, **{name: getattr(one, name) for name in fields})

    def quota_becomes(self, before, **changes):
        after = msgspec.structs.replace(before, **changes)
        self.quotas[after.identity] = after
        self.turn(self.forest.with_quota(before, after), lambda now: now.with_quota(after, before))

    @stateful.rule(data=st.data(), uid=st.sampled_from([f"p{n}" for n in range(9)]))
    def pod_comes_or_changes(self, data, uid):
        before, after = self.pods.get(uid), data.draw(pods(uid))
        self.pods[uid] = after
        self.turn(self.forest.with_pod(before, after), lambda now: now.with_pod(after, before))

    @stateful.precondition(lambda self: self.pods)
    @stateful.rule(data=st.data())
    def pod_goes(self, data):
        gone = self.pods.pop(data.draw(st.sampled_from(sorted(self.pods))))
        self.turn(self.forest.with_pod(gone, None), lambda now: now.with_pod(None, gone))

    @stateful.rule(cpu=st.integers(1, 200), memory=st.integers(0, 200))
    def node_comes(self, cpu, memory):
        node = (("cpu", cpu), ("memory", memory), ("pods", 20))
        self.nodes.append(node)
        self.turn(self.forest.with_node(None, node), lambda now: now.with_node(node, None))

    @stateful.precondition(lambda self: self.nodes)
    @stateful.rule()
    def node_goes(self):
        gone = self.nodes.pop()
        self.turn(self.forest.with_node(gone, None), lambda now: now.with_node(None, gone))

    @stateful.rule()
    def everything_is_computed_at_once(self):
        self.forest = self.forest.refreshed()

    def turn(self, after, inverse):
        """Go on with another forest, from which the inverse leads back."""
        assert inverse(after) == self.forest
        self.forest = after

    @stateful.invariant()
    def as_computed_anew(self):
        world = oracle.World(
            tuple(self.quotas.values()), tuple(self.pods.values()), self.total(), self.rules
        )
        fresh = forests.Forest.empty(self.rules)
        for node in reversed(self.nodes):
            fresh = fresh.with_node(None, node)
        for pod in self.pods.values():
            fresh = fresh.with_pod(None, pod)
        for one in reversed(self.quotas.values()):
            fresh = fresh.with_quota(None, one)
        assert self.forest == fresh
        expected = oracle.figures(world)
        assert set(self.forest.names()) == set(expected)
        fresh.refreshed()
        for name, due in expected.items():
            found = dataclasses.asdict(self.forest.figures(name))
            assert {field: found[field] for field in due} == due, name
            assert fresh.runtime(name) == due["runtime"]
            bounds = self.forest.bounds(name)._asdict()
            assert bounds == {field: found[field] for field in bounds}
        for pod in self.pods.values():
            assert self.forest.name_of(pod.quota, pod.namespace) == world.quota_of(pod)

    @stateful.invariant()
    def what_stays_the_same_object_means_the_same(self):
        """Where sources of a room, or the naming, are the same, nobody has to look again."""
        seen, self.seen = self.seen, self.forest
        before, now = (one.room_sources(NAMES) for one in (seen, self.forest))
        for name in NAMES:
            if before.get(name) == now.get(name):
                assert seen.room_state(name) == self.forest.room_state(name)
        if seen.naming is self.forest.naming:
            for pod in self.pods.values():
                origin = pod.quota, pod.namespace
                assert seen.name_of(*origin) == self.forest.name_of(*origin)

    def total(self):
        return {
            key: total
            for key in KEYS
            if (total := sum(dict(node).get(key, 0) for node in self.nodes))
        }

    @stateful.invariant()
    def shares_are_fair(self):
        for name in self.forest.names():
            for step in self.forest.derivation(name):
                if step.quota == name:
                    self.fair(step)

    def fair(self, step):
        """Check one quota beside its siblings."""
        siblings = [
            other
            for one in self.forest.children(step.parent)
            if self.forest.tree(one) == self.forest.tree(step.quota)
            for other in self.forest.derivation(one)
            if (other.quota, other.resource) == (one, step.resource)
        ]
        assert len({(other.total, other.minimums) for other in siblings}) == 1
        together = sum(other.runtime for other in siblings)
        if self.rules.scale_min and not self.rules.guarantee:
            assert together <= max(step.total, 0)
        if step.total >= step.minimums:
            assert step.runtime >= min(step.request, step.minimum)
        if together < step.total:
            assert step.runtime >= step.request or not step.weight
        assert step.runtime == self.forest.runtime(step.quota)[step.resource]


Events.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestEvents = pytest.mark.timeout(60)(Events.TestCase)
