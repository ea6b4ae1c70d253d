"""A gated pod whose quota has room is let in, whatever is lost, late or told twice on the way."""

import asyncio
import contextlib
import itertools

import hypothesis
import msgspec
from hypothesis import strategies as st

from api import names
from api.kubernetes import core
from kube.client import errors
from kube.informers import store
from manager.quota.waiting import gates, gates_conditions
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics
from tests import builders
from tests.manager.quota.conftest import Cluster, a_quota

OTHER = "example.com/other"
QUOTAS = ("a", "b")
PACE = gates.Pace(
    at_once=2,
    untried=3,
    untried_seconds=2.0,
    conditions=gates_conditions.Pace(patience_seconds=0.5, again_seconds=2.0, round_seconds=0.5),
)
LIMIT = 2
"""Pods that a quota lets in to begin with."""
HEALED_SECONDS = 60
"""Longer than any pod is left alone after a write that failed."""


class ApiServer:
    """Pods and quotas as they are stored, the events that this makes, and what becomes of writes.

    It is a writer of the manager too: a patch holds only for the pod as it was seen.
    """

    def __init__(self):
        self.pods = {}
        self.limits = dict.fromkeys(QUOTAS, LIMIT)
        self.events = []
        """Every change, in order: version, key, and what was stored then, or None."""
        self.fails = []
        """What becomes of the next writes: an error, and whether the write counts all the same."""
        self._versions = itertools.count(10)

    def store(self, name, **changed):
        pod = {**self.pods.get(name, {}), **changed, "version": next(self._versions)}
        self.pods[name] = pod
        self.events.append((pod["version"], name, pod))

    def remove(self, name):
        del self.pods[name]
        self.events.append((next(self._versions), name, None))

    def admitted(self, quota):
        return [pod for pod in self.pods.values() if pod["quota"] == quota and not pod["gates"]]

    def waiting(self, quota):
        """Return the pods that wait for quota alone."""
        gated = (names.GATE_QUOTA,)
        return [p for p in self.pods.values() if p["quota"] == quota and p["gates"] == gated]

    async def carry_out(self, plan):
        (step,) = plan.steps
        await asyncio.sleep(0)
        error, counts = self.fails.pop(0) if self.fails else (None, True)
        if counts:
            self._patch(step)
        if error is not None:
            raise error

    def _patch(self, step):
        pod, wanted = self.pods.get(step.name), step.body["metadata"]
        if pod is None or pod["uid"] != wanted["uid"]:
            raise errors.NotFound(404, "NotFound", f"pods {step.name} not found")
        if step.subresource == "status":
            (condition,) = step.body["status"]["conditions"]
            self.store(step.name, told=condition)
            return
        if pod["version"] != int(wanted["resourceVersion"]):
            raise errors.Conflict(409, "Conflict", "the pod has changed")
        self.store(step.name, gates=tuple(g for g in pod["gates"] if g != names.GATE_QUOTA))


