"""Reservations, their owners and other pods in random histories: who gets what, and what remains.

The API server is a few dicts. Events reach an extender late and in order; it knows by itself only
what it has bound. What it decides is compared with sums over the dicts.
"""

import math

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from api import names
from api.koordinator import scheduling
from extender.framework import pipeline, views
from extender.overlap import detector
from extender.plugins.reservation import tracker
from extender.state import allocations, claims, invariants
from extender.state.reservations import reservation_claims
from tests.extender.clusters import reservation_cluster
from tests.extender.clusters.reservation_cluster import NOW

NODES = ("n1", "n2")
CPU = 10
NAMES = ("r1", "r2", "r3")
APPS = ("mine", "yours", "nobody")
QUICK = hypothesis.settings(max_examples=25, stateful_step_count=30, deadline=None)


class Server:
    """What the API server holds: Reservations that are Available, and pods that have a node."""

    def __init__(self):
        self.reservations = {}
        """By uid: name, node, cpu, policy, app of the owners, whether it is allocated once."""
        self.pods = {}
        """By name: node, cpu, app and the uid of the Reservation that is written on it."""
        self.serial = 0

    def number(self):
        self.serial += 1
        return self.serial

    def used(self, uid):
        node = self.reservations[uid]["node"]
        users = [pod for pod in self.pods.values() if pod["uses"] == uid and pod["node"] == node]
        return users, sum(pod["cpu"] for pod in users)

    def remainder(self, uid):
        return max(0, self.reservations[uid]["cpu"] - self.used(uid)[1])

    def pod_cpu(self, node):
        return sum(pod["cpu"] for pod in self.pods.values() if pod["node"] == node)

    def kept(self, node):
        return sum(self.remainder(uid) for uid in self.on(node))

    def on(self, node):
        return [uid for uid, one in self.reservations.items() if one["node"] == node]

    def fits_in_tree(self, node, cpu):
        return self.pod_cpu(node) + cpu <= CPU

    def may_take(self, node, cpu, app):
        """Whether a pod fits, by sums alone: into a Reservation of its own, or beside all."""
        kept = self.kept(node)
        free = CPU - self.pod_cpu(node) - kept
        if cpu <= free or not kept:
            return True
        for uid in self.on(node):
            one, left = self.reservations[uid], self.remainder(uid)
            taken = one["once"] and self.used(uid)[0]
            inside = left if one["restricted"] else left + free
            if one["app"] == app and not taken and cpu <= min(inside, left + free):
                return True
        return False


