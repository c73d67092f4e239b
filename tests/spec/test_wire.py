"""The wire takes whatever comes: a message, or a ProtocolError, and never more bytes than a message may have."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvspec import masks
from kvspec.errors import BadInput
from kvspec.geometry import Array
from kvspec.session.step import Step
from kvspec.wire import framing, messages

TOO_MANY = framing.MOST_TENSORS + 1
SHAPES = st.lists(st.integers(0, 4), max_size=4)
TYPES = st.sampled_from(sorted(framing.TYPES))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
HEADS = st.dictionaries(st.text().filter(lambda name: name != "tensors"), VALUES, max_size=4)


@st.composite
def arrays(draw: st.DrawFn) -> Array | None:
    """Arbitrary bytes as an array, or no array."""
    if draw(st.booleans()):
        return None
    shape, dtype = tuple(draw(SHAPES)), framing.TYPES[draw(TYPES)]
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype).reshape(shape)


TENSORS = st.dictionaries(st.text(), arrays(), max_size=4)
MESSAGES = st.lists(st.tuples(HEADS, TENSORS), min_size=1, max_size=4)


@st.composite
def pieces(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The bytes, cut at arbitrary points."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@given(MESSAGES, st.data())
def test_what_is_encoded_is_decoded_wherever_it_is_cut(messages: list[Any], data: st.DataObject) -> None:
    stream = b"".join(framing.encode(*m) for m in messages)
    decoder = framing.Decoder()
    came = [m for piece in data.draw(pieces(stream)) for m in decoder.feed(piece)]
    assert [head for head, _ in came] == [head for head, _ in messages]
    for (_, found), (_, sent) in zip(came, messages, strict=True):
        assert list(found) == list(sent)
        assert all(same(found[name], sent[name]) for name in sent)
    assert not decoder.busy


def same(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


def test_arrays_that_arrive_can_be_written_on() -> None:
    [(_, tensors)] = framing.Decoder().feed(framing.encode({}, {"a": np.zeros(3, ml_dtypes.bfloat16)}))
    assert tensors["a"] is not None
    tensors["a"][...] = 1


def fed(decoder: framing.Decoder, given: list[bytes], most: int) -> bool:
    """Feed the pieces; whether they were refused. Anything but ProtocolError passes through."""
    try:
        for piece in given:
            for _, tensors in decoder.feed(piece):
                assert sum(a.nbytes for a in tensors.values() if a is not None) <= most
            assert len(decoder._bytes) <= framing.LARGEST_HEADER + len(piece)
    except framing.ProtocolError:
        return True
    return False


NEARLY = st.builds(
    lambda tensors, tail: json.dumps({"id": 1, "tensors": tensors}).encode() + b"\n" + tail,
    VALUES | st.lists(VALUES | st.tuples(st.text(max_size=2), TYPES | VALUES, SHAPES | VALUES), max_size=3),
    st.binary(max_size=40),
)


@settings(max_examples=500)
@given((st.binary(max_size=200) | NEARLY | st.lists(NEARLY, max_size=3).map(b"".join)), st.data())
def test_arbitrary_bytes_are_messages_or_a_protocol_error(stream: bytes, data: st.DataObject) -> None:
    fed(framing.Decoder(largest=64), data.draw(pieces(stream)), most=64)


@given(MESSAGES, st.data())
def test_a_flipped_byte_is_a_message_or_a_protocol_error(messages: list[Any], data: st.DataObject) -> None:
    stream = bytearray(b"".join(framing.encode(*m) for m in messages))
    stream[data.draw(st.integers(0, len(stream) - 1))] ^= data.draw(st.integers(1, 255))
    fed(framing.Decoder(largest=1 << 16), data.draw(pieces(bytes(stream))), most=1 << 16)


BAD_HEADERS = {
    "not_json": b"hello",
    "two_values": b"{} {}",
    "a_list": b"[1]",
    "nan": b'{"id": NaN}',
    "infinity": b'{"id": -Infinity}',
    "latin_1": b'{"id": "\xe9"}',
    "utf_16": '{"id": 1}'.encode("utf-16"),
    "byte_order_mark": b'\xef\xbb\xbf{"id": 1}',
    "deep": b"[" * 100_000,
    "deep_objects": b'{"a":' * 100_000,
    "too_deep": b'{"a":' * 33 + b"1" + b"}" * 33,
    "too_deep_in_lists": b'{"a":' + b"[" * 800 + b"]" * 800 + b"}",
    "beyond_all_numbers": b'{"id": 1e999}',
    "endless_number": b'{"id": ' + b"1" * 5000 + b"}",
    "tensors_no_list": b'{"tensors": {}}',
    "tensors_too_many": json.dumps({"tensors": [[f"{i}", None, []] for i in range(TOO_MANY)]}).encode(),
    "tensor_no_list": b'{"tensors": ["k"]}',
    "tensor_of_two": b'{"tensors": [["k", "f32"]]}',
    "tensor_named_by_number": b'{"tensors": [[1, "f32", []]]}',
    "tensor_twice": b'{"tensors": [["k", null, []], ["k", null, []]]}',
    "dtype_unknown": b'{"tensors": [["k", "f64", [1]]]}',
    "dtype_no_text": b'{"tensors": [["k", ["f32"], [1]]]}',
    "shape_negative": b'{"tensors": [["k", "f32", [-1]]]}',
    "shape_bool": b'{"tensors": [["k", "f32", [true]]]}',
    "shape_float": b'{"tensors": [["k", "f32", [1.0]]]}',
    "shape_number": b'{"tensors": [["k", "f32", 4]]}',
    "shape_long": b'{"tensors": [["k", "f32", [1,1,1,1,1,1,1,1,1]]]}',
    "bytes_too_many": b'{"tensors": [["k", "f32", [268435456]]]}',
    "bytes_too_many_together": b'{"tensors": [["k", "f32", [50000000]], ["v", "f32", [50000000]]]}',
    "bytes_overflow": b'{"tensors": [["k", "f32", [4294967296, 4294967296]]]}',
    "bytes_none_of_too_many": b'{"tensors": [["k", "f32", [0, 268435456, 268435456, 268435456]]]}',
    "size_of_many_digits": b'{"tensors": [["k", "f32", [' + b"9" * 4000 + b", " + b"9" * 4000 + b"]]]}",
}


READ_QUICKLY = (
    b'{"id":1,"message":"append: 2 rows; expected (1, 2)","values":{"meter":{"launches":1}}}',
    b'{"id":1,"op":"mask","parts":[{"window":3},{"bias":"a:b"}]}',
    b'{"id":1,"message":"::","tensors":[["k",null,[]]]}',
    b'{"id":1,"message":"a list of \\"tensors\\":","tensors":[]}',
)


@pytest.mark.parametrize("line", READ_QUICKLY)
def test_colons_in_texts_and_objects_in_lists_are_no_reason_to_read_a_header_slowly(line: bytes) -> None:
    assert framing._quickly(line, 64) == framing._strictly(line, 64)


WORDS = (b"{", b"}", b"[", b"]", b",", b":", b'"tensors"', b',"tensors":', b'"a"', b"1", b"null", b'["k",null,[]]')
HEADERS = (
    b'{"a":1,"tensors":[]',
    b'{"a":1,"tensors":[]}]',
    b'{"a":1,"tensors":[]]}',
    b'{"a":1,"tensors":[]]',
    b'{"a":[{"b":1,"tensors":[]}]}',
    b'{"a":1,"tensors":[],"tensors":[]}',
    b'{"tensors":[],"tensors":[]}',
    b'{"a":1,"tensors":[]} ',
)
"""Headers that end, or hold the word, in odd ways."""


def read(read_header: Any, line: bytes) -> Any:
    try:
        return read_header(line, 64)
    except framing.ProtocolError:
        return None


@settings(max_examples=500)
@given(st.sampled_from(HEADERS) | st.lists(st.sampled_from(WORDS), max_size=9).map(b"".join))
def test_what_is_read_quickly_is_what_is_read_strictly(line: bytes) -> None:
    assert read(framing._quickly, line) in (None, read(framing._strictly, line))


TWICE = (
    b'{"a":1,"a":":"}',
    b'{"a":":","a":1}',
    b'{"a":1,"a":"\\u003a"}',
    b'{"a":{"b":"\\u003a","b":":"}}',
    b'{"a":[{"b":1,"b":":"}]}',
    b'{"a":[1,{"b":1,"b":2}],"c":"::"}',
    b'{"a":[{"b":1},[{"c":1,"c":2}]]}',
    b'{"a":[[{"c":1,"c":2}]],"message":":"}',
    b'{"a:b":1,"a:b":2}',
)
"""Headers in which a key stands twice, with colons that might make up for it."""


@pytest.mark.parametrize("line", TWICE)
def test_a_key_that_stands_twice_is_seen_whatever_colons_a_header_has(line: bytes) -> None:
    with pytest.raises(framing.ProtocolError, match="not a JSON header"):
        list(framing.Decoder().feed(line + b"\n"))


@pytest.mark.parametrize("line", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_bad_header_is_a_protocol_error_of_one_short_line(line: bytes) -> None:
    with pytest.raises(framing.ProtocolError) as e:
        list(framing.Decoder().feed(line + b"\n"))
    assert len(str(e.value)) < 300 and "\n" not in str(e.value)


@pytest.mark.parametrize("chunk", [1 << 16, 1 << 12])
def test_a_header_without_end_is_held_no_longer_than_a_header_may_be(chunk: int) -> None:
    decoder, most = framing.Decoder(), framing.LARGEST_HEADER // chunk
    for _ in range(most - 1):
        assert not list(decoder.feed(b"x" * chunk))
    with pytest.raises(framing.ProtocolError, match="header of more than"):
        list(decoder.feed(b"x" * chunk))


def test_waiting_tells_where_a_stream_broke_off() -> None:
    decoder = framing.Decoder()
    assert (decoder.waiting, decoder.busy) == ("no message", False)
    stream = framing.encode({"id": 1}, {"k": np.zeros(4, np.float32)})
    list(decoder.feed(stream[:5]))
    assert (decoder.waiting, decoder.busy) == ("5 bytes of a header", True)
    list(decoder.feed(stream[5:-4]))
    assert (decoder.waiting, decoder.busy) == ("12 of 16 bytes of tensors", True)


CANNOT_BE_SENT: dict[str, tuple[Any, Any]] = {
    "f64": ({}, {"k": np.zeros(1)}),
    "objects": ({}, {"k": np.array([None])}),
    "big_endian": ({}, {"k": np.zeros(1, ">f4")}),
    "nan": ({"x": float("nan")}, {}),
    "array_in_header": ({"x": np.zeros(2)}, {}),
    "long_header": ({"x": "x" * framing.LARGEST_HEADER}, {}),
    "much": ({}, {"k": np.broadcast_to(np.float32(0), (1, framing.LARGEST_TENSORS // 4 + 1))}),
}


@pytest.mark.parametrize(("head", "tensors"), CANNOT_BE_SENT.values(), ids=CANNOT_BE_SENT)
def test_what_cannot_be_sent_is_bad_input(head: Any, tensors: Any) -> None:
    with pytest.raises(BadInput):
        framing.encode(head, tensors)


def test_rows_in_any_order_of_memory_are_sent_in_c_order() -> None:
    rows = np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)[::2]
    [(_, tensors)] = framing.Decoder().feed(framing.encode({}, {"k": rows}))
    assert same(tensors["k"], rows)


def test_a_mask_crosses_as_tensors() -> None:
    array = np.array([[[[True, False]]]])
    logical = (masks.Explicit(array), masks.Causal(), masks.Window(3), masks.Explicit(~array))
    op, tensors = messages.with_mask({"op": "mask", "parts": []}, logical)
    assert op["parts"] == ["causal", {"window": 3}, {"tensor": "mask0"}, {"tensor": "mask1"}]
    [(head, came)] = framing.Decoder().feed(framing.encode(op, tensors))
    causal, window, first, second = messages.without_tensors(head["parts"], came)
    assert (causal, window) == (masks.Causal(), masks.Window(3))
    assert isinstance(first, masks.Explicit) and same(first.array, array)
    assert isinstance(second, masks.Explicit) and same(second.array, ~array)


@pytest.mark.parametrize("parts", [None, 3, "causal", [3], [{"tensor": "k"}], [{"tensor": 3}], [{"tensor": []}]])
def test_a_mask_of_anything_else_is_bad_input(parts: Any) -> None:
    with pytest.raises(BadInput, match="mask"):
        messages.without_tensors(parts, {"mask0": np.zeros((1, 1, 1, 1), bool)})


GOOD_VALUES: dict[str, list[Any]] = {
    "offset": [0, 5, -1, None],
    "bytes": [0, None],
    "can": [True, False],
    "intact": [True, False],
    "snapshot": [None, [0, 4, 224]],
    "parent": [None, [-1, 4, 224]],
}
BAD_VALUES: dict[str, list[Any]] = {
    "offset": [True, 1.0, "1", [1], {}, 1 << 70],
    "capacity": [False],
    "can": [None, 1, "yes"],
    "intact": [None, 1],
    "snapshot": [3, [], [0, 4], [0, 4, 5, 6], [0, 4, None], [0, 4, True], [0, 4, 1.5], "abc"],
    "child": [{}],
    "serial": [3],
}
BAD_ANSWERS: list[dict[str, Any]] = [
    {},
    {"result": "fine"},
    {"result": None},
    {"result": ["ok"]},
    {"result": "crash"},
    {"result": "ok", "values": []},
    {"result": "ok", "values": None},
    {"result": "refused", "clause": 7},
    {"result": "refused", "message": None},
    {"result": "ok", "offset": 3},
    *({"result": "ok", "values": {name: v}} for name, values in BAD_VALUES.items() for v in values),
]


@pytest.mark.parametrize("head", BAD_ANSWERS, ids=repr)
def test_an_answer_of_any_other_form_is_a_protocol_error(head: dict[str, Any]) -> None:
    with pytest.raises(framing.ProtocolError):
        messages.step(head, {})


def test_an_unknown_tensor_is_a_protocol_error() -> None:
    with pytest.raises(framing.ProtocolError, match=r"state\.q"):
        messages.step({"result": "ok"}, {"state.q": None})


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in GOOD_VALUES.items() for v in vs])
def test_an_answer_is_read_back_as_it_was(name: str, value: Any) -> None:
    sent = Step("refused", "CACHE-7", "no", {name: value}, {"state.k": None, "mask": np.zeros((1, 1, 2, 3), bool)})
    [(head, tensors)] = framing.Decoder().feed(messages.answer(4, sent))
    assert head.pop("id") == 4
    came = messages.step(head, tensors)
    assert (came.result, came.clause, came.message, came.values) == ("refused", "CACHE-7", "no", {name: value})
    assert all(same(came.arrays[n], sent.arrays[n]) for n in sent.arrays)


def test_an_answer_says_whole_numbers_of_numpy_and_nothing_else() -> None:
    step = Step(values={"offset": np.int64(3), "snapshot": [np.int32(0), 3, 4]})
    [(head, _)] = framing.Decoder().feed(messages.answer(1, step))
    assert head["values"] == {"offset": 3, "snapshot": [0, 3, 4]}
    for wrong in (np.float64(3), np.bool_(True)):
        with pytest.raises(BadInput, match="offset"):
            messages.answer(1, Step(values={"offset": wrong}))


def test_a_message_is_cut_and_can_be_printed() -> None:
    read = messages.step({"result": "error", "message": "\ud800" + "x" * 9000}, {})
    assert read.message.encode() == b"?" + b"x" * (messages.LONGEST_MESSAGE - 1)