class History:
    """A manager that opens gates, between an API server and a watch that may be disturbed."""

    def __init__(self):
        self.server = ApiServer()
        self.cluster = Cluster()
        self.clock = clocks.ManualClock()
        self.registry = metrics.Registry()
        self._seen = 0
        self._numbers = itertools.count()
        self.cluster.node("n", cpu="1000")
        for name in QUOTAS:
            self._tell_limit(name)

    def _tell_limit(self, name):
        self.cluster.quota(a_quota(name, most={"cpu": str(self.server.limits[name])}))

    @contextlib.asynccontextmanager
    async def manager(self):
        live = switches.Switches(gates.SWITCH, switches.Mode.ENFORCE)
        opening = gates.Gates(self.cluster.book, live, PACE, self.clock, self.registry)
        task = asyncio.get_running_loop().create_task(opening.run(self.server))
        try:
            yield
            assert not task.done()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # --- What happens ---------------------------------------------------------------------------

    def create(self, draw):
        number = next(self._numbers)
        gated = (names.GATE_QUOTA, OTHER) if draw % 5 == 0 else (names.GATE_QUOTA,)
        self.server.store(
            f"p{number}", uid=f"u{number}", quota=QUOTAS[draw % 2], gates=gated, node="",
            priority=draw % 3, created=self.clock.now(), told=None,
        )  # fmt: skip

    def _one(self, draw, wanted):
        found = [name for name, pod in self.server.pods.items() if wanted(pod)]
        return found[draw % len(found)] if found else None

    def bind(self, draw):
        if name := self._one(draw, lambda pod: not pod["gates"] and not pod["node"]):
            self.server.store(name, node="n")

    def end(self, draw):
        if name := self._one(draw, lambda _: True):
            self.server.remove(name)

    def open_other_gate(self, draw):
        if name := self._one(draw, lambda pod: OTHER in pod["gates"]):
            gated = self.server.pods[name]["gates"]
            self.server.store(name, gates=tuple(gate for gate in gated if gate != OTHER))

    def again(self, draw):
        """Let another pod come under the name of one that is there."""
        if name := self._one(draw, lambda _: True):
            pod = self.server.pods[name]
            self.server.remove(name)
            again = f"{pod['uid']}x"
            self.server.store(
                name, **{**pod, "uid": again, "gates": (names.GATE_QUOTA,), "node": ""}
            )

    def more(self, draw):
        quota = QUOTAS[draw % 2]
        self.server.limits[quota] += 1
        self._tell_limit(quota)

    def refuse(self, draw):
        """Let the next write fail: with or without effect, where nobody can tell."""
        kinds = (
            (errors.Unreachable("the answer was lost"), True),
            (errors.Unreachable("the request was lost"), False),
            (errors.NotSent("no connection"), False),
            (errors.Conflict(409, "Conflict", "changed"), False),
            (errors.TooManyRequests(429, "TooManyRequests", "slow down"), False),
            (errors.ServerFailure(500, "InternalError", "etcd"), True),
            (errors.Forbidden(403, "Forbidden", "no"), False),
        )
        self.server.fails.append(kinds[draw % len(kinds)])

    # --- What the watch shows -------------------------------------------------------------------

    def _meta(self, name, pod, version):
        return store.Meta(f"default/{name}", pod["uid"], version)

    def _value(self, name, pod):
        labels = {names.LABEL_QUOTA_NAME: pod["quota"]}
        raw = builders.a_pod(name, cpu="1", node=pod["node"], gates=pod["gates"], labels=labels)
        raw["spec"]["priority"] = pod["priority"]
        raw["metadata"] |= {
            "uid": pod["uid"],
            "resourceVersion": str(pod["version"]),
            "creationTimestamp": builders.durations.moment(pod["created"]),
        }
        raw["status"] = {"phase": "Pending", "conditions": [pod["told"]] if pod["told"] else []}
        return self.cluster.shapes.pod(msgspec.convert(raw, core.Pod))

    def _tell(self, event):
        version, name, pod = event
        seen = self.cluster.stores.pods
        if pod is None:
            seen.remove(f"default/{name}", version)
        else:
            seen.put(self._meta(name, pod, version), self._value(name, pod))

    def deliver(self, draw):
        for event in self.server.events[self._seen : self._seen + 1 + draw % 4]:
            self._tell(event)
            self._seen += 1

    def repeat(self, draw):
        """Tell something a second time."""
        if self._seen:
            self._tell(self.server.events[draw % self._seen])

    def lose(self, draw):
        """Lose the watch with some events, and list everything again."""
        seen, listed = self.cluster.stores.pods, set()
        for name, pod in self.server.pods.items():
            listed.add(f"default/{name}")
            seen.accept(self._meta(name, pod, pod["version"]), self._value(name, pod))
        self._seen = len(self.server.events)
        seen.finish(listed, self.server.events[-1][0] if self.server.events else 1)

    def catch_up(self):
        while self._seen < len(self.server.events):
            self.deliver(3)

    # --- What must hold -------------------------------------------------------------------------

    def is_kept(self):
        for quota, most in self.server.limits.items():
            assert len(self.server.admitted(quota)) <= most, f"{quota} has more than {most}"

    def is_fair(self):
        for quota, most in self.server.limits.items():
            admitted, waiting = self.server.admitted(quota), self.server.waiting(quota)
            assert not waiting or len(admitted) == most, (
                f"{len(waiting)} wait for {quota}, which has let in {len(admitted)} of {most}"
            )


STEPS = (
    "create", "create", "create", "bind", "end", "again", "open_other_gate", "more",
    "refuse", "refuse", "refuse", "deliver", "deliver", "deliver", "repeat", "lose", "wait",
)  # fmt: skip


async def lived(steps):
    history = History()
    async with history.manager():
        for kind, draw in steps:
            if kind == "wait":
                await history.clock.advance((0.05, 0.2, 1.0, 3.0)[draw % 4])
            else:
                getattr(history, kind)(draw)
                await history.clock.settle()
            history.is_kept()
        history.server.fails.clear()
        for _ in range(HEALED_SECONDS):
            history.catch_up()
            await history.clock.advance(1.0)
            history.is_kept()
        history.is_fair()


THREE_CAME = [("create", 2), ("create", 2), ("create", 2)]


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.example([*THREE_CAME, ("refuse", 0), ("deliver", 3), ("wait", 1), ("wait", 2)])
@hypothesis.example([*THREE_CAME, ("refuse", 6), ("refuse", 1), ("deliver", 3), ("wait", 2)])
@hypothesis.given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1000)), min_size=5, max_size=40)
)
def test_a_gated_pod_whose_quota_has_room_is_let_in(steps):
    asyncio.run(lived(steps))
