"""What a snapshot says of one gang, and whether it would fit as things are."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from cli import reading
from cli.explain import gang_story
from cli.gangs import asked_gang, preview
from cli.gangs import cluster as clusters
from cli.snapshot import format as formats

MOST_MEMBERS: Final = 1024
"""Members of a gang up to which it is tried; `koord simulate gang` tries larger ones."""


def facts(snapshot: formats.Snapshot, key: str) -> gang_story.Facts:
    """Return what is known of a gang, and the outcome of a trial where a member waits."""
    found = clusters.build(snapshot)
    gang = found.named(key)
    if gang is None or not gang.count(clusters.WAITS):
        return gang_story.Facts(found, key)
    if len(gang.members) > MOST_MEMBERS or gang.missing > MOST_MEMBERS:
        text = f"koord simulate gang {key} tries whether it would fit."
        return gang_story.Facts(found, key, untried=text)
    try:
        tried = preview.preview(asked_gang.named(snapshot, key))
    except asked_gang.AskedGangError as error:
        return gang_story.Facts(found, key, untried=f"It cannot be tried: {error}.")
    except reading.UNREADABLE as error:
        return gang_story.Facts(found, key, untried=f"It cannot be tried: {reading.why(error)}.")
    return gang_story.Facts(found, key, trial=tried.previews[0], notes=tried.notes)


def concerns(event: Mapping[str, Any], name: str, members: Collection[str]) -> bool:
    """Whether an event is about the PodGroup of a gang or one of its members."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    if about.get("kind") == "PodGroup":
        return bool(about.get("name") == name)
    return about.get("kind") == "Pod" and about.get("name") in members
