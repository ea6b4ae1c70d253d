"""The newest Python of this machine that is newer than this one.

python -m tests.runner.pythons prints its path, or why there is none and ends with 1.
"""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable

KEPT = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
_NAME = re.compile(r"python3\.(\d+)")
_ASKED = "import ensurepip, sys; print(sys.version_info.minor, sys.version_info.releaselevel)"


def newest(folders: Iterable[pathlib.Path], minor: int) -> pathlib.Path | None:
    """Return the newest release above a minor version that starts and can make environments."""
    found = [one for folder in folders if folder.is_dir() for one in folder.iterdir()]
    named = {(int(match[1]), one) for one in found if (match := _NAME.fullmatch(one.name))}
    for version, one in sorted(named, reverse=True):
        if version > minor and _tells(one) == f"{version} final":
            return one
    return None


def _tells(program: pathlib.Path) -> str:
    # Names on the PATH may stand for versions that are not there.
    asked = subprocess.run([program, "-c", _ASKED], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def main() -> int:
    """Print what was found."""
    on_path = [pathlib.Path(one) for one in os.environ.get("PATH", "").split(os.pathsep) if one]
    found = newest([*on_path, *sorted(KEPT.glob("*/bin"))], sys.version_info.minor)
    if found is None:
        print("there is no newer Python on this machine", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