class Process:
    """One extender: its state, and the events that have not reached it."""

    def __init__(self, server):
        self.server = server
        self.cluster = reservation_cluster.ReservationCluster(("Reservation",))
        for node in NODES:
            self.cluster.node(node, cpu=str(CPU))
        self.events = []
        for uid in server.reservations:
            self.shown(uid)
        for name in server.pods:
            self.placed(name)

    def claim(self, uid, phase="Available"):
        one = self.server.reservations[uid]
        raw = reservation_cluster.written(
            one["name"],
            uid=uid,
            node=one["node"],
            phase=phase,
            requests={"cpu": str(one["cpu"])},
            once=one["once"],
            owners=[{"labelSelector": {"matchLabels": {"app": one["app"]}}}],
            **({"allocatePolicy": "Restricted"} if one["restricted"] else {}),
        )
        return reservation_claims.claim(scheduling.read_reservation(raw), self.cluster.projector)

    def shown(self, uid):
        claim = self.claim(uid)
        self.cluster.books.reservations.watched(self.cluster.known.get(uid), claim)
        self.cluster.known[uid] = claim

    def ended(self, uid):
        if uid in self.cluster.known:
            self.cluster.end(uid)

    def raw(self, name):
        pod = self.server.pods[name]
        notes = {}
        if pod["uses"]:
            used = {"name": "r", "uid": pod["uses"]}
            notes[names.ANNOTATION_RESERVATION_ALLOCATED] = used
        return self.cluster.raw(
            name, str(pod["cpu"]), app=pod["app"], node=pod["node"], annotations=notes
        )

    def placed(self, name):
        self.cluster.show(name, self.raw(name))

    def gone(self, name):
        if name in self.cluster.pods:
            self.cluster.release(name)
        else:
            self.cluster.books.forget(f"uid-{name}")

    def deliver(self, count):
        ready, self.events = self.events[:count], self.events[count:]
        for event in ready:
            event()

    def passes(self, node, cpu, app):
        return not self.cluster.judge("probe", str(cpu), app=app, node=node)

    def bind(self, name, node, cpu, app):
        """Run the bind verb up to the write; return the uid of the Reservation, None: refused."""
        cluster = self.cluster
        view = cluster.view()
        record = cluster.pod(name, str(cpu), app=app)
        asked = cluster.pipeline.cycle(views.PodInfo.of(record), view)
        row = view.rows[node]
        refusal = cluster.pipeline.filter(asked, view, pipeline.alone(row), NOW).refusal(0)
        found = refusal or cluster.pipeline.reserve(asked, view, row)
        if isinstance(found, pipeline.Refusal):
            return None
        granted = {key: one.allocation for key, one in found.items() if one.allocation}
        cluster.books.assume(record, node, NOW, NOW, granted or allocations.NONE)
        used = granted.get("Reservation")
        return used.uid if used else ""

    def check(self):
        """What the state says is what it would say if it were built anew."""
        assert not invariants.drifted(self.cluster.books.cluster)

    def check_sums(self):
        """What is counted of every Reservation is the sum of its owners, and nothing else is."""
        view, server = self.cluster.view(), self.server
        seen = set()
        for node in NODES:
            found = tracker.of(view, view.rows[node])
            for kept in found.kept if found else ():
                uid = kept.held.reservation.uid
                users, cpu = server.used(uid)
                seen.add(uid)
                assert kept.held.owners == len(users)
                assert kept.held.allocated.get("cpu", 0) == 1000 * cpu
                assert kept.held.kept()["cpu"] == 1000 * server.remainder(uid)
        assert seen == server.reservations.keys()
        kind = claims.ClaimKind.RESERVATION
        live = [c for c in self.cluster.books.cluster.all_claims().values() if c.kind is kind]
        assert len(live) == len(seen)


class Histories(stateful.RuleBasedStateMachine):
    """Steps that one extender and two have in common."""

    count = 1

    def __init__(self):
        super().__init__()
        self.server = Server()
        self.processes = [Process(self.server) for _ in range(self.count)]

    def tell(self, step, *args):
        for process in self.processes:
            process.events.append(lambda process=process: getattr(process, step)(*args))

    def process(self, number):
        return self.processes[number % len(self.processes)]

    @stateful.rule(
        number=st.integers(0, 1),
        name=st.sampled_from(NAMES),
        node=st.sampled_from(NODES),
        cpu=st.integers(1, 6),
        app=st.sampled_from(APPS[:2]),
        restricted=st.booleans(),
        once=st.booleans(),
        answered=st.booleans(),
    )
    def reserve(self, number, *, answered, **wanted):
        """A stand-in is captured; the Reservation is Available from then on.

        Its extender hears of that by the answer of its write, or from the watch first.
        """
        process, node, cpu = self.process(number), wanted["node"], wanted["cpu"]
        taken = any(one["name"] == wanted["name"] for one in self.server.reservations.values())
        if taken or not self.server.fits_in_tree(node, cpu):
            return
        stand_in = f"stand-in-{self.server.number()}"
        if process.bind(stand_in, node, cpu, "stand-in") is None:
            return
        uid = f"uid-{wanted['name']}-{self.server.number()}"
        self.server.reservations[uid] = wanted
        claim = process.claim(uid)
        process.cluster.books.reservations.assume(claim)
        process.cluster.books.forget(f"uid-{stand_in}")
        if answered:
            process.cluster.books.reservations.placed(claim, math.inf)
        for one in self.processes:
            one.events.append(lambda one=one: uid in self.server.reservations and one.shown(uid))

    @stateful.rule(
        number=st.integers(0, 1),
        node=st.sampled_from(NODES),
        cpu=st.integers(1, 7),
        app=st.sampled_from(APPS),
    )
    def place(self, number, node, cpu, app):
        if not self.server.fits_in_tree(node, cpu):
            return
        process, name = self.process(number), f"p{self.server.number()}"
        uses = process.bind(name, node, cpu, app)
        if uses is None:
            return
        self.server.pods[name] = {"node": node, "cpu": cpu, "app": app, "uses": uses}
        self.placed(name, uses)
        for one in self.processes:
            one.events.append(lambda one=one: name in self.server.pods and one.placed(name))

    def placed(self, name, uses):
        """Check what was given to a pod."""

    @stateful.rule(which=st.integers(0, 20))
    def delete_pod(self, which):
        if self.server.pods:
            name = sorted(self.server.pods)[which % len(self.server.pods)]
            del self.server.pods[name]
            self.tell("gone", name)

    @stateful.rule(which=st.integers(0, 20))
    def end_reservation(self, which):
        """Its time is over, it was used up, or it was deleted."""
        if self.server.reservations:
            uid = sorted(self.server.reservations)[which % len(self.server.reservations)]
            process_claims = [p.cluster.books.reservations for p in self.processes]
            del self.server.reservations[uid]
            self.tell("ended", uid)
            for reserved in process_claims:
                # What the watch never showed ends by itself.
                reserved.forget(claims.reservation(uid))

    @stateful.rule(number=st.integers(0, 1), count=st.integers(1, 5))
    def deliver(self, number, count):
        self.process(number).deliver(count)

    @stateful.rule(number=st.integers(0, 1))
    def restart(self, number):
        """A process begins with a list; so does one whose watch was too old."""
        self.processes[number % len(self.processes)] = Process(self.server)

    @stateful.invariant()
    def a_rebuilt_state_is_the_same(self):
        for process in self.processes:
            process.check()

    def settle(self):
        for process in self.processes:
            process.deliver(len(process.events))


