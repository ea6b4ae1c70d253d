"""Messages of NRI against the protobuf library, which the agent does without."""

import hypothesis
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import strategies as st

from agent.nri import messages, protobuf
from tests import draws
from tests import protobuf_messages as wire

SCALARS = {
    "string": st.text(max_size=8),
    "bytes": st.binary(max_size=8),
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
}
_Proto = descriptor_pb2.FieldDescriptorProto


def library():
    """The same messages, made by the library."""
    file = descriptor_pb2.FileDescriptorProto(name="nri_test.proto", package="t", syntax="proto2")
    for kind in messages.SCHEMA:
        made = file.message_type.add(name=kind)
        for field in messages.new(kind).FIELDS.values():
            label = _Proto.LABEL_REPEATED if field.shape else _Proto.LABEL_OPTIONAL
            added = made.field.add(name=field.name, number=field.number, label=label)
            if field.shape == "{}":
                entry = made.nested_type.add(name=f"{field.name.capitalize()}Entry")
                entry.options.map_entry = True
                for number, key in enumerate(("key", "value"), 1):
                    entry.field.add(
                        name=key,
                        number=number,
                        label=_Proto.LABEL_OPTIONAL,
                        type=_Proto.TYPE_STRING,
                    )
                added.type, added.type_name = _Proto.TYPE_MESSAGE, f".t.{kind}.{entry.name}"
            elif field.kind in SCALARS:
                added.type = getattr(_Proto, f"TYPE_{field.kind.upper()}")
            else:
                added.type, added.type_name = _Proto.TYPE_MESSAGE, f".t.{field.kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        kind: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{kind}"))
        for kind in messages.SCHEMA
    }


LIBRARY = library()


def values(kind, depth=3):
    """Any message of a kind, as plain values."""
    found = {}
    for field in messages.new(kind).FIELDS.values():
        if field.shape == "{}":
            one = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)
        elif field.kind in SCALARS:
            one = SCALARS[field.kind]
        elif depth:
            one = st.deferred(lambda kind=field.kind: values(kind, depth - 1))
        else:
            continue
        found[field.name] = st.lists(one, max_size=2) if field.shape == "[]" else one
    return st.fixed_dictionaries({}, optional=found)


def ours(kind, said):
    """The message of plain values."""
    fields = messages.new(kind).FIELDS
    given = {}
    for name, value in said.items():
        field = fields[name]
        if field.is_plain:
            given[name] = value
        elif field.shape:
            given[name] = [ours(field.kind, one) for one in value]
        else:
            given[name] = ours(field.kind, value)
    return messages.new(kind, **given)


def plain(message):
    """What a message says, with zeros where it says nothing."""
    found = {}
    for name, field in message.FIELDS.items():
        value = getattr(message, name)
        if field.shape == "{}":
            found[name] = dict(value)
        elif field.is_plain:
            found[name] = list(value) if field.shape else value
        elif field.shape:
            found[name] = [plain(one) for one in value]
        else:
            found[name] = plain(value) if message.has_field(name) else None
    return found


KINDS = ["CreateContainerRequest", "CreateContainerResponse", "ContainerUpdate", "Request"]


@pytest.mark.parametrize("kind", KINDS)
@hypothesis.settings(max_examples=draws.at_least(12))
@hypothesis.given(data=st.data())
def test_messages_are_those_of_the_library(kind, data):
    said = data.draw(values(kind))
    made = ours(kind, said)
    theirs = LIBRARY[kind](**said)
    assert LIBRARY[kind].FromString(made.to_bytes()) == theirs
    back = messages.read(kind, theirs.SerializeToString())
    assert plain(back) == plain(made)
    assert made.byte_size() == len(made.to_bytes())


@hypothesis.settings(max_examples=draws.at_least(60))
@hypothesis.given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_an_error(data):
    try:
        messages.read("CreateContainerRequest", data).to_bytes()
    except messages.DecodeError:
        return


@pytest.mark.parametrize(
    "data",
    [b"\x0a\xff", b"\x08", b"\x08" + b"\xff" * 11, b"\x0b", b"\x00\x01", b"\x0d\x01"],
    ids=["length", "number", "long-number", "wire-type", "field-0", "fixed"],
)
def test_what_is_no_message_is_an_error(data):
    with pytest.raises(messages.DecodeError):
        messages.read("CreateContainerRequest", data)


def test_a_field_of_another_wire_type_is_passed_over():
    data = wire.field(1, 5) + wire.field(2, b"app")
    assert plain(messages.read("PodSandbox", data))["name"] == "app"


def test_an_absent_message_is_not_there_until_something_in_it_is_set():
    made = messages.new("LinuxResources")
    assert made.cpu.cpus == ""
    assert not made.has_field("cpu")
    assert made.to_bytes() == b""
    made.cpu.shares.value = 0
    assert made.has_field("cpu")
    assert messages.read("LinuxResources", made.to_bytes()).cpu.has_field("shares")


def test_two_parts_of_one_message_are_one():
    data = wire.field(1, wire.field(1, b"id")) + wire.field(1, wire.field(2, b"name"))
    found = messages.read("CreateContainerRequest", data).pod
    assert (found.id, found.name) == ("id", "name")


def test_unknown_fields_cannot_be_named():
    with pytest.raises(TypeError, match="no field nothing"):
        messages.new("PodSandbox", nothing=1)
    with pytest.raises(AttributeError, match="no field nothing"):
        messages.new("PodSandbox").nothing = 1
    with pytest.raises(AttributeError, match="no field nothing"):
        _ = messages.new("PodSandbox").nothing
    with pytest.raises(TypeError, match="plain values"):
        protobuf.Repeated().add()
