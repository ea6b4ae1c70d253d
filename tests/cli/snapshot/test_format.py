"""The file of a snapshot: what is read back, and what is refused."""

import gzip
import json

import pytest

from cli.snapshot import format as formats

POD = {"metadata": {"name": "p", "namespace": "d"}, "spec": {}}
SNAPSHOT = formats.Snapshot(
    taken_at="2026-07-01T12:00:00Z", objects={"pods": (POD,)}, unread={"nodes": "403: no"}
)


def packed(**members):
    document = {"kind": formats.KIND, "version": 1, "takenAt": "2026-07-01T12:00:00Z"}
    return gzip.compress(json.dumps(document | members).encode())


def test_what_was_written_is_read_and_equal_snapshots_are_equal_bytes():
    data = formats.encode(SNAPSHOT)
    assert formats.decode(data) == SNAPSHOT
    assert formats.encode(formats.decode(data)) == data


def test_members_and_resources_that_are_not_known_are_skipped():
    found = formats.decode(packed(weather="fine", objects={"moons": [POD], "pods": [POD]}))
    assert found.objects["pods"] == (POD,)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(7, id="a number"),
        pytest.param([], id="a list"),
        pytest.param({"metadata": {}}, id="no name"),
        pytest.param({"metadata": {"name": 7}}, id="a name that is no text"),
    ],
)
def test_an_object_of_an_unexpected_shape_is_named_and_left_out(bad):
    found = formats.decode(packed(objects={"pods": [POD, bad]}))
    assert found.objects["pods"] == (POD,)
    assert found.unreadable == ("pods 1",)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "ends early", id="empty"),
        pytest.param(b"{}", "no gzip", id="not packed"),
        pytest.param(formats.encode(SNAPSHOT)[:-9], "ends early", id="cut"),
        pytest.param(formats.encode(SNAPSHOT) + b"x", "bytes follow", id="longer"),
        pytest.param(gzip.compress(b"nonsense"), "no JSON", id="no JSON"),
        pytest.param(gzip.compress(b"[" * 100_000), "no JSON", id="nested"),
        pytest.param(packed(kind="Pod"), "kind is 'Pod'", id="another kind"),
        pytest.param(packed(version=2), "version 2; this release reads", id="newer"),
        pytest.param(packed(version=0), "version 0", id="no version"),
        pytest.param(packed(objects=[]), "shape of a snapshot", id="another shape"),
    ],
)
def test_what_is_no_snapshot_is_refused_with_the_reason(data, why):
    with pytest.raises(formats.SnapshotError, match=why):
        formats.decode(data)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        pytest.param(formats.Bounds(packed=10), "larger than", id="packed"),
        pytest.param(formats.Bounds(plain=100), "unpacked", id="plain"),
        pytest.param(formats.Bounds(objects=0), "holds 1 object,", id="objects"),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_held(bounds, why):
    with pytest.raises(formats.SnapshotError, match=why):
        formats.decode(formats.encode(SNAPSHOT), bounds)


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused():
    bomb = gzip.compress(b" " * (64 << 20))
    assert len(bomb) < 1 << 20
    with pytest.raises(formats.SnapshotError, match="unpacked it is larger than 1 MiB"):
        formats.decode(bomb, formats.Bounds(plain=1 << 20))
