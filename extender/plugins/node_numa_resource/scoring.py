"""Filter and score of all candidates at once, from the figures of their nodes."""

import numpy as np

from api import names
from domain.cpus import cpu_accumulator
from domain.numa import numa_allocation
from extender.framework import verdicts, views
from extender.plugins.node_numa_resource import allocation, tracker

_FULL = tracker.BIND_CODES[cpu_accumulator.BindPolicy.FULL_PCPUS]


def codes(prepared: allocation.Wanted, view: views.View, rows: verdicts.Rows) -> verdicts.Codes:
    """Return for each candidate 0, or which check refuses it first, counted from 1."""
    found = view.gathered(allocation.NAME, rows)
    node_bind, node_policy = found[tracker.BIND], found[tracker.POLICY]
    count = prepared.cpu // 1000
    own_policy = tracker.POLICY_CODES[prepared.policy]
    policy = np.where(node_policy > 0, node_policy, own_policy)
    bound = (node_bind > 0) & (prepared.cpu > 0) | prepared.bound
    own = tracker.BIND_CODES[prepared.preferred] if prepared.required else 0
    required = np.where(node_bind > 0, node_bind, own)
    per_core = found[tracker.PER_CORE]
    usable = np.choose(required, (found[tracker.FREE], found[tracker.WHOLE], found[tracker.CORES]))
    odd = (required == _FULL) & (count % np.maximum(per_core, 1) != 0)
    checks = (
        (node_policy > 0) & (own_policy > 0) & (node_policy != own_policy),
        bound & (prepared.cpu % 1000 != 0),
        (found[tracker.RATIO] == 0) & (prepared.cpu > 0),
        _exceeds(prepared, view, rows, bound),
        bound & (per_core == 0),
        bound & (own > 0) & (node_bind > 0) & (node_bind != own),
        bound & odd,
        bound & (usable < count),
        (policy > 0) & (found[tracker.ZONES] == 0),
    )
    result = np.zeros(rows.size, dtype=np.int16)
    for place in range(len(checks) - 1, -1, -1):
        result[checks[place]] = place + 1
    return result


def _exceeds(
    prepared: allocation.Wanted, view: views.View, rows: verdicts.Rows, bound: verdicts.Flags
) -> verdicts.Flags:
    """Return where amplified CPU is short: CPUs of a pod's own cost more than they count for."""
    found = view.figures[allocation.NAME]
    ratio = found[tracker.RATIO, rows]
    if names.CPU not in view.resources or not prepared.cpu or not np.any(ratio > 100):
        return np.zeros(rows.size, dtype=np.bool_)
    index = view.resources[names.CPU]
    asked = np.where(bound, _amplified(np.full(rows.size, prepared.cpu), ratio), prepared.cpu)
    used = requested_cpu(view, rows)
    exceeds: verdicts.Flags = (ratio > 100) & (asked > view.allocatable[index, rows] - used)
    return exceeds


def requested_cpu(view: views.View, rows: verdicts.Rows) -> verdicts.Column:
    """Return the CPU that pods request of each node, held CPUs at what they cost."""
    found = view.figures[allocation.NAME]
    total: verdicts.Column = view.requested[view.resources[names.CPU], rows]
    held, ratio = 1000 * found[tracker.HELD, rows], found[tracker.RATIO, rows]
    counts = (held > 0) & (total >= held)
    return np.where(counts, total - held + _amplified(held, ratio), total)


def _amplified(amounts: verdicts.Column, ratio: verdicts.Column) -> verdicts.Column:
    return np.where(ratio > 100, -(-amounts * ratio // 100), amounts)


def nodes(
    prepared: allocation.Wanted,
    view: views.View,
    rows: verdicts.Rows,
    scoring: numa_allocation.Scoring,
) -> verdicts.Column:
    """Score the totals of each node."""
    found = view.figures[allocation.NAME]
    requests = dict(prepared.requests)
    bound = (found[tracker.BIND, rows] > 0) & (prepared.cpu > 0) | prepared.bound
    total = np.zeros(rows.size, dtype=np.int64)
    weights = np.zeros(rows.size, dtype=np.int64)
    for name, weight in scoring.weights:
        index = view.resources.get(name)
        if index is None or (name not in numa_allocation.ALWAYS and not requests.get(name)):
            continue
        capacity = view.allocatable[index, rows]
        asked = np.full(rows.size, requests.get(name, 0), dtype=np.int64)
        used = view.requested[index, rows]
        if name == names.CPU:
            used = requested_cpu(view, rows)
            asked = np.where(bound, _amplified(asked, found[tracker.RATIO, rows]), asked)
        wanted, there = used + asked, capacity > 0
        most = np.minimum(wanted, capacity)
        left = np.where(wanted <= capacity, capacity - wanted, 0)
        part = most if scoring.most_allocated else left
        total += np.where(there, weight * (part * 100 // np.maximum(capacity, 1)), 0)
        weights += np.where(there, weight, 0)
    values: verdicts.Column = total // np.maximum(weights, 1)
    return np.where(bound & (found[tracker.PER_CORE, rows] == 0), 0, values)
