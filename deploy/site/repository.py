"""What the manual's site takes from the rest of the repository: a hook of mkdocs.

Examples become one page. A link to another file of the repository becomes its path, because the
site does not know from where its reader got the sources. Terms of the glossary that look like names
show their meaning wherever they stand.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs import exceptions
from mkdocs.structure import files

ROOT = Path(__file__).parents[2]
EXAMPLES = "examples.md"
_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")
_FETCHED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)="(https?://[^"]+)""")
_README = "examples/README.md"
_GLOSSARY = "glossary.md"
_EVERYWHERE = {"CPU"}
"""Too well known to be underlined on every page."""
_TERM = re.compile(r"^\*\*(\w*[A-Z]\w*)\*\*: (.+)$", re.M)


def on_files(found: files.Files, config: Any) -> files.Files:
    """Add the page of the examples: their table, and below it each file."""
    parts = [(ROOT / _README).read_text(encoding="utf-8")]
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        parts.append(f"## {path.name}\n\n```yaml\n{text}```\n")
    page = re.sub(r"\]\((\w+)\.yaml\)", r"](#\1yaml)", "\n".join(parts))
    found.append(files.File.generated(config, EXAMPLES, content=page))
    return found


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links that lead out of the manual."""
    folder = posixpath.dirname(page.file.src_uri)

    def rewritten(match: re.Match[str]) -> str:
        text, link = match.groups()
        path = posixpath.normpath(posixpath.join("docs", folder, link.partition("#")[0]))
        if path.startswith("docs/"):
            return match.group()
        if path == _README:
            return f"[{text}]({posixpath.relpath(EXAMPLES, folder or '.')})"
        return f"`{path}`" if text in path else f"{text} (`{path}`)"

    text = _LINK.sub(rewritten, markdown)
    return text if page.file.src_uri == _GLOSSARY else f"{text}\n\n{meanings()}"


def meanings() -> str:
    """Return the terms of the glossary as abbreviations, which browsers explain in place."""
    glossary = (ROOT / "docs" / _GLOSSARY).read_text(encoding="utf-8")
    found = [(term, said) for term, said in _TERM.findall(glossary) if term not in _EVERYWHERE]
    return "\n".join(f"*[{term}]: {said}" for term, said in found)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that fetches something from another host: the site is read offline as well."""
    if fetched := _FETCHED.search(output):
        raise exceptions.PluginError(f"{page.file.src_uri} fetches {fetched.group(1)}")
    return output
