"""Who tells which pods run on this node: the kubelet, and while it is silent the API server.

The kubelet is asked again soon when groups came or went and after a failure. The API server is read
only after the kubelet has been silent for a while, from its memory, seldom, and at moments that
differ from agent to agent: five thousand of them may lose their kubelets at once.
"""

import functools
import logging
import random
from collections.abc import Callable
from typing import Protocol

import msgspec

from agent.informers import kubelet_client as kubelets
from agent.informers import pod_list_client
from api.kubernetes import core
from kube.client import client, errors
from process.runtime import clock as clocks
from process.runtime import metrics, series, supervise

_logger = logging.getLogger(__name__)
KUBELET, API_SERVER, NOBODY = "kubelet", "api-server", "nobody"
AGAIN_SECONDS = 1.0
"""After a failure the kubelet is asked again so soon."""
SOON_SECONDS = 2.0
"""For changed groups it is asked at most so often ..."""
NOW_SECONDS = 0.2
"""For a pod that starts it is asked at most so often."""
HURRY_SECONDS = 10.0
"""... and for so long: a container's status follows its group by a second or two."""


class Habits(msgspec.Struct, frozen=True):
    """How often who is asked."""

    interval_seconds: float = 10.0
    fall_back_seconds: float | None = 30.0
    """How long the kubelet is silent before the API server is read; None for never."""
    pause_seconds: float = 60.0
    """Between two reads of the API server."""
    again_seconds: float = 10.0
    """After a read that failed, or told less than is known, it is read again so soon ..."""
    longest_pause_seconds: float = 600.0
    """... and after each further one twice as long up to this."""


