"""Strict defaults for every test: a clean environment, virtual time, nothing left behind."""

import asyncio
import gc
import inspect
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest

from process.runtime.clock import ManualClock

# How fast examples are drawn says more about the machine's neighbours than about the test.
_UNTIMED = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# The same commit gives the same verdict; `make explore` draws new examples, and many more of them.
hypothesis.settings.register_profile("koord", _UNTIMED, max_examples=25, derandomize=True)
hypothesis.settings.register_profile("explore", _UNTIMED, max_examples=1000)
hypothesis.settings.load_profile("koord")

# Only the outermost conftest may name plug-ins: this one adds --plane and the planes.
pytest_plugins = (
    "tests.planes.plugin",
    "tests.planes.assembled",
    "tests.planes.stage",
    "tests.runner.workers",
)

# The folders of tests hold mostly trees of cgroups and of /proc, which the kernel also keeps in
# memory: a disk would have to write and to delete some hundred thousand small files.
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES = 2 << 30
_GARBAGE = (20_000, 20, 20)

_OUTSIDE = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def pytest_configure() -> None:
    """Spare the garbage collector and the disk what costs every run of the tests much."""
    # Collecting makes a million objects and drops few; looking through them takes a third of it.
    gc.disable()
    _use_memory()


def pytest_collection_finish() -> None:
    """Leave out of every later garbage collection what stays until the end."""
    # With the little that does not: to look for it takes a second before the first test can run.
    gc.freeze()
    # A young object mostly dies with its test; to look for cycles every 700 objects, as Python
    # does, takes a tenth of the processor time of tests with many tasks.
    gc.set_threshold(*_GARBAGE)
    gc.enable()


def _use_memory() -> None:
    """Keep the folders of tests in memory, if there is enough of it and programs may run there."""
    if os.environ.get("KOORD_E2E") or not _MEMORY.is_dir():
        return
    found = os.statvfs(_MEMORY)
    if found.f_bavail * found.f_frsize >= _MEMORY_BYTES and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask for what only some tests need: a fixture for all costs each of them more than it does."""
    for item in items:
        if inspect.iscoroutinefunction(getattr(item, "function", None)):
            _asked(item, "_no_leaks")
        if item.get_closest_marker("since"):
            _asked(item, "_since")


def _asked(item: pytest.Item, fixture: str) -> None:
    """Set a fixture up after those of whole sessions and before all others of the test."""
    asked: list[str] = getattr(item, "fixturenames", [])
    if fixture not in asked:
        asked.insert(asked.index("_clean_environment"), fixture)


@pytest.fixture(autouse=True)
def _clean_environment() -> Iterator[None]:
    """No test reaches the cluster, the proxies or the settings of whoever runs it."""
    outside = [
        name
        for name in os.environ
        if name in _OUTSIDE or name.upper() in _PROXIES or name.startswith("KOORD_")
    ]
    kept = {name: os.environ.pop(name) for name in outside}
    yield
    os.environ.update(kept)


@pytest.fixture
async def _no_leaks() -> AsyncIterator[None]:
    """Asynchronous tests end with the tasks and sockets they began with."""
    # Set up before all other fixtures of a test, hence torn down after them.
    me = asyncio.current_task()
    tasks = asyncio.all_tasks()
    sockets = _sockets()
    yield
    for _ in range(100):
        left = {task for task in asyncio.all_tasks() - tasks if task is not asyncio.current_task()}
        still_open = _sockets() - sockets
        if not left and not still_open:
            return
        # Closed connections need a moment to say goodbye, in real time.
        await asyncio.sleep(0.005)
    assert not (left - {me}), f"tasks left running: {sorted(map(repr, left))}"
    assert not still_open, f"sockets left open: {sorted(still_open)}"


def _sockets() -> set[int]:
    """Return the inodes of the sockets that are open; twice in each asynchronous test, so cheap."""
    found = set()
    with os.scandir("/proc/self/fd") as entries:
        for entry in entries:
            try:
                status = os.fstat(int(entry.name))
            except OSError:
                # Another thread has closed it in between.
                continue
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    return found


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still until the test advances it."""
    return ManualClock()
