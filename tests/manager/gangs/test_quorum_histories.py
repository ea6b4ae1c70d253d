"""What is remembered of a gang, against its true history: replicas look late, and not at all of it.

A gang starts by a plan whose members are bound one by one; they fail, succeed, leave and are
replaced; an extender that dies in the middle of the Bindings evicts what it has bound; all of them
may leave and come anew by the same names. The watch of each replica lags, ends in a list that shows
the last state of each pod alone, and a replica may start anew.
"""

import collections
import dataclasses

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.informers import store
from manager.gangs import gang_book, quorum
from tests import draws
from tests.manager.gangs import ganged

LEAST = 3
NAMES = ("a", "b", "c", "d")
SAMPLES = {name: ganged.pod(name, min=LEAST) for name in NAMES}
LONGEST_PAUSE, LONGEST_LAG = quorum.GRACE_SECONDS - 10.0, 5.0
"""Between two Bindings of one plan, and of a watch: what takes longer looks as if none followed."""


@dataclasses.dataclass(frozen=True)
class Truth:
    """How a gang stands after an event."""

    living: int = 0
    complete: bool = False
    """Whether it has had its minimum since its first pod had a node, or all of its plan have."""
    fell: bool = False
    """Whether it was below its minimum after that."""
    binding: bool = False
    """Whether more of its pods are about to be bound."""
    ended: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    """What had succeeded when it had done its work."""

    @property
    def lost(self):
        return self.complete and self.living > 0 and self.living + len(self.ended) < LEAST

    def after(self, pods, binding):
        living = sum(pod.living for pod in pods)
        ended = (self.ended | {pod.uid for pod in pods if pod.succeeded}) - self.over
        if len(ended) >= LEAST:
            return Truth(living, binding=binding, over=self.over | ended)
        met = living + len(ended) >= LEAST
        if not (met or living):
            # What has succeeded and is gone counts for the pods that it ran with.
            ended &= {pod.uid for pod in pods}
        complete = met or (living > 0 and (self.complete or not binding))
        fell = complete and (self.fell or not met)
        return Truth(living, complete, fell, binding, ended, self.over)


class Replica:
    """One manager: its watch, and what it remembers."""

    def __init__(self, history):
        self.history = history
        self.seen, self.memory = 0, None
        self.pods = store.Store()
        self.book = gang_book.GangBook(self.pods, store.Store())
        self.list()

    def list(self):
        """Take in what there is now, whatever has happened meanwhile."""
        for name, pod in self.history.pods.items():
            self.pods.accept(store.Meta(name, pod.uid, self.history.versions[name]), pod)
        self.seen = len(self.history.events)
        self.pods.finish(set(self.history.pods), self.seen)

    def hear(self, count):
        """Take in the next events."""
        for name, pod in self.history.events[self.seen : self.seen + count]:
            self.seen += 1
            if pod is None:
                self.pods.remove(name, self.seen)
            else:
                self.pods.put(store.Meta(name, pod.uid, self.seen), pod)

    def look(self):
        """Look at the gang, as the controller does, and judge by what was true at that event."""
        now, truth = self.history.now, self.history.truths[self.seen]
        observed = self.book.observed("default/g")
        if observed is None:
            self.memory = None
            return
        self.memory = memory = quorum.followed(self.memory, observed, now)
        if memory.lost(now):
            assert 0 < truth.living < LEAST
            assert truth.complete, "others are on their way"
        if truth.living >= LEAST:
            assert memory.complete
            assert memory.left_at is None or truth.fell, "what happened to pods that are gone"
        assert quorum.followed(memory, observed, now) == memory