class Source(Protocol):
    """Where the agent gets the pods of its node from."""

    listed: Callable[[], None]
    """Called after every new list."""

    @property
    def pods(self) -> tuple[core.Pod, ...]:
        """The present list."""

    @property
    def age(self) -> float | None:
        """Seconds since the list was true, None before the first one."""

    @property
    def source(self) -> str:
        """Who gave the present list."""

    @property
    def problem(self) -> str:
        """Why the list may not be current, empty when it is."""

    async def get(self, path: str) -> bytes:
        """Ask the kubelet something else; raises KubeletError where it does not answer."""

    def show(self, figures: metrics.Registry) -> None:
        """Export who tells the pods, and the age of the list."""

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to ask."""

    def hurry(self) -> None:
        """Look soon: a cgroup of a pod has come or gone."""

    def look_now(self) -> None:
        """Look at once: a pod starts that the list does not name."""


def _figure(tells: Callable[[str], bool], name: str) -> float:
    return float(tells(name))


def show_source(
    figures: metrics.Registry, tells: Callable[[str], bool], age: Callable[[], float | None]
) -> None:
    """Export who tells the pods, and the age of the list."""
    source = figures.gauge(
        "koord_agent_pods_source", "1 for the one who tells which pods run here.", ["source"]
    )
    for name in (KUBELET, API_SERVER, NOBODY):
        source.labels(name).set_function(functools.partial(_figure, tells, name))
    figures.gauge(
        "koord_agent_pods_age_seconds", "Since when no list of pods was given."
    ).set_function(lambda: age() or 0.0)


class Pods:
    """The pods of this node as the latest good answer named them."""

    def __init__(
        self,
        kubelet: kubelets.Kubelet,
        kube: client.Client,
        node: str,
        clock: clocks.Clock,
        habits: Habits,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.listed: Callable[[], None] = lambda: None
        """Called after every new list."""
        self._source = NOBODY
        self._kubelet = kubelet
        self._kube = kube
        self._node = node
        self._clock = clock
        self._habits = habits
        self._chance = chance
        self._told: float | None = None
        self._silent_since = clock.monotonic()
        self._asked = -SOON_SECONDS
        self._hurried = -HURRY_SECONDS
        self._nap = clocks.Nap(clock)
        self._urgent = False
        self._fall_back_problem = ""
        self._failures = 0
        self._empty = 0
        self._version = 0
        self._counted: series.Counter | None = None

    @property
    def pods(self) -> tuple[core.Pod, ...]:
        """The present list."""
        return self._kubelet.pods

    @property
    def source(self) -> str:
        """Who gave the present list."""
        return self._source

    @property
    def age(self) -> float | None:
        """Seconds since the list was true, None before the first answer."""
        return None if self._told is None else self._clock.monotonic() - self._told

    @property
    def problem(self) -> str:
        """Why the kubelet is not the one who tells, and what became of asking another."""
        if not self._kubelet.problem or self._habits.fall_back_seconds is None:
            return self._kubelet.problem
        if self.source == API_SERVER:
            told = "the API server tells the pods meanwhile"
        else:
            told = "the last list stands" if self._told is not None else ""
        return "; ".join(filter(None, (self._kubelet.problem, told, self._fall_back_problem)))

    async def get(self, path: str) -> bytes:
        """Ask the kubelet something else; raises KubeletError where it does not answer."""
        return await self._kubelet.get(path)

    def show(self, figures: metrics.Registry) -> None:
        """Offer where pods come from, and for how long no source has answered."""
        show_source(figures, lambda name: self.source == name, lambda: self.age)
        self._counted = figures.counter(
            "koord_agent_pod_lists_total", "Requests for pods by outcome.", ["source", "outcome"]
        )

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to ask."""
        supervisor.start("kubelet", self.ask_kubelet)
        after = self._habits.fall_back_seconds
        if after is not None:
            supervisor.start("fall back", lambda: self.fall_back(after))

    def hurry(self) -> None:
        """Ask soon: a group of a pod has come or gone."""
        now = self._clock.monotonic()
        calm = now - self._hurried >= HURRY_SECONDS
        self._hurried = now
        if calm and now - self._asked >= SOON_SECONDS:
            self._nap.wake()

    def look_now(self) -> None:
        """Ask at once: a pod starts that the list does not name."""
        self._urgent, self._hurried = True, self._clock.monotonic()
        self._nap.wake()

    async def ask_kubelet(self) -> None:
        """Ask the kubelet for ever."""
        while True:
            before = self._kubelet.problem
            self._asked, self._urgent = self._clock.monotonic(), False
            good = await self._kubelet.refresh()
            if good:
                self._take_kubelet()
            self._count(KUBELET, good=good)
            if self._kubelet.problem != before:
                _logger.info("kubelet asked good=%s problem=%r", good, self._kubelet.problem)
            await self._nap.rest(self._pause(good))
            if self._urgent:
                await self._clock.sleep(
                    max(0.0, self._asked + NOW_SECONDS - self._clock.monotonic())
                )

    async def fall_back(self, after: float) -> None:
        """Read the API server for ever, whenever the kubelet is silent for so long."""
        due = self._first(after)
        while True:
            silent = self._silent_since
            await self._clock.sleep(max(0.001, due - self._clock.monotonic()))
            if silent != self._silent_since:
                due = self._first(after)
                continue
            due = self._clock.monotonic() + await self._read()

    def _first(self, after: float) -> float:
        """Return when the API server may be read for the first time."""
        return self._silent_since + after * (1 + self._chance())

    def _pause(self, good: bool) -> float:
        ordinary = self._habits.interval_seconds
        if not good:
            return min(AGAIN_SECONDS, ordinary)
        hurried = self._clock.monotonic() - self._hurried < HURRY_SECONDS
        return min(SOON_SECONDS, ordinary) if hurried else ordinary

    def _take_kubelet(self) -> None:
        self._told = self._clock.monotonic()
        # It is not silent before it was asked again.
        self._silent_since = self._told + self._habits.interval_seconds
        self._version = pod_list_client.newest(self.pods)
        self._failures = self._empty = 0
        self._fall_back_problem = ""
        self._now_from(KUBELET)
        self.listed()

    async def _read(self) -> float:
        """Read the API server once; return the pause until the next time."""
        silent = self._silent_since
        try:
            version, pods = await pod_list_client.listed(self._kube, self._node)
            if silent != self._silent_since:
                return 0.0
            self._believe(version, pods)
        except (errors.KubeError, pod_list_client.ListedError) as error:
            self._failures += 1
            problem = f"pods cannot be read from the API server: {error}"
            if problem != self._fall_back_problem:
                _logger.warning("%s", problem)
            self._fall_back_problem = problem
            self._count(API_SERVER, good=False)
        else:
            self._failures, self._fall_back_problem = 0, ""
            self._count(API_SERVER, good=True)
        habits = self._habits
        pause = habits.pause_seconds
        if self._failures:
            again = habits.again_seconds * 2.0 ** min(self._failures - 1, 10)
            pause = min(again, habits.longest_pause_seconds)
        return pause * (0.75 + 0.5 * self._chance())

    def _believe(self, version: int, pods: tuple[core.Pod, ...]) -> None:
        if version < self._version:
            raise pod_list_client.ListedError(
                f"its answer is as of version {version}, and {self._version} is known"
            )
        merged = pod_list_client.merged(self.pods, pods)
        self._empty = 0 if merged else self._empty + 1
        if self.pods and not merged and self._empty < kubelets.EMPTY_ANSWERS_BELIEVED:
            raise pod_list_client.ListedError(
                f"empty answer {self._empty} of {kubelets.EMPTY_ANSWERS_BELIEVED}, not believed"
            )
        self._kubelet.adopt(merged)
        self._version = version
        self._told = self._clock.monotonic()
        self._now_from(API_SERVER)
        self.listed()

    def _now_from(self, source: str) -> None:
        if source != self.source:
            _logger.info("source of pods changed source=%s before=%s", source, self.source)
        self._source = source

    def _count(self, source: str, *, good: bool) -> None:
        if self._counted is not None:
            self._counted.labels(source, "good" if good else "failed").inc()
