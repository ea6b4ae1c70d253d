"""Pods whose devices can be judged by columns: one type, any device of it that has enough."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from api import names
from api.koordinator import devices
from api.koordinator.metadata import payloads
from domain.devices import pod_devices
from domain.devices.allocation import device_scores
from domain.devices.requests import requests
from extender.framework import verdicts
from extender.plugins.device_share import columns

_GPU_COLUMNS: Final = {
    names.GPU_CORE: columns.CORE,
    names.GPU_MEMORY_RATIO: columns.RATIO,
    names.GPU_MEMORY: columns.MEMORY,
}
_ADAPTERS: Final = {devices.RDMA: columns.RDMA, devices.FPGA: columns.FPGA}


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """So many devices of one type, each with so much left."""

    kind: str
    count: int
    per_device: requests.Amounts
    selects: bool = False
    """Whether GPUs have to carry certain labels."""

    def fits(self, figures: verdicts.Column) -> verdicts.Flags:
        """Tell which nodes have enough; exact unless a node gives GPUs by partitions only."""
        if self.kind != devices.GPU:
            (amount,) = self.per_device.values()
            found: verdicts.Flags = figures[_ADAPTERS[self.kind]] >= amount
            return found
        enough: verdicts.Flags | None = None
        for name, amount in self.per_device.items():
            column = _GPU_COLUMNS[name]
            one = figures[column : column + columns.GPUS] >= amount
            enough = one if enough is None else enough & one
        assert enough is not None
        fitting: verdicts.Flags = np.count_nonzero(enough, axis=0) >= self.count
        return fitting

    def fits_one(self, figures: Sequence[int]) -> bool:
        """Tell the same of one node; plain integers are cheaper there than vectors of one."""
        if self.kind != devices.GPU:
            (amount,) = self.per_device.values()
            return figures[_ADAPTERS[self.kind]] >= amount
        left: Sequence[int] = range(columns.GPUS)
        for name, amount in self.per_device.items():
            column = _GPU_COLUMNS[name]
            left = [place for place in left if figures[column + place] >= amount]
        return len(left) >= self.count


def shape(asked: pod_devices.PodDevices) -> Shape | None:
    """Return what a pod wants where columns say all about it; None where they do not."""
    if len(asked.by_type) != 1 or asked.partition is not None:
        return None
    ((kind, amounts),) = asked.by_type.items()
    hint = asked.hints.get(kind)
    if hint is not None and hint != payloads.DeviceHint(selector=hint.selector):
        return None
    if kind != devices.GPU:
        if hint is not None:
            return None
        (amount,) = amounts.values()
        return Shape(kind, 1, amounts) if amount <= requests.WHOLE else None
    assert asked.gpu is not None
    per_gpu = asked.gpu.per_gpu
    if not per_gpu.keys() <= _GPU_COLUMNS.keys() or not all(per_gpu.values()):
        return None
    selects = hint is not None and hint.selector is not None
    return Shape(kind, asked.gpu.count, per_gpu, selects)


def sums_say_all(asked: pod_devices.PodDevices) -> bool:
    """Whether the score of a node depends on nothing but sums over all devices of a type."""
    if asked.hints or asked.joint:
        return False
    return asked.gpu is None or any(asked.gpu.per_gpu.values())


def scores(
    asked: pod_devices.PodDevices, scoring: device_scores.Scoring, figures: verdicts.Column
) -> verdicts.Column:
    """Score nodes by sums, as one node is scored by its devices."""
    total = np.zeros(figures.shape[1], dtype=np.int64)
    for kind, per_device in _per_device(asked):
        total += _one_type(kind, per_device, scoring, figures)
    return total


def _per_device(asked: pod_devices.PodDevices) -> Iterator[tuple[str, requests.Amounts]]:
    """Yield every type with what the pod takes of one device."""
    for kind, amounts in asked.by_type.items():
        if kind == devices.GPU and asked.gpu:
            yield kind, asked.gpu.per_gpu
        else:
            yield kind, {name: min(value, requests.WHOLE) for name, value in amounts.items()}


def _one_type(
    kind: str, request: requests.Amounts, scoring: device_scores.Scoring, figures: verdicts.Column
) -> verdicts.Column:
    score = np.zeros(figures.shape[1], dtype=np.int64)
    weights = np.zeros_like(score)
    for place, (name, weight) in enumerate(scoring.weights):
        if name not in requests.NAMES[kind]:
            continue
        size, free = figures[columns.SUMS + 2 * place : columns.SUMS + 2 * place + 2]
        used = np.where(size >= free, size - free + request.get(name, 0), size)
        present = size > 0
        whole = np.maximum(size, 1)
        if scoring.packs:
            one = np.minimum(used, size) * device_scores.BEST // whole
        else:
            one = np.where(used > size, 0, (size - used) * device_scores.BEST // whole)
        score += np.where(present, one * weight, 0)
        weights += np.where(present, weight, 0)
    found: verdicts.Column = np.where(weights > 0, score // np.maximum(weights, 1), 0)
    return found


def score(
    asked: pod_devices.PodDevices, scoring: device_scores.Scoring, figures: Sequence[int]
) -> int:
    """Score one node by sums; plain integers are cheaper there than vectors of one."""
    total = 0
    for kind, per_device in _per_device(asked):
        size, free = {}, {}
        for place, (name, _) in enumerate(scoring.weights):
            if name in requests.NAMES[kind]:
                column = columns.SUMS + 2 * place
                size[name], free[name] = figures[column], figures[column + 1]
        total += device_scores.device(scoring, per_device, size, free)
    return total


def gpus(figures: verdicts.Column, name: str) -> verdicts.Column:
    """Return what is free of a resource, by GPU and node."""
    column = _GPU_COLUMNS[name]
    return figures[column : column + columns.GPUS]
