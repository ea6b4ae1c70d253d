"""What the agent remembers beyond a tick: learns from samples, keeps both over a restart."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent.model import state
from agent.store import checkpoints, peaks, time_series
from api.koordinator.metadata import qos
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
_SHARE: Final = 0.9
"""What of an interval counts as its use: short spikes do not."""
_AT_ONCE: Final = 32
"""Series that are packed before others may run."""


class Habits(msgspec.Struct, frozen=True):
    """How often what is done."""

    training_seconds: float = 60.0
    keep_seconds: float = 120.0
    """Between two writes of the samples."""


def interval(
    samples: time_series.Histories, picture: state.NodeState, now: float, seconds: float
) -> peaks.Round:
    """Return what was used during the interval that ends now."""

    def used(key: tuple[str, ...]) -> peaks.Sample | None:
        cpu = samples.quantile((*key, "cpu"), _SHARE, now - seconds, now)
        memory = samples.quantile((*key, "memory"), _SHARE, now - seconds, now)
        return None if cpu is None or memory is None else peaks.Sample(cpu, memory)

    pods = {}
    for pod in picture.pods:
        uid = pod.pod.metadata.uid
        sample = used(("pod", uid))
        if sample is not None:
            pods[uid] = (sample, qos.band_of_pod(pod.pod))
    return peaks.Round(picture.at, pods, used(("node",)))


class Recall:
    """The samples and models of this node, on disk and in memory."""

    def __init__(
        self,
        folder: Path,
        boot_id: str,
        samples: time_series.Histories,
        rules: peaks.Rules,
        clock: clocks.Clock,
        habits: Habits,
    ) -> None:
        self.models = peaks.Models(rules)
        self._samples = samples
        self._clock = clock
        self._habits = habits
        self._boot_id = boot_id
        self._sample_file = checkpoints.SampleFile(folder / "samples")
        self._model_files = checkpoints.ModelFiles(folder / "peaks")
        self._loaded = False
        self._told = peaks.Forecast(None, None, "nothing forecast yet")
        self._kept_at = clock.monotonic()

    @property
    def problem(self) -> str | None:
        """What could not be read or written, None when all is well."""
        refused = ""
        if self._samples.crowded:
            refused = (
                f"there are {len(self._samples)} series of samples, and no more are begun: "
                "pods that came last have no figures"
            )
        written = (self._sample_file.problem, self._model_files.problem)
        found = (*written, self._samples.problem(), refused)
        return "; ".join(filter(None, found)) or None

    def show(self, registry: metrics.Registry) -> None:
        """Offer its size as figures."""
        registry.gauge(
            "koord_agent_history_samples", "Samples that are remembered, of all series."
        ).set_function(lambda: float(self._samples.samples))
        registry.gauge(
            "koord_agent_history_series", "Figures of which samples are remembered."
        ).set_function(lambda: float(len(self._samples)))
        registry.gauge(
            "koord_agent_peak_models", "Pods and sums of pods whose peak is learned."
        ).set_function(lambda: float(len(self.models)))
        registry.gauge(
            "koord_agent_prod_reclaimable_cores", "Cores that production is predicted to leave."
        ).set_function(lambda: (self._told.reclaimable or peaks.NOTHING).cpu / 1000)
        registry.gauge(
            "koord_agent_prod_reclaimable_bytes", "Memory that production is predicted to leave."
        ).set_function(lambda: float((self._told.reclaimable or peaks.NOTHING).memory))
        registry.gauge(
            "koord_agent_prod_peak_cores", "Cores that production is predicted to need at most."
        ).set_function(lambda: (self._told.peak or peaks.NOTHING).cpu / 1000)

    def load(self) -> None:
        """Take back the samples of an earlier run; models follow when the pods are known."""
        self._sample_file.load(self._samples, self._moment())

    async def run(self, picture: Callable[[], state.NodeState | None]) -> None:
        """Learn and keep for ever, from pictures that are there once the pods are known."""
        while True:
            await self._clock.sleep(self._habits.training_seconds)
            seen = picture()
            if seen is not None:
                await self.learn(seen)
            if self._clock.monotonic() - self._kept_at >= self._habits.keep_seconds:
                await self.keep()

    async def learn(self, seen: state.NodeState) -> None:
        """Learn from the interval that just ended, and keep the models whose turn it is."""
        now = self._clock.monotonic()
        if not self._loaded:
            known = {pod.pod.metadata.uid for pod in seen.pods} | peaks.SHARED
            found = await asyncio.to_thread(self._model_files.load, known, self.models.rules)
            for uid, model in found.items():
                self.models.put(uid, model)
            self._loaded = True
            _logger.info("peaks taken back models=%d", len(found))
        self.models.train(interval(self._samples, seen, now, self._habits.training_seconds))
        gone = self.models.expired(seen.at)
        bodies = self._model_files.due(self.models, now)
        await asyncio.to_thread(self._write, gone, bodies, now)

    async def keep(self) -> None:
        """Keep the samples as they are now, a few at a time so that no tick waits."""
        self._kept_at = self._clock.monotonic()
        packer = checkpoints.Packer(self._moment())
        for number, one in enumerate(self._samples.kept(self._samples.words())):
            packer.add(one)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        await asyncio.to_thread(self._sample_file.write, packer.done())

    def stop(self) -> None:
        """Keep everything before the process ends."""
        self._sample_file.write(checkpoints.pack(self._samples.kept(), self._moment()))
        if self._loaded:
            everything = checkpoints.bodies(self.models, [uid for uid, _ in self.models.items()])
            self._model_files.write(everything, self._clock.monotonic())

    def forecast(self, picture: state.NodeState) -> peaks.Forecast:
        """Return what production pods are going to leave and to need."""
        offered = peaks.offered(picture.node)
        lenders = [peaks.lender(pod.pod, picture.at) for pod in picture.pods]
        self._told = peaks.forecast(self.models, offered, lenders)
        return self._told

    def _write(
        self, gone: list[str], bodies: Mapping[str, Mapping[str, object]], now: float
    ) -> None:
        self._model_files.remove(gone)
        self._model_files.write(bodies, now)

    def _moment(self) -> checkpoints.Moment:
        return checkpoints.Moment(self._clock.now(), self._clock.monotonic(), self._boot_id)
