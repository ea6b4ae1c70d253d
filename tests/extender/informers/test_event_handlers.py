"""What the watches tell reaches the log where people have to know of it."""

import logging

import msgspec
import pytest

from api.kubernetes import core
from extender.informers import event_handlers
from extender.state import records
from kube.informers import store
from process.configuration import switches
from process.runtime import clock
from tests.extender.clusters import slots


@pytest.mark.parametrize(("text", "told"), [("1", 0), ("much", 1)])
def test_a_bound_pod_whose_allocation_cannot_be_read_is_named_once(
    picture, make, caplog, text, told
):
    stores = [store.Store() for _ in range(6)]
    live = switches.Switches("extender")
    event_handlers.connect(
        event_handlers.Informers(*stores), picture.books, live, clock.ManualClock()
    )
    projector = records.Projector(codecs=[slots.Slots()])
    notes = {slots.ANNOTATION: text}
    raw = make.pod("p", node="n1", annotations=notes)
    with caplog.at_level(logging.WARNING):
        for version in (1, 2):
            raw["status"]["conditions"] = [{"type": "Ready", "status": "True"}][: version - 1]
            record = projector.pod(msgspec.convert(raw, core.Pod))
            stores[0].put(store.Meta("default/p", "uid-p", version), record)
    named = [line for line in caplog.messages if "cannot be read pod=default/p" in line]
    assert len(named) == told
    picture.truth["default/p"] = record
    assert picture.problems() == []
