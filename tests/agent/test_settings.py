"""Settings of the agent and what importing it costs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent import settings
from benchmarks.node import generated_host
from process.configuration import settings as process_settings

ROOT = Path(__file__).parents[2]
# The image has Python 3.11; 3.13 takes 0.3 MiB more by itself and 0.2 for the same modules.
MOST_KIB = 55 * 1024 + (512 if sys.version_info >= (3, 12) else 0)
# What few agents do is loaded by them alone.
SELDOM = (
    *(
        "agent.observe.cgroups.pressure",
        "agent.observe.cgroups.cycles_per_instruction",
        "agent.observe.cgroups.perf_event",
    ),
    *(
        "agent.observe.cold_memory.multigen_lru",
        "agent.observe.cold_memory.damon",
        "agent.observe.cgroups.resctrl",
    ),
    *(
        "agent.observe.storage.disks",
        "agent.observe.storage.volumes",
        "agent.observe.network.traffic",
    ),
)
HEAVY = (
    *("numpy", "kubernetes_asyncio", "rich", "jsonschema", "cryptography"),
    *("uvloop", "frozenlist._frozenlist", *SELDOM),
)
MEASURE = f"""
import sys
import agent.app
line = next(l for l in open("/proc/self/status") if l.startswith("VmRSS"))
print(line.split()[1], *[name for name in {HEAVY} if name in sys.modules])
"""


def load(**environ):
    return process_settings.load(
        settings.Settings, file=None, environ=environ, prefix="KOORD_AGENT", flags=()
    )


def test_the_node_must_be_named():
    with pytest.raises(process_settings.SettingsError, match="nodeName is required"):
        load()


def test_only_the_name_is_needed():
    loaded = load(KOORD_AGENT_NODE_NAME="n1")
    assert (loaded.node_name, loaded.mode, loaded.tick_seconds) == ("n1", "enforce", 1.0)


def test_every_setting_is_described():
    for described in process_settings.describe(settings.Settings):
        assert described.description, described


@pytest.fixture(scope="module")
def imported():
    # Twice: compiling the modules the first time costs memory that a second start does not need.
    # The rest is what the chart sets for an agent.
    environ = os.environ | generated_host.chart_environment()
    # The image holds compiled modules, so they are kept here as well.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for _ in range(2):
        found = subprocess.run(
            [sys.executable, "-c", MEASURE],
            cwd=ROOT, env=environ, capture_output=True, text=True, check=True,
        )  # fmt: skip
    return found.stdout.split()


def test_importing_the_agent_is_cheap(imported):
    assert int(imported[0]) <= MOST_KIB


def test_nothing_heavy_is_imported(imported):
    assert imported[1:] == []
