"""A story: what is known of one subject, chapter by chapter, in sentences and in figures."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec

from cli import reading

P = ParamSpec("P")

_INDENT = "  "


@dataclasses.dataclass(frozen=True, slots=True)
class Chapter:
    """One part of the way that a pod or a node's figure takes through the system."""

    name: str
    sentences: tuple[str, ...]
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The values behind the sentences."""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Where something was asked for, and why nothing came if nothing did."""

    name: str
    reached: bool
    note: str = ""

    def sentence(self) -> str:
        """Return it for people."""
        return f"{self.name}: {self.note}" if self.note else self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Story:
    """Everything that is said about one subject."""

    subject: str
    verdict: str
    chapters: tuple[Chapter, ...] = ()
    helps: tuple[str, ...] = ()
    """What would help, each on its own."""
    sources: tuple[Source, ...] = ()
    found: bool = True
    """Whether the subject exists."""


def guarded(name: str, tell: Callable[P, Chapter], *args: P.args, **more: P.kwargs) -> Chapter:
    """Return a chapter, or one that says why it cannot be told: one bad object hides no other."""
    try:
        return tell(*args, **more)
    except reading.UNREADABLE as error:
        return Chapter(name, (f"This cannot be told: {reading.why(error)}.",))


def document(story: Story) -> dict[str, Any]:
    """Return a story as a document."""
    return {
        "subject": story.subject,
        "found": story.found,
        "verdict": story.verdict,
        "chapters": [
            {
                "name": chapter.name,
                "sentences": list(chapter.sentences),
                "figures": dict(chapter.figures),
            }
            for chapter in story.chapters
        ],
        "wouldHelp": list(story.helps),
        "sources": [dataclasses.asdict(source) for source in story.sources],
    }


def lines(story: Story) -> Iterator[str]:
    """Yield the lines of a story."""
    yield story.verdict
    for chapter in story.chapters:
        yield from _part(chapter.name.capitalize(), chapter.sentences)
    if story.helps:
        yield from _part("What would help, each on its own", story.helps)
    reached = [source.sentence() for source in story.sources if source.reached]
    missed = [source.sentence() for source in story.sources if not source.reached]
    yield from _part("Read", [", ".join(reached)] if reached else [])
    yield from _part("Not reached", missed)


def _part(title: str, sentences: Sequence[str]) -> Iterator[str]:
    if not sentences:
        return
    yield ""
    yield title
    for sentence in sentences:
        yield f"{_INDENT}{sentence}"


def ended(text: str) -> str:
    """Close a sentence of another source."""
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
