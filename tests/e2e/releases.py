"""Run the end-to-end tests on every supported release, one after another, and count."""

import re
import subprocess
import sys

RELEASES = ("1.37.2", "1.36.3", "1.34.4", "1.30.14")
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")


def run(release):
    """Run on one release, showing what it says; returns its status and its last counts."""
    command = ["make", "--no-print-directory", "e2e", f"K8S_VERSION={release}"]
    counts = {}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as made:
        for line in made.stdout:
            print(line, end="", flush=True)
            found = {what.rstrip("s"): int(number) for number, what in COUNT.findall(line)}
            if " in " in line and found:
                counts = found
    return made.returncode, counts


def main():
    """Say for each release how many tests ran; fail when one failed or none ran."""
    lines, broken = [], False
    for release in RELEASES:
        status, counts = run(release)
        broken = broken or status != 0 or not counts.get("passed")
        told = ", ".join(f"{number} {what}" for what, number in counts.items()) or "nothing ran"
        lines.append(f"== e2e on Kubernetes {release}: {told}")
    print("\n".join(lines), flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
