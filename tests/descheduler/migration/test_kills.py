"""Random histories of jobs, with kills, lost answers and watches that lag, at every write.

No pod is evicted without a place that waits for it, every job ends, and nothing is left behind.
"""

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from descheduler.migration.plan import facts
from kube.client import errors
from process.runtime import clock as clocks
from tests import draws
from tests.descheduler.migration import api_double, migrating_process
from tests.descheduler.migration.api_double import JOBS, KEPT, PODS, Killed

QUICK = hypothesis.settings(max_examples=draws.at_least(100), stateful_step_count=40, deadline=None)
NAMES = ("a", "b", "c")
PASSED = {"descheduler.koordinator.sh/passed-arbitration": "true"}
TOGETHER = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "2"}
OPEN = {"", "Pending", "Running"}
FUSES = st.tuples(
    st.integers(0, 3), st.sampled_from(["killed before", "killed after", "not sent", "lost"])
)
AVAILABLE = "Available"


class Histories(stateful.RuleBasedStateMachine):
    """A cluster with three workloads of one pod each, and jobs that move these."""

    def __init__(self):
        super().__init__()
        self.clock = clocks.ManualClock(now=1_700_000_000.0)
        self.api = api_double.ApiDouble(self.clock.now())
        self.api.on_evict = self._check_eviction
        self.api.on_patch = self._check_announcement
        self.made = 0
        self.has_room = True
        """Whether Reservations find a node once everything comes to rest."""
        self.aborted: set[str] = set()
        self.jobs_of: dict[str, int] = {}
        """How many jobs there were for a pod when it was evicted, by its uid."""
        self.process = migrating_process.Process(self.api, self.clock)
        for name in NAMES:
            self._pod(name, "node-0")

    # -- people ----------------------------------------------------------------------------

    @stateful.rule(
        name=st.sampled_from(NAMES),
        mode=st.sampled_from(["ReservationFirst", "EvictDirectly"]),
        ttl=st.sampled_from(["300s", "20s"]),
        grouped=st.booleans(),
        fresh=st.booleans(),
    )
    def create(self, name, mode, ttl, grouped, fresh):
        pods = [one for one in self._pods(name) if not _terminating(one)]
        if len(self.api.listed(JOBS)) >= 4 or not pods:
            return
        self.made += 1
        # While jobs of a group stand still, a third one could join; no round makes such a group.
        grouped = grouped and sum(map(_is_open_member, self.api.listed(JOBS))) < 2
        notes = {**(TOGETHER if grouped else {}), **({} if fresh else PASSED)}
        reference = {"namespace": "ns", "name": pods[0]["metadata"]["name"]}
        body = {
            "metadata": {"name": f"j{self.made}", "annotations": notes},
            "spec": {"podRef": reference, "mode": mode, "ttl": ttl},
        }
        self.api._create(JOBS, body)

    @stateful.rule(
        number=st.integers(0, 3), how=st.sampled_from(["abort", "pause", "go", "delete"])
    )
    def interfere(self, number, how):
        found = self.api.listed(JOBS)
        if number >= len(found):
            return
        name = found[number]["metadata"]["name"]
        if how == "abort" and found[number].get("status", {}).get("phase", "") in OPEN:
            self.api._patch(JOBS, name, {"status": {"phase": "Aborted"}}, "", "status")
            self.aborted.add(name)
        elif how in ("pause", "go"):
            self.api._patch(JOBS, name, {"spec": {"paused": how == "pause"}})
        elif how == "delete":
            self.api._delete(JOBS, name)

    # -- the process -----------------------------------------------------------------------

    @stateful.rule(number=st.integers(0, 3), fuse=st.none() | FUSES)
    def reconcile(self, number, fuse):
        found = sorted(self.process.jobs.store.keys())
        if number < len(found):
            self._tried(lambda: self.process.reconcile(found[number]), fuse)

    @stateful.rule(number=st.integers(0, 3), fuse=FUSES)
    def work_on_until_cut(self, number, fuse):
        """Let a job go on as far as it can with what is known, then cut one of its writes."""
        found = sorted(self.process.jobs.store.keys())
        if number >= len(found):
            return
        for _ in range(4):
            self.process.deliver()
            self._tried(lambda: self.process.reconcile(found[number]), fuse)

    @stateful.rule(
        number=st.integers(0, 3),
        how=st.sampled_from(
            ["abort", "pause", "delete", "steal", "expire", "evict", "switch", "none"]
        ),
        fuse=st.none() | FUSES,
        twice=st.booleans(),
    )
    def race(self, number, how, fuse, twice):
        """Bring a job to its eviction, let something happen that is not known yet, and go on."""
        found = sorted(self.process.jobs.store.keys())
        if number >= len(found):
            return
        name = found[number]
        for _ in range(9):
            self.process.deliver()
            raw = self.api.objects.get(("podmigrationjobs", name), {})
            if _reason(raw) == "EvictionBegun":
                break
            self._tried(lambda: self.process.reconcile(name), None)
            for index in range(len(self.api.listed(KEPT))):
                self.reservation(index, "place")
        self._meanwhile(name, how)
        self._tried(lambda: self.process.reconcile(name), fuse)
        if twice:
            self._tried(lambda: self.process.reconcile(name), None)

    def _meanwhile(self, name, how):
        names = [one["metadata"]["name"] for one in self.api.listed(JOBS)]
        if how in ("abort", "pause", "delete") and name in names:
            self.interfere(names.index(name), how)
        elif how in ("steal", "expire"):
            for index in range(len(self.api.listed(KEPT))):
                self.reservation(index, how)
        elif how == "switch":
            self.process.enforced = False
        elif how == "evict":
            self.live()
            for pod in self.api.listed(PODS):
                self.api._delete(PODS, pod["metadata"]["name"], "ns", grace=0)
            self.live()

    @stateful.rule(fuse=st.none() | FUSES)
    def arbitrate(self, fuse):
        self._tried(lambda: migrating_process.driven(self.process.arbitration.once()), fuse)

    @stateful.rule()
    def scavenge(self):
        self._tried(lambda: migrating_process.driven(self.process.scavenger.once()), None)

    @stateful.rule(count=st.integers(1, 6), twice=st.booleans(), which=st.integers(0, 3))
    def deliver(self, count, twice, which):
        for number, watch in enumerate(self.process.watches):
            if which in (number, len(self.process.watches)):
                watch.deliver(count, twice=twice)

    @stateful.rule()
    def restart(self):
        self.api.watches.clear()
        enforced = self.process.enforced
        self.process = migrating_process.Process(self.api, self.clock)
        self.process.enforced = enforced

    @stateful.rule()
    def switch_on(self):
        self.process.enforced = True

    def _tried(self, work, fuse):
        self.api.fuse = fuse
        try:
            work()
        except Killed:
            self.restart()
        except errors.KubeError:
            pass  # The queue tries again.
        finally:
            self.api.fuse = None

    # -- the cluster -----------------------------------------------------------------------

    @stateful.rule(number=st.integers(0, 2), how=st.sampled_from(["place", "expire", "steal"]))
    def reservation(self, number, how):
        found = self.api.listed(KEPT)
        if number >= len(found):
            return
        one = found[number]
        phase = one.get("status", {}).get("phase", "Pending")
        if how == "place" and phase == "Pending":
            self._place(one)
        elif how == "expire" and phase in ("Pending", AVAILABLE):
            self._end(one, "Failed", "Expired")
        elif how == "steal" and phase == AVAILABLE:
            self._use(one, "sibling")

    @stateful.rule()
    def live(self):
        """Let kubelets end what terminates, controllers replace it, the scheduler place that."""
        for pod in self.api.listed(PODS):
            if _terminating(pod):
                self.api.remove(("pods", f"ns/{pod['metadata']['name']}"))
        for name in NAMES:
            if not self._pods(name):
                self._replace(name)

    @stateful.rule(refuses=st.booleans())
    def budget(self, refuses):
        self.api.refuses_evictions = refuses

    @stateful.rule(has=st.booleans())
    def room(self, has):
        self.has_room = has

    @stateful.rule(seconds=st.sampled_from([1, 10, 60, 400]))
    def pass_time(self, seconds):
        self.clock.jump(seconds)
        self.clock._elapsed += seconds
        self.api.now = self.clock.now()

    @stateful.rule()
    def collect(self):
        self.api.collect_garbage()

    def _pods(self, name):
        return [one for one in self.api.listed(PODS) if one["metadata"]["labels"]["app"] == name]

    def _pod(self, app, node):
        self.made += 1
        body = {
            "metadata": {
                # As in a StatefulSet, the successor of one of them has its name.
                "name": app if app == NAMES[0] else f"{app}-{self.made}",
                "labels": {"app": app},
                "ownerReferences": [
                    {"kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
                ],
            },
            "spec": {
                "nodeName": node,
                "containers": [{"name": "c"}],
                "terminationGracePeriodSeconds": 5,
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        return self.api._create(PODS, body, "ns")

    def _place(self, one):
        scheduled = {"type": "Scheduled", "status": "True", "reason": "Scheduled"}
        status = {"phase": AVAILABLE, "nodeName": "node-1", "conditions": [scheduled]}
        self._write(one, status)

    def _end(self, one, phase, reason):
        ready = {"type": "Ready", "status": "False", "reason": reason, "message": "over"}
        self._write(one, {"phase": phase, "conditions": [ready]})

    def _use(self, one, name, uid="u-sibling"):
        owner = {"namespace": "ns", "name": name, "uid": uid}
        self._write(one, {"phase": "Succeeded", "currentOwners": [owner]})

    def _write(self, one, status):
        self.api._patch(KEPT, one["metadata"]["name"], {"status": status}, "", "status")

    def _replace(self, app):
        """Create the pod that replaces an evicted one; it takes a Reservation that is for it."""
        for one in self.api.listed(KEPT):
            owner = one["spec"]["owners"][0].get("controller", {}).get("uid")
            is_open = not one["spec"].get("unschedulable")
            if owner == app and is_open and one.get("status", {}).get("phase") == AVAILABLE:
                pod = self._pod(app, one["status"]["nodeName"])
                self._use(one, pod["metadata"]["name"], pod["metadata"]["uid"])
                return
        self._pod(app, "node-2")

    # -- what has to hold ------------------------------------------------------------------

    def _check_eviction(self, namespace, name, uid):
        """Look at the truth, not at what the process knows, at the moment of an eviction."""
        jobs = [one for one in self.api.listed(JOBS) if one["spec"]["podRef"].get("uid") == uid]
        self.jobs_of[uid] = max(self.jobs_of.get(uid, 0), len(jobs))
        running = [
            one
            for one in jobs
            if one.get("status", {}).get("phase") == "Running" and not one["spec"].get("paused")
        ]
        assert running, f"pod {name} was evicted for no running job: {jobs}"
        notes = running[0]["metadata"]["annotations"]
        follows = "koord.sh/migration-group" in notes or _reason(running[0]) == "Evicting"
        assert self.process.enforced or follows, f"pod {name} was evicted while switched off"
        backed = any(self._is_backed(one, opened=True) for one in running)
        assert backed, f"pod {name} was evicted without a place: {running}"

    def _check_announcement(self, before, after):
        """The first pod of a group may leave only where all of them have a place at that moment."""
        notes = after["metadata"].get("annotations", {})
        if _reason(before) or not _reason(after) or "koord.sh/migration-group" not in notes:
            return
        mine = [
            one
            for one in self.api.listed(JOBS)
            if "koord.sh/migration-group" in one["metadata"]["annotations"]
        ]
        if any(map(_reason, mine)):
            return
        assert len(mine) >= 2, f"a group of two leaves as {len(mine)}"
        for one in mine:
            assert one.get("status", {}).get("phase") == "Running", one
            assert self._is_backed(one), one

    def _is_backed(self, job, *, opened=False):
        if job["spec"]["mode"] == "EvictDirectly":
            return True
        named = job["spec"].get("reservationOptions", {}).get("reservationRef", {}).get("name")
        held = self.api.objects.get(("reservations", named))
        status = (held or {}).get("status", {})
        if status.get("phase") != AVAILABLE or status.get("nodeName") == "node-0":
            return False
        return not opened or not held["spec"].get("unschedulable")

    @stateful.invariant()
    def what_a_person_has_aborted_stays_so(self):
        for one in self.api.listed(JOBS):
            if one["metadata"]["name"] in self.aborted:
                assert one["status"]["phase"] == "Aborted", one

    @stateful.invariant()
    def a_job_knows_what_it_has_evicted(self):
        evicted = {uid for _, uid in self.api.evictions}
        for one in self.api.listed(JOBS):
            status, uid = one.get("status", {}), one["spec"]["podRef"].get("uid")
            if status.get("reason") == "MissingPod" and uid in evicted:
                assert self.jobs_of[uid] > 1, one

    def teardown(self):
        """Let everything come to rest: all jobs end, and nothing is kept for them."""
        self.api.refuses_evictions = False
        self.process.enforced = True
        for one in self.api.listed(JOBS):
            self.api._patch(JOBS, one["metadata"]["name"], {"spec": {"paused": False}})
        self._settle(rounds=8)
        self.pass_time(facts.Defaults().ttl + 2 * facts.SETTLING_SECONDS + 400)
        self._settle(rounds=8)
        for one in self.api.listed(JOBS):
            phase = one.get("status", {}).get("phase", "")
            assert phase not in OPEN, one
        self.collect()
        for one in self.api.listed(KEPT):
            assert one["status"]["phase"] == "Succeeded", one
        self.pass_time(90_000)
        self.scavenge()
        self.collect()
        assert not self.api.listed(JOBS)
        assert not self.api.listed(KEPT)

    def _settle(self, rounds):
        for _ in range(rounds):
            self.pass_time(30)
            self.process.deliver()
            self.arbitrate(None)
            for name in sorted(self.process.jobs.store.keys()):
                for _ in range(3):
                    self.process.deliver()
                    self._tried(lambda name=name: self.process.reconcile(name), None)
            self.process.deliver()
            for index in range(len(self.api.listed(KEPT)) if self.has_room else 0):
                self.reservation(index, "place")
            self.live()
            self.process.deliver()


def _reason(job):
    told = job.get("status", {}).get("conditions", ())
    return next((one["reason"] for one in told if one["type"] == "Eviction"), "")


def _is_open_member(job):
    is_open = job.get("status", {}).get("phase", "") in OPEN
    return is_open and "koord.sh/migration-group" in job["metadata"].get("annotations", {})


def _terminating(pod):
    return bool(pod["metadata"].get("deletionTimestamp"))


TestHistories = Histories.TestCase
TestHistories.settings = QUICK
