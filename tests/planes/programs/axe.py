"""axe-core, which looks for faults of accessibility in a page; taken from the npm registry once."""

import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.e2e import golang

RELEASE = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
MEMBER = "package/axe.min.js"
PATIENCE = 60.0
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def source():
    """Return its script, None where it is not kept here and npm cannot get it."""
    file = golang.cache("tools", f"axe-{RELEASE}.min.js")
    with golang.alone(file.parent):
        if not (file.exists() and _is_right(file.read_bytes())):
            found = _packed()
            if found is None:
                return None
            file.write_bytes(found)
    return file.read_text(encoding="utf-8")


def _packed():
    if shutil.which("npm") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        words = ["npm", "pack", "--silent", "--ignore-scripts", f"axe-core@{RELEASE}"]
        try:
            subprocess.run(words, cwd=folder, check=True, timeout=PATIENCE, capture_output=True)
        except (subprocess.SubprocessError, OSError):
            return None
        package = next(Path(folder).glob("*.tgz")).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        script = archive.extractfile(MEMBER).read()
    assert _is_right(script), f"axe-core {RELEASE} is not the one that was looked at"
    return script


def _is_right(script):
    return hashlib.sha256(script).hexdigest() == SHA256


async def violations(tab, script):
    """Return what is wrong in the page that a tab shows: rule, element, and why."""
    await tab.run(f"window.axe ? null : (() => {{ {script} }})(); null")
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    return await tab.run(
        f"axe.run(document, {options}).then((found) => found.violations.flatMap((rule) =>"
        " rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)}`)))"
    )
