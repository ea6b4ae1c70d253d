"""What a Prometheus would have read from processes that live in virtual time."""

import re

# A label of a process's own gives way to the collector's of the same name, as Prometheus does it.
OWN = re.compile(r'(?:^|(?<=,))(namespace|pod)(?==")')
SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
EVERY_SECONDS = 15.0
NAMESPACE = "koordinator-system"


def lines(exposition, pod, moment):
    """One process's samples with the labels and the time that a collector gives them."""
    given = f'namespace="{NAMESPACE}",pod="{pod}"'
    found = []
    for line in exposition.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            more = "," + OWN.sub(r"exported_\1", labels) if labels else ""
            found.append(f"{name}{{{given}{more}}} {value} {moment:.3f}\n")
    return found


def ended(file):
    """The file with the line that ends OpenMetrics."""
    with file.open("a") as kept:
        kept.write("# EOF\n")
    return file


async def collect(world, file):
    """Read every process again and again, for ever."""
    with file.open("w") as kept:
        while True:
            moment = world.clock.now()
            for name, process in world.processes.items():
                if process.app is not None:
                    text = process.app.registry.exposition()[0].decode()
                    kept.writelines(lines(text, f"koord-{name}", moment))
            kept.flush()
            await world.clock.sleep(EVERY_SECONDS)
