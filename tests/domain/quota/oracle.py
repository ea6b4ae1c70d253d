"""The model of ElasticQuota once more, as slow and as plain as can be: every figure from the pods.

Nothing here is shared with the code under test but the values that go in.
"""

import collections
import dataclasses
import functools

from api import names

DEEPEST = 32


@dataclasses.dataclass(frozen=True)
class World:
    """What there is: objects, pods, what all nodes have together, and the rules."""

    quotas: tuple
    pods: tuple
    total: dict
    rules: object

    @functools.cached_property
    def known(self):
        """Return the object that counts for each name, the oldest first."""
        found = {}
        for one in sorted(self.quotas, key=lambda one: (one.created_at, one.identity)):
            found.setdefault(one.name, one)
        return found

    def tree_of(self, name):
        """Return the tree that a quota names, or else the next of its ancestors that names one."""
        if not self.rules.multi_tree:
            return ""
        known, seen = self.in_trees, set()
        while name in known and name not in seen:
            if known[name].tree:
                return known[name].tree
            seen.add(name)
            name = known[name].parent
        return ""

    @functools.cached_property
    def in_trees(self):
        return {k: v for k, v in self.known.items() if k not in names.RESERVED_QUOTAS}

    def claimed_parent(self, name):
        """Return the parent of a quota where it exists in the same tree."""
        known = self.in_trees
        parent = known[name].parent
        same = parent in known and self.tree_of(parent) == self.tree_of(name)
        return parent if same else ""

    def parents(self):
        claimed = {name: self.claimed_parent(name) for name in self.in_trees}
        cyclic = {name for name in claimed if self._returns(claimed, name)}
        return {name: "" if name in cyclic else parent for name, parent in claimed.items()}

    def _returns(self, claimed, name):
        at = claimed[name]
        for _ in claimed:
            if at == name:
                return True
            at = claimed.get(at, "")
        return False

    def quota_of(self, pod):
        """Return the quota of a pod."""
        return self._quota_of(pod.quota, pod.namespace)

    def _quota_of(self, label, namespace):
        known = self.in_trees
        if not self.rules.default_quota:
            fine = label in known or label in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA)
            return label if fine else ""
        if label:
            fine = label in known or label == names.SYSTEM_QUOTA
            return label if fine else names.DEFAULT_QUOTA
        for one in known.values():
            if one.name == one.namespace == namespace:
                return one.name
        for one in known.values():
            if namespace in one.namespaces:
                return one.name
        return names.DEFAULT_QUOTA


def cap_of(one):
    """Return the smaller of max and hard."""
    found = {}
    for key in {*one.maximum, *one.hard}:
        bounds = [side[key] for side in (one.maximum, one.hard) if key in side]
        found[key] = max(0, min(bounds))
    return found


def minimum_of(one):
    """Return what is guaranteed of what is capped."""
    return {
        key: max(0, min(one.minimum[key], most))
        for key, most in cap_of(one).items()
        if key in one.minimum
    }


def requests_of(pod):
    return {**dict(pod.requests), "pods": 1}