@QUICK
class OneExtender(Histories):
    """Nothing that is kept is ever taken, and no owner that fits is refused."""

    def placed(self, name, uses):
        pod = self.server.pods[name]
        if uses:
            one = self.server.reservations.get(uses)
            # One that ended meanwhile keeps nothing, so that nothing is lost by using it.
            assert one is None or (one["app"], one["node"]) == (pod["app"], pod["node"])

    @stateful.invariant()
    def no_capacity_is_given_twice(self):
        for node in NODES:
            kept = self.server.kept(node)
            assert not kept or self.server.pod_cpu(node) + kept <= CPU

    @stateful.invariant()
    def reservations_give_no_more_than_they_hold(self):
        for uid, one in self.server.reservations.items():
            users, cpu = self.server.used(uid)
            assert not one["once"] or len(users) <= 1
            assert not one["restricted"] or cpu <= one["cpu"]

    @stateful.rule(cpu=st.integers(1, 7), app=st.sampled_from(APPS), node=st.sampled_from(NODES))
    def owners_that_fit_pass_and_others_do_not(self, cpu, app, node):
        self.settle()
        process = self.processes[0]
        process.check_sums()
        expected = self.server.may_take(node, cpu, app)
        assert process.passes(node, cpu, app) is expected


@hypothesis.settings(parent=QUICK, max_examples=12)
class TwoExtenders(Histories):
    """What two grant that do not know of each other is found, and one of them stays."""

    count = 2

    @stateful.rule()
    def what_was_granted_twice_is_told_alike(self):
        self.settle()
        found = [self.overused(process) for process in self.processes]
        assert found[0] == found[1]
        for uid, one in self.server.reservations.items():
            users, cpu = self.server.used(uid)
            too_many = one["once"] and len(users) > 1
            too_much = one["restricted"] and cpu > one["cpu"]
            leaving = [later for of, later in found[0] if of == uid]
            assert bool(leaving) is bool(too_many or too_much)
            assert len(leaving) < max(len(users), 1)
        for process in self.processes:
            process.check_sums()

    @staticmethod
    def overused(process):
        found = []
        for node in NODES:
            held = process.cluster.books.cluster.claims_on(node)
            found += [
                (one.later.allocations["Reservation"].uid, one.later.id)
                for one in detector.overused(held)
            ]
        return sorted(found)


TestOneExtender = OneExtender.TestCase
TestTwoExtenders = TwoExtenders.TestCase
