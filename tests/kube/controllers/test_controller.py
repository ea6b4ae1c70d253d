"""Store changes become keys, keys are reconciled, failures come back."""

import logging
import random
from collections.abc import Callable

import pytest

from kube.client import errors
from kube.controllers import controller, workqueue
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Desk:
    """A reconcile function that answers as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.answers: dict[str, list[controller.Outcome | Exception]] = {}

    async def reconcile(self, key: str) -> controller.Outcome:
        self.keys.append(key)
        answers = self.answers.get(key)
        answer = answers.pop(0) if answers else controller.Outcome("nothing to do", changed=False)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def registry() -> metrics.Registry:
    return metrics.Registry()


@pytest.fixture
def pods() -> store.Store[str]:
    return store.Store()


@pytest.fixture
def start(
    desk: Desk,
    clock: clocks.ManualClock,
    supervisor: supervise.Supervisor,
    registry: metrics.Registry,
    rng: random.Random,
) -> Callable[..., controller.Controller]:
    def make(workers: int = 1) -> controller.Controller:
        made = controller.Controller(
            "tidy",
            desk.reconcile,
            workqueue.Queue(clock, rng=rng),
            clock,
            workers=workers,
            registry=registry,
        )
        made.start(supervisor)
        return made

    return make


def put(pods: store.Store[str], key: str, version: int, value: str | None) -> None:
    pods.put(store.Meta(key, "u", version), value)


async def test_changes_become_keys(
    desk: Desk,
    start: Callable[..., controller.Controller],
    pods: store.Store[str],
    clock: clocks.ManualClock,
) -> None:
    put(pods, "early", 1, "n1")
    tidy = start(workers=2)
    stop = tidy.watch(pods)
    tidy.watch(pods, lambda change: [f"node/{change.new or change.old}"])
    put(pods, "late", 2, "n2")
    await clock.settle()
    assert sorted(desk.keys) == ["early", "late", "node/n1", "node/n2"]
    stop()
    put(pods, "late", 3, None)
    await clock.settle()
    assert desk.keys[4:] == ["node/n2"]


@pytest.mark.parametrize(
    ("error", "longest"),
    [
        pytest.param(errors.Unreachable("no"), 10, id="unreachable"),
        pytest.param(errors.ServerFailure(503), 10, id="server failure"),
        pytest.param(errors.Invalid(422), 300, id="our own mistake"),
    ],
)
async def test_pauses_are_short_while_the_server_is_away(
    desk: Desk,
    start: Callable[..., controller.Controller],
    clock: clocks.ManualClock,
    error: errors.KubeError,
    longest: float,
) -> None:
    desk.answers["a"] = [error] * 20
    start().queue.add("a")
    await clock.settle()
    pauses = []
    while desk.answers["a"]:
        pauses.append(clock.next_wake or 0)
        await clock.advance(pauses[-1])
    assert longest / 2 <= max(pauses) <= longest


@pytest.mark.parametrize(
    ("answer", "result", "earliest", "latest"),
    [
        pytest.param(controller.Outcome("done", requeue_after=30), "changed", 30, 30, id="later"),
        pytest.param(errors.Unreachable("no"), "failed", 0.05, 0.1, id="unreachable"),
        pytest.param(errors.Conflict(409), "conflict", 0.05, 0.1, id="conflict"),
        pytest.param(errors.Deposed("over"), "failed", 0.05, 0.1, id="deposed"),
        pytest.param(
            errors.TooManyRequests(429, retry_after=12), "failed", 12, 12, id="asked to wait"
        ),
        pytest.param(KeyError("bug"), "failed", 0.05, 0.1, id="unexpected"),
    ],
)
async def test_key_comes_again(
    desk: Desk,
    start: Callable[..., controller.Controller],
    clock: clocks.ManualClock,
    registry: metrics.Registry,
    answer: controller.Outcome | Exception,
    result: str,
    earliest: float,
    latest: float,
) -> None:
    desk.answers["a"] = [answer]
    tidy = start()
    tidy.queue.add("a")
    await clock.settle()
    assert desk.keys == ["a"]
    await clock.advance(earliest - 0.001)
    assert desk.keys == ["a"]
    await clock.advance(latest - earliest + 0.002)
    assert desk.keys == ["a", "a"]
    assert tidy.queue.failures("a") == 0
    await clock.advance(1000)
    assert desk.keys == ["a", "a"]
    for word in (result, "unchanged"):
        labels = {"controller": "tidy", "result": word}
        assert registry.value("koord_controller_reconciles_total", labels) == 1
    labels = {"controller": "tidy"}
    assert registry.value("koord_controller_reconcile_seconds_count", labels) == 2
    assert registry.value("koord_controller_queue_keys", labels) == 0


async def test_every_cycle_ends_in_one_sentence(
    desk: Desk,
    start: Callable[..., controller.Controller],
    clock: clocks.ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="kube.controllers.controller")
    desk.answers["a"] = [controller.Outcome("lent 3 cores")]
    desk.answers["b"] = [ZeroDivisionError("bug")]
    tidy = start()
    for key in ("a", "b", "c"):
        tidy.queue.add(key)
    await clock.settle()
    levels = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert levels[0] == ("INFO", "reconciled controller=tidy key=a outcome=lent 3 cores")
    assert levels[1][0] == "ERROR"
    assert caplog.records[1].exc_info is not None
    assert levels[2] == ("DEBUG", "reconciled controller=tidy key=c outcome=nothing to do")
