"""Recorded placements of pods on one node with reservations."""

import copy
import dataclasses

import msgspec

from api.koordinator import scheduling
from api.kubernetes import core
from domain.pods import resources
from domain.reservations import choice, fit, matching, model, owners
from tests.reference import cases

FILE = "reservation_fit"
SUCCESS, SKIP = {"code": "Success"}, {"code": "Skip"}
UNMATCHED = "node(s) no reservations match reservation affinity"


class Setting:
    """One recorded node with its reservations, and the pod that is placed."""

    def __init__(self, given):
        self.node = given["node"]
        self.allocatable = resources.amounts(self.node["status"]["allocatable"])
        self.held = [held for one in given["reservations"] if (held := _held(one))]
        owning = [pod for one in given["reservations"] for pod in one["ownerPods"]]
        self.pods = [resources.amounts(pod["requests"]) for pod in (*given["pods"], *owning)]
        self.requested = _total(self.pods)
        self.asking = _asking(given["pod"])
        labels = self.node["metadata"]["labels"]
        found = [(held, matching.match(self.asking, held, labels)) for held in self.held]
        self.matched = tuple(held for held, match in found if match is matching.Match.MATCHED)
        if self.asking.wishes.ignores:
            self.matched = tuple(held for held in self.held if not held.taken)
        self.others = tuple(held for held in self.held if held not in self.matched)

    @property
    def room(self):
        return fit.Room(self.allocatable, self.requested, self.matched, self.others)

    def restored(self):
        """What a placed pod finds taken while the reservations that it may use are taken away."""
        used = resources.add(self.requested, fit.kept(self.others))
        pods = len(self.pods) + used.pop("pods", 0)
        return {"milliCPU": used.get("cpu", 0), "memory": used.get("memory", 0), "pods": pods}


def _total(amounts):
    total = {}
    for one in amounts:
        total = resources.add(total, one)
    return total


def _held(one):
    written = scheduling.read_reservation(one["reservation"])
    found = model.read(written)
    if found is None:
        return None
    held = model.Held(found)
    for pod in one["ownerPods"]:
        held = held.with_owner(resources.amounts(pod["requests"]))
    return held


def _asking(raw):
    pod = msgspec.convert(raw, core.Pod)
    metadata = pod.metadata
    return matching.Asking(
        owners.Pod(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            labels=metadata.labels,
            references=metadata.owner_references,
        ),
        resources.pod_requests(pod),
        matching.wishes(metadata.labels, metadata.annotations),
    )


def _names(held):
    return sorted(one.reservation.name for one in held)


def answer(case):
    setting = Setting(case.given)
    asking, matched = setting.asking, setting.matched
    affinity = asking.wishes.affinity
    if affinity is not None and not matched:
        return {"preFilter": {"code": "UnschedulableAndUnresolvable", "reasons": [UNMATCHED]}}
    owned = [held for held in setting.others if held.owners and not held.taken]
    if not matched and not owned:
        return {"preFilter": SKIP}
    out = {"preFilter": SUCCESS, "matched": _names(matched), "unmatched": _names(owned)}
    out["restoredRequested"] = setting.restored()
    outcome = fit.judge(asking, setting.room)
    if not outcome.fits:
        reasons = outcome.reasons(detailed=bool(affinity and affinity.name))
        return out | {"filter": {"code": "Unschedulable", "reasons": reasons}}
    out["filter"] = SUCCESS
    if asking.wishes.ignores:
        return out
    taken = choice.nominate(asking, setting.room)
    out["nominated"] = taken and taken.reservation.name
    scores = {held.reservation.name: choice.score(asking.requests, held) for held in matched}
    return out | {"reservationScores": scores}


def expected(case):
    """Where no reservation concerns the pod, nothing is restored."""
    restored = case.expected["preFilter"] == SUCCESS
    skipped = () if restored else ("restoredRequested",)
    return {key: value for key, value in case.expected.items() if key not in skipped}


def counted_once(case, recorded):
    """The same node on which owners are plain pods, and their reservations are what they left.

    They have no owner, so that the reference counts them as they are.
    """
    if "matched" not in recorded:
        return cases.UNSTATED
    changed, owned = copy.deepcopy(case.given), 0
    for one in changed["reservations"]:
        reservation, pods = one["reservation"], one["ownerPods"]
        if reservation["metadata"]["name"] in recorded["matched"] or not _held(one):
            continue
        left = dict(_held(one).reservation.allocatable)
        for name, used in _held(one).allocated.items():
            left[name] = max(0, left[name] - used)
        left["cpu"] = f"{left.get('cpu', 0)}m"
        left = {name: str(value) for name, value in left.items()}
        reservation["status"]["allocatable"] = left
        reservation["spec"] |= {"allocateOnce": False, "owners": [{"object": {"uid": "of-none"}}]}
        if _asking(case.given["pod"]).wishes.ignores:
            # A pod that ignores reservations could use it: a plain pod stands for what is left.
            reservation["status"]["phase"] = "Pending"
            changed["pods"].append({"requests": left})
        changed["pods"] += pods
        # One that is still said to have owners has one without requests, not counted as a pod.
        one["ownerPods"] = [{"requests": {}}] * (
            reservation["metadata"]["name"] in recorded["unmatched"]
        )
        owned += len(one["ownerPods"])
    found = answer(dataclasses.replace(case, given=changed))
    found["restoredRequested"]["pods"] -= owned
    return found


DIFFERENCES = {
    "every amount is counted once": cases.Difference(
        "The reference counts the owner of a reservation that is used up beside all of what was "
        "reserved, until its controller has seen the owner; and it forgets what an owner of an "
        "Aligned reservation holds beyond what is reserved. A node then refuses pods that fit, or "
        "admits more than it has.",
        counted_once,
    )
}


def test_recorded_placements():
    cases.check(FILE, answer, expected, DIFFERENCES)
