"""What any allocation over NUMA nodes has to obey, whatever the order in which they are tried.

Counted from the recorded case alone, with sets and sums, without the code that decides.
"""

import itertools

from api.wire import quantity

CPU = "cpu"
NO_CPUS = "not enough cpus available to satisfy request"
NOT_WHOLE = "insufficient CPUs to satisfy required cpu bind policy"


def parsed(text):
    """The CPUs of a list such as 0-3,8."""
    found = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def amounts_of(rows):
    return {one["node"]: quantity.amounts(one["resources"]) for one in rows or ()}


class Machine:
    """One node as a case describes it, and what a pod asks of it."""

    def __init__(self, given):
        self.given, shape = given, given["topology"]
        threads, per_node = shape["threadsPerCore"], shape["coresPerNuma"]
        nodes = shape["sockets"] * shape["numaPerSocket"]
        cores = nodes * per_node
        self.core, self.node, self.threads = {}, {}, threads
        for core, thread in itertools.product(range(cores), range(threads)):
            adjacent = shape["layout"] == "adjacent"
            cpu = core * threads + thread if adjacent else thread * cores + core
            if cpu not in parsed(shape.get("offline")):
                self.core[cpu] = core
                interleaved = shape["layout"] == "interleaved"
                self.node[cpu] = core % nodes if interleaved else core // per_node
        held = set().union(*(parsed(pod.get("cpuset")) for pod in given["pods"]))
        self.available = set(self.core) - held - parsed(given.get("reservedCPUs"))
        self.bind = given.get("bind") or {}
        self.required = bool(self.bind.get("required"))
        self.policy = self.bind.get("policy")
        self.zones = amounts_of(given["zones"])
        self.offered = {name for zone in self.zones.values() for name in zone}
        asked = quantity.amounts(given["requests"])
        self.asked = {name: value for name, value in asked.items() if name in self.offered}

    def usable(self):
        """The CPUs that a required policy leaves: of whole free cores, or one of each core."""
        by_core = {}
        for cpu in sorted(self.available):
            by_core.setdefault(self.core[cpu], []).append(cpu)
        if self.required and self.policy == "FullPCPUs":
            whole = (cpus for cpus in by_core.values() if len(cpus) == self.threads)
            return set().union(*whole)
        if self.required and self.policy == "SpreadByPCPUs":
            return {cpus[0] for cpus in by_core.values()}
        return self.available

    def free(self, node, resource):
        """What is free on a NUMA node, CPU as far as a required policy leaves it."""
        left = self.zones[node].get(resource, 0)
        for pod in self.given["pods"]:
            rows = amounts_of(pod.get("numaNodeResources"))
            left -= rows.get(node, {}).get(resource, 0)
        if resource == CPU and self.required:
            left = min(left, 1000 * sum(self.node[cpu] == node for cpu in self.usable()))
        return max(0, left)

    def unit(self, resource):
        """The least part of a resource in which it is split."""
        if resource != CPU or not self.bind:
            return 1
        return 1000 * (self.threads if self.required and self.policy == "FullPCPUs" else 1)

    def divides(self, nodes, resource):
        """Whether every NUMA node has whole parts free, so that no order can lose some."""
        unit = self.unit(resource)
        return all(self.free(node, resource) % unit == 0 for node in nodes)

    # -- one allocation ------------------------------------------------------------------------

    def problems(self, answer):
        """What is not legal in an allocation, or not true in a refusal."""
        nodes = self.given.get("affinity") or ()
        if "error" in answer:
            return [text for text in answer["error"].split("; ") if not self._true(text, nodes)]
        split = amounts_of(answer.get("numaNodeResources"))
        found = [f"{node} is outside" for node in split.keys() - set(nodes)]
        for resource, wanted in self.asked.items() if nodes else ():
            given = {node: split.get(node, {}).get(resource, 0) for node in nodes}
            found += self._split_problems(resource, wanted, given)
        return [*found, *(self._cpu_problems(parsed(answer["cpuset"]), split) if self.bind else ())]

    def _split_problems(self, resource, wanted, given):
        free = {node: self.free(node, resource) for node in given}
        if sum(given.values()) != wanted:
            yield f"{given} of {resource} are not {wanted}"
        if any(given[node] > free[node] for node in given):
            yield f"{given} of {resource} are more than {free}"
        most = max(given.values())
        for node, part in given.items():
            if part < free[node] and part + self.unit(resource) < most:
                yield f"{node} gives {part} of {free[node]} {resource}, another one {most}"

    def _cpu_problems(self, cpus, split):
        if len(cpus) != self.bind["cpus"] or not cpus <= self.available:
            yield f"{cpus} are not {self.bind['cpus']} CPUs that are free"
        for node, amounts in split.items():
            if sum(self.node[cpu] == node for cpu in cpus) != amounts.get(CPU, 0) // 1000:
                yield f"of {cpus} others than {amounts} are on NUMA node {node}"
        cores = len({self.core[cpu] for cpu in cpus})
        due = {"FullPCPUs": cores * self.threads, "SpreadByPCPUs": cores}.get(self.policy)
        if self.required and due is not None and due != len(cpus):
            yield f"{cpus} break {self.policy}"

    def _true(self, reason, nodes):
        """Whether a reason holds: there is too little, or no order divides it."""
        if reason.startswith("Insufficient NUMA "):
            resource = reason.rpartition(" ")[2]
            lacking = sum(self.free(n, resource) for n in nodes) < self.asked[resource]
            return lacking or not self.divides(nodes, resource)
        inside = {cpu for cpu in self.usable() if not nodes or self.node[cpu] in nodes}
        if reason == NO_CPUS:
            divides = not nodes or self.divides(nodes, CPU)
            return len(inside) < self.bind["cpus"] or not divides or not self._counts_fit(nodes)
        assert reason.startswith(NOT_WHOLE)
        return self.policy == "FullPCPUs" and self.bind["cpus"] % self.threads != 0

    def _counts_fit(self, nodes):
        """Whether every NUMA node has as many CPUs as its free amount says."""
        usable = self.usable()
        return all(
            1000 * sum(self.node[cpu] == node for cpu in usable) >= self.free(node, CPU)
            for node in nodes
        )

    # -- hints ---------------------------------------------------------------------------------

    def hint_problems(self, hints, recorded):
        """What is not legal in hints; scores do not depend on the order and are the recorded."""
        masks = [
            mask
            for size in range(1, 1 + len(self.zones))
            for mask in itertools.combinations(sorted(self.zones), size)
        ]
        for resource in self.asked:
            shown = {tuple(hint["mask"]): hint for hint in hints[resource]}
            listed = [tuple(hint["mask"]) for hint in hints[resource]]
            if listed != [mask for mask in masks if mask in shown]:
                yield f"{resource}: {listed} are out of order, or twice there"
            narrowest = min(map(len, shown), default=0)
            scores = {tuple(one["mask"]): one["score"] for one in recorded.get(resource, ())}
            for mask in masks:
                yield from self._mask_problems(resource, mask, shown.get(mask))
            for mask, hint in shown.items():
                preferred = self.given["policy"] == "Restricted" or len(mask) == narrowest
                if hint["preferred"] is not preferred:
                    yield f"{resource}: {mask} is preferred: {hint['preferred']}"
                if scores.get(mask, hint["score"]) != hint["score"]:
                    yield f"{resource}: {mask} scores {hint['score']}, not {scores[mask]}"

    def _mask_problems(self, resource, mask, hint):
        enough = all(
            sum(self.free(node, name) for node in mask) >= wanted
            for name, wanted in self.asked.items()
        )
        some = all(self.free(node, resource) for node in mask)
        certain = not self.bind or (
            self.divides(mask, CPU) and self._counts_fit(mask) and self.asked[CPU] % 1000 == 0
        )
        if hint is not None and not (enough and some):
            yield f"{resource}: {mask} cannot give it"
        if hint is None and enough and some and certain and not self._odd():
            yield f"{resource}: {mask} could give it"

    def _odd(self):
        """Whether whole cores cannot be so many CPUs."""
        full = self.required and self.policy == "FullPCPUs"
        return full and self.bind["cpus"] % self.threads != 0
