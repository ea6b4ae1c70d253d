"""Build the wheel from a clean copy of the sources; the same sources give the same bytes."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from deploy.release import archives


def build(root: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Return the wheel, which lies in `target`; nothing of an earlier build is in it."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "koord"
        for name in _sources(root):
            place = copy / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, place)
            place.chmod(0o644)
        made = pathlib.Path(scratch) / "made"
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
                *("--no-build-isolation", "--disable-pip-version-check"),
                *("--wheel-dir", str(made), str(copy)),
            ],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(archives.EPOCH)},
            check=True,
        )
        (wheel,) = made.glob("*.whl")
        target.mkdir(parents=True, exist_ok=True)
        return pathlib.Path(shutil.copy(wheel, target / wheel.name))


def _sources(root: pathlib.Path) -> list[str]:
    """Return the files that git knows and the new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().split("\0")
    kept = ("pyproject.toml", "README.md", "LICENSE")
    return [
        name
        for name in names
        if name in kept
        or (
            "/" in name
            and not name.startswith(("tests/", "docs/", "."))
            and (root / name).is_file()
        )
    ]
