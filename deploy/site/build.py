"""Build this version of the manual's site, beside others: `python deploy/site/build.py`."""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from deploy.image import build as images
from deploy.release import archives
from deploy.site import versions

ROOT = pathlib.Path(__file__).parents[2]
SITE = ROOT / "build" / "site"


def build(site: pathlib.Path) -> str:
    """Build into the folder of the version, every link checked; returns the version."""
    version = images.version(ROOT)
    shutil.rmtree(site / version, ignore_errors=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file"),
            *(str(ROOT / "mkdocs.yml"), "--site-dir", str(site / version)),
        ],
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            # The sitemap says when pages were made: the same sources give the same bytes.
            "SOURCE_DATE_EPOCH": str(archives.EPOCH),
        },
        check=True,
    )
    versions.share(site)
    return version


def main() -> int:
    """Build into build/site and tell how it is looked at."""
    try:
        version = build(SITE)
    except subprocess.CalledProcessError as error:
        return error.returncode
    print(f"{SITE / version}; look at it: python3 -m http.server --directory {SITE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
