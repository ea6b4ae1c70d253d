"""What each process costs before it does anything: time and memory of importing it.

python -m benchmarks.imports [--rounds 5]

Each process is an interpreter of its own that imports what `koord NAME` imports, with the
environment that the chart gives an agent for all. Time is processor time, the start of the
interpreter included; memory is resident, of which pages of files are shared by all processes that
use them.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks import figures
from benchmarks.node import generated_host

_MEASURE = """
import json, resource, sys
import importlib
for name in sys.argv[1:]:
    importlib.import_module(name)
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "ms": 1000 * (used.ru_utime + used.ru_stime),
    "mib": int(lines["VmRSS"].split()[0]) / 1024,
    "anonymous": int(lines["RssAnon"].split()[0]) / 1024,
    "modules": len(sys.modules),
}))
"""
PROCESSES: Final[Mapping[str, tuple[str, ...]]] = {
    "interpreter": (),
    **{
        name: ("cli.main", f"{package}.app", f"{package}.settings", *more)
        for name, package, more in (
            ("extender", "extender", ("uvloop",)),
            ("webhook", "webhook", ("uvloop",)),
            ("manager", "manager", ("uvloop",)),
            ("descheduler", "descheduler", ("uvloop",)),
            ("agent", "agent", ("agent.assembly.nri",)),
            ("device-daemon", "agent.device_daemon", ()),
            ("runtime-proxy", "runtimeproxy", ("uvloop",)),
        )
    },
    "command-line": ("cli.main",),
}


def measure(modules: Sequence[str]) -> dict[str, float]:
    """Import modules into a new interpreter and return what it took."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *modules],
        env={**os.environ, **generated_host.chart_environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    for modules in PROCESSES.values():
        # Once for nothing: the first start writes compiled modules.
        measure(modules)
    taken = [
        {name: measure(modules) for name, modules in PROCESSES.items()}
        for _ in range(chosen.rounds)
    ]
    for name in PROCESSES:
        of = [one[name] for one in taken]
        what = f"of importing {name}, {of[0]['modules']:.0f} modules"
        anonymous = figures.spread([one["anonymous"] for one in of], 1)
        figures.show(
            figures.plain(
                f"imports.{name}.time", f"processor time {what}", "ms", [one["ms"] for one in of]
            ),
            figures.plain(
                f"imports.{name}.rss", f"resident memory {what}", "MiB",
                [one["mib"] for one in of], f"{anonymous} not of files",
            ),
        )  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
