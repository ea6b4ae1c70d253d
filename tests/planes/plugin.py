"""Fixtures that put the same scenario on the simulator or on a real control plane."""

import json
import os
import pathlib

import pytest
import pytest_asyncio

from api import resources
from simulator.processes import credentials
from tests.e2e import binaries as builds
from tests.planes import definitions, raw, real, simulated, world
from tests.planes.admission import admission
from tests.planes.programs import kubectl as kubectls
from tests.planes.scheduler import scripted

SWITCH = "KOORD_E2E"
E2E_TIMEOUT = 120
# Folders whose tests share one plane, so their tests share one event loop.
FOLDERS = ("e2e", "scenarios")


def pytest_addoption(parser):
    parser.addoption(
        "--plane",
        choices=("simulator", "real"),
        default="simulator",
        help="what the scenarios run on: the simulator (default) or the real control plane",
    )


def pytest_collection_modifyitems(config, items):
    tests = pathlib.Path(__file__).parent.parent
    on_real = config.getoption("--plane") == "real"
    for item in items:
        if not item.path.is_relative_to(tests):
            continue
        folder = item.path.relative_to(tests).parts[0]
        if folder not in FOLDERS:
            continue
        if folder == "e2e" or on_real:
            item.add_marker(pytest.mark.e2e)
            # It would come before the one of a whole module.
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(E2E_TIMEOUT))
        if pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
    # Controllers may sleep for half a minute after the API server went away, so these come last.
    # Processes take whole files, so such tests have files of their own.
    items.sort(key=lambda item: item.get_closest_marker("disturbs") is not None)


@pytest.fixture(scope="session")
def control_plane_binaries():
    """The folder with the real binaries; skips unless the run asked for them."""
    if not os.environ.get(SWITCH):
        pytest.skip("needs a real control plane; run make e2e")
    release = builds.version()
    found = builds.find(release)
    if found is None and not builds.can_build():
        pytest.skip("this machine has neither the control plane binaries nor Go to build them")
    return found or builds.build(release)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_plane(control_plane_binaries, tmp_path_factory):
    """One real control plane for the whole run."""
    workdir = tmp_path_factory.mktemp("control-plane") / "state"
    async with real.running(control_plane_binaries, workdir) as plane:
        yield plane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def simulated_plane():
    """One simulator for the whole run."""
    async with simulated.running() as plane:
        yield plane


@pytest.fixture
def _since(request):
    """Skip what the release under test cannot do yet; asked for where a test is marked."""
    marker = request.node.get_closest_marker("since")
    release = request.getfixturevalue("plane").release
    if release < marker.args:
        wanted = ".".join(map(str, marker.args))
        pytest.skip(f"needs Kubernetes {wanted}: {marker.kwargs['reason']}")


@pytest.fixture(scope="session")
def plane(request):
    """The control plane that was asked for."""
    chosen = "real_plane" if request.config.getoption("--plane") == "real" else "simulated_plane"
    return request.getfixturevalue(chosen)


@pytest_asyncio.fixture(loop_scope="session")
async def api(plane):
    """A raw client as administrator."""
    async with raw.connected(plane.server, plane.ca, plane.token) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def here(plane, api):
    """A namespace and nodes of this test's own."""
    async with world.opened(plane, api) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def watched(here):
    """The definitions of what an extender watches; it would wait for them for some seconds."""
    kinds = (resources.NODE_METRICS, resources.SCHEDULE_EXPLANATIONS)
    async with definitions.defined(here.api, *kinds):
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def extender(plane, api):
    """A scripted extender that the plane's scheduler calls during this test."""
    async with scripted.listening(api) as listening:
        # A busy machine must not turn a slow answer into an error, unless a test is about that.
        await plane.start_scheduler(listening.url, filter_timeout_seconds=30)
        try:
            yield listening
        finally:
            await plane.stop_scheduler()


@pytest_asyncio.fixture(loop_scope="session")
async def stock(plane):
    """The plane's scheduler without any extender during this test."""
    await plane.start_scheduler("")
    try:
        yield plane
    finally:
        await plane.stop_scheduler()


@pytest.fixture
def kubectl(plane, tmp_path):
    """An unmodified kubectl that talks to the plane as administrator."""
    return kubectl_of(plane, tmp_path)


def kubectl_of(plane, folder):
    """A kubectl with its home in this folder; skips where there is none."""
    program = builds.kubectl()
    if program is None:
        pytest.skip("kubectl is neither in KUBEBUILDER_ASSETS nor installed")
    path = folder / "kubeconfig"
    config = credentials.kubeconfig(plane.server, plane.ca, plane.token)
    path.write_text(json.dumps(config))
    return kubectls.Kubectl(program, path)


@pytest_asyncio.fixture(loop_scope="session")
async def hook(tmp_path):
    """An admission webhook that this test answers."""
    async with admission.listening(tmp_path) as listening:
        yield listening
