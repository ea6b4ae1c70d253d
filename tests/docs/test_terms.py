"""No page of the manual leaves a term unexplained: the glossary has it, or the page says it."""

import pathlib
import re

import pytest

from api import resources
from api.kubernetes import crds

DOCS = pathlib.Path(__file__).parents[2] / "docs"
GLOSSARY = DOCS / "glossary.md"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "contributing")
TERMS = re.findall(r"^\*\*(.+?)\*\*: ", GLOSSARY.read_text(), re.M)
CODE = re.compile(r"^```.*?^```$|`[^`]*`", re.M | re.S)
TARGET = re.compile(r"\]\([^)]*\)")
# Acronyms, and words with a capital letter in them.
TERM = re.compile(
    r"\b(?:[A-Z]{2,}[a-z]?(?:[A-Z][a-z]+)*|[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+|[A-Z]+i?B)\b"
)
CHARTED = {"ENTITLED", "GUARANTEED", "BORROWED", "LENT", "USED", "WAITING", "CAP"}
"""Columns of a table, which a page explains by their names."""
WORDS = {
    "API", "CPU", "CSS", "CSV", "DNS", "GiB", "HTML", "HTTP", "HTTPS", "ID", "JSON",
    "JavaScript", "KB", "KiB", "MB", "MiB", "OpenAPI", "PNG", "QPS", "RAM", "README", "RFC",
    "SHA", "SIGHUP", "SIGKILL", "SIGTERM", "TLS", "UID", "URL", "UTC", "UUID", "YAML",
}  # fmt: skip
"""What everybody brings along who reads about computers."""
KUBERNETES = {
    "AdmissionReview", "AverageValue", "BestEffort", "ConversionReview", "CREATE", "CronJob",
    "DELETE", "HPA", "HorizontalPodAutoscaler", "KubeSchedulerConfiguration", "NetworkPolicy",
    "NotBestEffort", "PreFilter", "PreferNoSchedule", "UPDATE",
    "ValidatingAdmissionPolicy", "VPA", "VerticalPodAutoscaler",
}  # fmt: skip
"""Words of Kubernetes besides its kinds."""
OTHERS = {
    "AKS", "AMD", "BuildKit", "CloneSet", "CycloneDX", "GKE", "JobSet", "MPIJob", "MetaX", "NVIDIA",
    "OCI", "OpenKruise", "PyTorchJob", "RayCluster", "RayJob", "RayService", "TaskManager",
    "USENIX", "VXLAN", "WireGuard",
}  # fmt: skip
"""Names of makers, of other projects and of their kinds."""
JARGON = {
    "agent", "amplification", "arbitration", "cgroup", "cpuset", "descheduler", "drift",
    "extender", "field manager", "gang", "in place", "interference", "journal", "live switch",
    "nominated", "observe mode", "overcommit", "quorum", "receipt", "resctrl", "scheduling gate",
    "scorecard", "snapshot", "stand-in", "stretch", "suppression", "tick", "webhook",
}  # fmt: skip
"""Words that mean something of their own here and begin like any other word."""
KINDS = {
    one.kind
    for one in vars(resources).values()
    if isinstance(one, resources.Resource) and "koordinator" not in one.group
}
KNOWN = {*WORDS, *KUBERNETES, *OTHERS, *KINDS, *CHARTED, *TERMS}


def singular(word):
    """What a word may be the plural of, and the word."""
    yield word
    for ending, instead in (("s", ""), ("es", ""), ("ies", "y")):
        if word.endswith(ending):
            yield word.removesuffix(ending) + instead


def is_explained(before, after):
    """Whether a page explains a term where it is first used.

    It is a link or part of one, set in italic or bold because it is defined there, followed by its
    meaning in parentheses or stands in them after it, or names a section or a row of a table.
    What was code before is the name of a value, which stood where that value is explained.
    """
    line = before.rpartition("\n")[2]
    return (
        before.rfind("[") > before.rfind("]")
        or before.endswith(("*", "("))
        or after.startswith((" (", "* ("))
        or line.startswith("#")
        or re.fullmatch(r"\|[^|]*", line) is not None
    )


def _left(code):
    """What is left of code: of a name that people write, the name alone."""
    name = code[0].strip("`")
    return f"`{name}`" if TERM.fullmatch(name) else "``"


def unexplained(text):
    """The terms of a page that nobody explains."""
    text = TARGET.sub("]", CODE.sub(_left, text))
    seen = set()
    for found in TERM.finditer(text):
        word = found[0]
        if text[found.start() - 1 : found.start()] == "`":
            seen.add(word)
            continue
        known = KNOWN & set(singular(word)) or seen & set(singular(word))
        if not known and not is_explained(text[: found.start()], text[found.end() :]):
            yield word
        seen.add(word)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_term_is_in_the_glossary_or_explained_where_it_is_first_used(page):
    assert sorted(set(unexplained(page.read_text()))) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("The XYZ turns.", ["XYZ"], id="nothing says what it is"),
        pytest.param("The XYZ (a wheel) turns. An XYZ turns.", [], id="said at once"),
        pytest.param("The wheel (XYZ) turns.", [], id="the name of what was said"),
        pytest.param("An *XYZ* is a wheel. XYZs turn.", [], id="defined"),
        pytest.param("The [XYZ](wheels.md) turns.", [], id="linked"),
        pytest.param("The XYZ turns; see [the XYZ](w.md).", ["XYZ"], id="linked too late"),
        pytest.param("## XYZ\n\nA wheel.", [], id="a section of its own"),
        pytest.param("| XYZ | a wheel |", [], id="the name of a row"),
        pytest.param("| wheel | XYZ |", ["XYZ"], id="in another cell"),
        pytest.param("`a XYZ` and [x](XYZ.md)\n```\nXYZ\n```\n", [], id="code and addresses"),
        pytest.param("`XYZ` turns. With XYZ", [], id="a value that was named before"),
        pytest.param("With XYZ; `XYZ`", ["XYZ"], id="a value that is named later"),
        pytest.param("A CPU, GPUs, PodGroups and Pods", [], id="known"),
        pytest.param("A TurboFan.", ["TurboFan"], id="a name with capitals"),
    ],
)
def test_a_term_that_nobody_explains_is_found(text, left):
    assert list(unexplained(text)) == left


def test_every_kind_of_ours_is_in_the_glossary():
    kinds = {one["spec"]["names"]["kind"] for one in crds.documents().values()}
    assert kinds - set(TERMS) == set()


def test_words_that_mean_something_of_their_own_are_in_the_glossary():
    assert JARGON - set(TERMS) == set()


def test_the_glossary_has_no_term_that_no_page_uses():
    text = " ".join(page.read_text().lower() for page in PAGES if page != GLOSSARY)
    assert [term for term in TERMS if term.lower() not in text] == []


def test_the_glossary_is_sorted_and_says_each_term_once():
    assert [term.lower() for term in TERMS] == sorted({term.lower() for term in TERMS})
