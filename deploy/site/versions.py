"""What the versions of the manual's site share: `python deploy/site/versions.py FOLDER` renews it.

Each version lies in a folder of its own. Beside them stand the list from which every page offers
the other versions, the alias `latest`, and a page that leads to it.
"""

import html
import json
import pathlib
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from packaging import version as versions

LATEST: Final = "latest"
LIST: Final = "versions.json"
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Koord</title>
<script>location.replace("{link}" + location.search + location.hash)</script>
<noscript><meta http-equiv="refresh" content="0; url={link}"></noscript>
<a href="{link}">Go on to version {version}</a>
</html>
"""


class NoVersionError(Exception):
    """There is no version in the folder; says which one."""


def found(site: pathlib.Path) -> list[str]:
    """Return the versions that lie in a folder, the newest first."""
    names = [path.parent.name for path in site.glob("*/index.html")]
    return sorted((name for name in names if _is_version(name)), key=versions.Version, reverse=True)


def latest(names: Sequence[str]) -> str:
    """Return the newest release, or the newest version where none was released yet."""
    released = [name for name in names if not versions.Version(name).is_prerelease]
    return [*released, *names][0]


def share(site: pathlib.Path) -> str:
    """Write the list of versions, the alias and the first page; returns what the alias means."""
    names = found(site)
    if not names:
        raise NoVersionError(f"{site} holds no folder of a version, such as 1.0.0/index.html")
    newest = latest(names)
    rows = [
        {"version": name, "title": name, "aliases": [LATEST] if name == newest else []}
        for name in names
    ]
    (site / LIST).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(site / LATEST, ignore_errors=True)
    for page in sorted((site / newest).rglob("*.html")):
        _lead(site, f"{LATEST}/{page.relative_to(site / newest).as_posix()}", newest)
    _lead(site, "index.html", newest)
    return newest


def _lead(site: pathlib.Path, place: str, newest: str) -> None:
    """Write a page that leads to the same page of a version, and keeps the anchor."""
    below = place.removeprefix(f"{LATEST}/")
    link = f"{'../' * place.count('/')}{newest}/{below}"
    text = _PAGE.format(link=html.escape(link), version=html.escape(newest))
    (site / place).parent.mkdir(parents=True, exist_ok=True)
    (site / place).write_text(text, encoding="utf-8")


def _is_version(name: str) -> bool:
    try:
        versions.Version(name)
    except versions.InvalidVersion:
        return False
    return True


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("name the folder in which the versions lie")
    try:
        print(f"{LATEST} is {share(pathlib.Path(sys.argv[1]))}")
    except NoVersionError as error:
        sys.exit(str(error))
