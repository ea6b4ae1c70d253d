"""What members say while they wait is chosen for one gang group at a time."""

import types

from domain.gangs import declaration, table
from extender.gangs import queue
from extender.gangs.telling import sayings


class Told:
    """Takes in what members say."""

    def __init__(self):
        self.said = {}

    def say(self, members, said, *, patience=0.0):
        del patience
        self.said |= {uid: said.message for uid, _ in members}


def gangs(*names, least):
    found = table.Table()
    for name in names:
        texts = {
            "gang.scheduling.koordinator.sh/name": name,
            "gang.scheduling.koordinator.sh/min-available": str(least),
        }
        gang = declaration.of_pod("default", texts, texts, declaration.Defaults(), None)
        for number in range(2):
            uid = f"{name}{number}"
            found = found.with_member(table.Member(gang, uid, f"default/{uid}"))
    return found


def chosen():
    told = Told()
    return told, sayings.Sayings(types.SimpleNamespace(telling=told))


def test_places_in_line_are_told_to_one_group_after_the_other():
    told, said = chosen()
    found = {one.id: one for one in gangs("a", "b", "c", least=2).gathered()}
    line = [queue.Waiting(name, 0, 0.0) for name in sorted(found)]
    steps = said.in_line(line, found, {line[1].group})
    next(steps)
    assert set(told.said) == {"a0", "a1"}
    list(steps)
    assert told.said == {
        "a0": "is complete and has place 1 of 3 in line",
        "a1": "is complete and has place 1 of 3 in line",
        "c0": "is complete and has place 3 of 3 in line",
        "c1": "is complete and has place 3 of 3 in line",
    }


def test_what_gangs_lack_is_told_to_one_after_the_other_and_once():
    told, said = chosen()
    found = gangs("a", "b", least=3)
    steps = said.incomplete(found, ())
    next(steps)
    assert not told.said
    next(steps)
    assert len(told.said) == 2
    list(steps)
    assert set(told.said) == {"a0", "a1", "b0", "b1"}
    told.said.clear()
    list(said.incomplete(found, ()))
    assert not told.said
    list(said.incomplete(found.without_member(next(found.get("default/a").members)), ()))
    assert len(told.said) == 1