class Oracle:
    """Every figure of every quota."""

    def __init__(self, world):
        self.world = world
        self.quotas = world.in_trees
        self.parents = world.parents()
        self.sums = collections.defaultdict(lambda: collections.defaultdict(int))
        self.runtime = {}
        self.scaled = {}
        self.pods = collections.defaultdict(list)
        for pod in world.pods:
            self.pods[world.quota_of(pod)].append(pod)
        self.trees = {name: world.tree_of(name) for name in self.quotas}
        self.children = collections.defaultdict(list)
        for name in sorted(self.quotas):
            self.children[self.parents[name]].append(name)
        self.caps = {name: cap_of(one) for name, one in self.quotas.items()}
        self.totals, self.divided = {}, {}
        ordered = sorted(self.quotas, key=self.depth)
        for name in reversed(ordered):
            self.sum_up(name)
        for name in ordered:
            for key, most in cap_of(self.quotas[name]).items():
                self.fill(name, key, most)

    def depth(self, name):
        count = 0
        while self.parents[name]:
            name = self.parents[name]
            count += 1
        return count

    def below(self, name, key):
        """Return the children that count a resource, in order."""
        return [child for child in self.children[name] if key in self.caps[child]]

    def beside(self, name, key):
        """Return a quota and its siblings that count a resource, in order."""
        tree = self.trees[name]
        return [
            one
            for one in self.below(self.parents[name], key)
            if self.parents[name] or self.trees[one] == tree
        ]

    def lends(self, name):
        return self.quotas[name].lends and not self.world.rules.guarantee

    def sum_up(self, name):
        one, found = self.quotas[name], self.sums
        minimum = minimum_of(one)
        for key, most in cap_of(one).items():
            at = found[name, key]
            for pod in self.pods[name]:
                amount = requests_of(pod).get(key, 0)
                firm = 0 if pod.preemptible else amount
                at["self_request"] += amount
                at["self_used"] += amount * pod.assigned
                at["non_preemptible_request"] += firm
                at["non_preemptible_used"] += firm * pod.assigned
            at["child_request"] = at["self_request"]
            at["used"] = at["allocated"] = at["self_used"]
            for child in self.below(name, key):
                their = found[child, key]
                at["child_request"] += their["limited_request"]
                at["used"] += their["used"]
                at["allocated"] += their[
                    "guaranteed" if self.world.rules.guarantee else "allocated"
                ]
                at["non_preemptible_request"] += their["non_preemptible_request"]
                at["non_preemptible_used"] += their["non_preemptible_used"]
            least = minimum.get(key, 0)
            kept = 0 if self.lends(name) else least
            at["request"] = max(at["child_request"], kept)
            at["limited_request"] = min(at["request"], most)
            at["guaranteed"] = max(at["allocated"], least)

    def total(self, tree=""):
        """Return what a tree shares out."""
        world = self.world
        roots = {}
        for one in world.known.values():
            if one.name in self.quotas and one.is_root and world.tree_of(one.name):
                roots.setdefault(world.tree_of(one.name), one)
        if tree:
            return dict(roots[tree].total) if tree in roots else {}
        left = collections.Counter(world.total)
        for one in roots.values():
            if not one.ignores_default_tree:
                left.subtract(one.total)
        for pod in world.pods:
            quota = world.quota_of(pod)
            if quota in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA) and pod.assigned:
                capped = self.reserved_cap(quota)
                counted = requests_of(pod).items()
                left.subtract({key: amount for key, amount in counted if key in capped})
        return left

    def reserved_cap(self, name):
        written = self.world.known.get(name)
        if written is not None and cap_of(written):
            return cap_of(written)
        rules = self.world.rules
        return rules.default_max if name == names.DEFAULT_QUOTA else rules.system_max

    def fill(self, name, key, most):
        """Compute the runtime of one quota in one resource, as though nobody had looked before."""
        parent = self.parents[name]
        if parent:
            if (parent, key) not in self.runtime:
                self.runtime[name, key] = most
                self.scaled[name, key] = minimum_of(self.quotas[name]).get(key, 0)
                return
            total = self.runtime[parent, key]
        else:
            if self.trees[name] not in self.totals:
                self.totals[self.trees[name]] = self.total(self.trees[name])
            total = self.totals[self.trees[name]].get(key, 0)
        family = (parent, self.trees[name] if not parent else "", key)
        if family not in self.divided:
            self.divided[family] = self.divide(total, key, self.beside(name, key))
        scaled, shares = self.divided[family]
        self.scaled[name, key] = scaled[name]
        self.runtime[name, key] = shares[name]

    def divide(self, total, key, beside):
        """Return the scaled minimums of siblings and what each gets."""
        least = {one: minimum_of(self.quotas[one]).get(key, 0) for one in beside}
        if self.world.rules.scale_min and total < sum(least.values()):
            together = sum(least.values()) or 1
            least = {one: max(total, 0) * mine // together for one, mine in least.items()}
        scaled = least
        if self.world.rules.guarantee:
            least = {
                one: max(mine, self.sums[one, key]["guaranteed"]) for one, mine in least.items()
            }
        return scaled, self.shared(total, key, least)

    def weight(self, name, key):
        """Return the weight of a quota among its siblings, after what they have borrowed."""
        beside = self.beside(name, key)
        written = {one: max(0, written_weight(self.quotas[one], key)) for one in beside}
        half = self.world.rules.half_life
        if not half or not written[name]:
            return written[name]
        latest = max(self.quotas[one].borrowed_at for one in beside)
        spent = {}
        for one, weight in written.items():
            quota = self.quotas[one]
            age = latest - quota.borrowed_at
            amount = min(max(0, quota.borrowed.get(key, 0)), 2**80)
            spent[one] = amount * 0.5 ** (age / half) / weight if weight else 0
        if len(set(spent.values())) == 1:
            return written[name]
        part = written[name] / sum(written.values())
        favor = 2 ** (6 * (1 - spent[name] / max(spent.values())))
        return max(1, round(part * 2**32 * favor))

    def shared(self, total, key, least):
        wish = {one: self.sums[one, key]["limited_request"] for one in least}
        have = {
            one: mine if wish[one] > mine or not self.lends(one) else wish[one]
            for one, mine in least.items()
        }
        rest = total - sum(have.values())
        for priority in sorted({self.quotas[one].priority for one in least}, reverse=True):
            hungry = [
                one
                for one in sorted(least)
                if wish[one] > least[one]
                and self.quotas[one].priority == priority
                and self.weight(one, key) > 0
            ]
            while hungry and rest > 0:
                parts = by_largest_remainder(rest, {one: self.weight(one, key) for one in hungry})
                rest = 0
                for one, part in parts.items():
                    have[one] += part
                    if have[one] >= wish[one]:
                        rest += have[one] - wish[one]
                        have[one] = wish[one]
                        hungry.remove(one)
        return have


def written_weight(quota, key):
    """Return what its author says of a weight: by the annotation, or else by the bounds."""
    said = (quota.weight, quota.maximum, quota.hard)
    return next(amounts[key] for amounts in said if key in amounts)


def by_largest_remainder(amount, weights):
    """Split an amount; who is left the most by rounding down gets one more, by name where equal."""
    together = sum(weights.values())
    parts = {one: amount * mine // together for one, mine in weights.items()}
    short = sorted(weights, key=lambda one: (-(amount * weights[one] % together), one))
    for one in short[: amount - sum(parts.values())]:
        parts[one] += 1
    return parts


FIELDS = (
    "request",
    "child_request",
    "limited_request",
    "used",
    "non_preemptible_used",
    "non_preemptible_request",
    "self_used",
    "self_request",
    "guaranteed",
    "allocated",
)


def figures(world):
    """Return the figures of every quota in its tree, by name, field and resource."""
    oracle = Oracle(world)
    found = {}
    for name, one in oracle.quotas.items():
        cap = cap_of(one)
        found[name] = {
            field: {key: oracle.sums[name, key][field] for key in cap} for field in FIELDS
        } | {
            "cap": cap,
            "minimum": minimum_of(one),
            "runtime": {key: oracle.runtime[name, key] for key in cap},
            "scaled_minimum": {key: oracle.scaled[name, key] for key in minimum_of(one)},
        }
    return found