class History:
    """A gang, and the replicas that follow it."""

    def __init__(self):
        self.now, self.plans, self.made = 1000.0, 0, 0
        self.pods, self.versions = {}, {}
        self.events, self.truths = [], [Truth()]
        self.burst, self.paused, self.lag = [], 0.0, 0.0
        self.replicas = [Replica(self), Replica(self)]

    def put(self, name, pod):
        if pod is None:
            self.pods.pop(name)
            self.burst = [one for one in self.burst if one[0] != name]
        else:
            self.pods[name] = pod
        self.events.append((name, pod))
        self.versions[name] = len(self.events)
        self.truths.append(self.truths[-1].after(self.pods.values(), bool(self.burst)))

    def change(self, name, **changes):
        self.put(name, msgspec.structs.replace(self.pods[name], **changes))

    # -- what happens ------------------------------------------------------------------------

    def create(self, name):
        if name not in self.pods:
            self.made += 1
            self.put(name, msgspec.structs.replace(SAMPLES[name], uid=f"{name}{self.made}"))

    def start(self, _):
        """Create what is missing, and plan the gang where no part of it runs."""
        for name in NAMES:
            self.create(name)
        waiting = [name for name, pod in self.pods.items() if not pod.node]
        if len(waiting) >= LEAST and not self.truths[-1].living and not self.burst:
            self.plans += 1
            self.burst = [(name, f"plan{self.plans}") for name in waiting]
            self.bind("")

    def bind(self, _):
        if self.burst:
            (name, plan), *self.burst = self.burst
            self.paused = 0.0
            self.change(name, node="n1", phase="Running", gathered=True, plan=plan)

    def bind_all(self, _):
        while self.burst:
            self.bind("")

    def bind_alone(self, name):
        """Place a later member of a gang that stands."""
        pod = self.pods.get(name)
        if pod is not None and not pod.node and self.truths[-1].complete and not self.burst:
            self.change(name, node="n1", phase="Running")

    def interrupt(self, _):
        """Let the extender die, and evict what it has bound in part after its restart."""
        if self.burst:
            self.burst = []
            if not self.truths[-1].complete:
                for name in [name for name, pod in self.pods.items() if pod.living]:
                    self.leave(name)

    def end(self, name, phase):
        if name in self.pods and self.pods[name].living:
            self.change(name, phase=phase)

    def fail(self, name):
        self.end(name, "Failed")

    def succeed(self, name):
        self.end(name, "Succeeded")

    def leave(self, name):
        if name in self.pods:
            self.change(name, deleting=True)

    def gone(self, name):
        if name in self.pods:
            self.put(name, None)

    def lose(self, name):
        """Let all pods but one fail."""
        for other in NAMES:
            if other != name:
                self.fail(other)

    def start_over(self, name):
        """Let all pods be deleted, by some names at once, and start the gang anew."""
        for other in NAMES:
            (self.gone if other >= name else self.leave)(other)
        self.start("")
        if name < "c":
            self.bind_all("")

    # -- what replicas see -------------------------------------------------------------------

    def wait(self, seconds):
        self.now += seconds
        self.paused += seconds
        if self.paused > LONGEST_PAUSE:
            self.bind_all("")
        self.lag += seconds
        if self.lag > LONGEST_LAG:
            self.lag = 0.0
            self.catch_up()

    def catch_up(self):
        for replica in self.replicas:
            replica.hear(len(self.events))

    def finish(self):
        """Let everything arrive, and time pass."""
        self.bind_all("")
        self.catch_up()
        for replica in self.replicas:
            replica.look()
        for seconds in (quorum.SETTLE_SECONDS, quorum.GRACE_SECONDS):
            self.now += seconds
            for replica in self.replicas:
                replica.look()
                told = self.telling(replica, whole=seconds < quorum.GRACE_SECONDS)
                if told and self.truths[-1].lost:
                    assert replica.memory.lost(self.now), "a loss that nobody saw"

    def telling(self, replica, *, whole):
        """Return the plans by which a replica has to know that the gang had its minimum."""
        placed = [pod for pod in self.pods.values() if pod.gathered and pod.node]
        found = {pod.plan for pod in placed if pod.living}
        if replica.memory is not None:
            found -= replica.memory.spent
        if not whole:
            return found
        if any(not pod.node and not pod.deleting for pod in self.pods.values()):
            return set()
        together = collections.Counter(pod.plan for pod in placed)
        return {plan for plan in found if together[plan] >= LEAST}


DEEDS = ("create", "start", "bind", "bind_all", "bind_alone", "interrupt", "fail", "succeed",
         "leave", "gone", "lose", "start_over")  # fmt: skip
WHICH = st.integers(0, 1)
STEPS = st.one_of(
    st.tuples(st.sampled_from(DEEDS), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["start", "bind_all"]), st.just("")),
    st.tuples(st.sampled_from(["fail", "leave", "gone", "lose"]), st.sampled_from(NAMES)),
    st.tuples(st.just("look"), WHICH, st.sampled_from([0, 1, 3, 100])),
    st.tuples(st.sampled_from(["list", "restart"]), WHICH),
    st.tuples(st.just("wait"), st.sampled_from([0.25, 1.0, 5.0, 25.0])),
)


def told(history, step):
    match step:
        case ("look", which, count):
            history.replicas[which].hear(count)
            history.replicas[which].look()
        case ("list", which):
            history.replicas[which].list()
        case ("restart", which):
            history.replicas[which] = Replica(history)
        case (deed, how):
            getattr(history, deed)(how)


@settings(max_examples=draws.at_least(300))
@given(steps=st.lists(STEPS, max_size=60))
def test_no_loss_is_missed_and_none_is_made_up(steps) -> None:
    history = History()
    for step in steps:
        told(history, step)
    history.finish()
