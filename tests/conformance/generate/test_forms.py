"""Traces in forms: what they become for an adapter that has few, and whether a cache with a fault of forms is
found."""

import pytest

from kvconform.checks import geometry, suite
from kvconform.generate.claims.fit_to_adapter import fitted, suits
from kvconform.generate.strategies.forms import FORMS, SMALL, at_sizes, fitting, in_form, moves
from kvconform.judge import trial
from kvconform.oracle.reference import CitingReference, claims
from kvspec import notation
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.forms import parsed
from kvspec.geometry import Config, forms
from kvspec.notation import from_sentence, sentence
from kvspec.session.driver import Session
from kvspec.trace import VERSION, from_json, replayable
from support.engines.foreign.forms import Nearest, NearestOneForAll

KINDS = dict.fromkeys(("growing", "ring", "forms"), "visible")


def adapter(*listed, dtypes=("f16",)):
    said = {"name": "few forms", "chapters": KINDS, "dtypes": list(dtypes), "limits": {"form": list(listed)}}
    return description(said)


def test_a_trace_gets_a_form_that_the_adapter_has_and_rows_that_fit_it():
    few = adapter("q8_0", "int8/64")
    words = "growing form=int8/2: append 2; view", "ring window=2 form=e4m3/1: append 1"
    traces = map(from_sentence, words)
    assert [sentence(trace) for trace in fitted(traces, few)] == [
        "growing k_dim=64 v_dim=64 form=int8/64: append 2; view",
        "ring k_dim=32 v_dim=32 window=2 form=q8_0: append 1",
    ]
    assert few.complete is False and adapter().forms == ()


def test_what_opens_a_form_that_the_adapter_lacks_is_left_out():
    trace = from_sentence("growing form=int8/2: append 1; open B form=int4/2; B: append 1; append 1")
    left = [sentence(each) for each in fitted([trace], adapter("int8/2"))]
    assert left == ["growing form=int8/2: append 1; append 1"]


def test_a_trace_in_a_form_needs_the_chapter():
    plain = description({"name": "plain", "chapters": {"growing": "visible"}})
    trace = from_sentence("growing form=int8/2: append 1")
    assert not suits(trace, plain) and suits(trace, claims())
    assert not list(fitted([from_sentence("growing: append 1; open B form=int8/2; append 1")], plain))


@pytest.mark.parametrize("limit", [["int8"], "int8/2", ["int8/2"] * 65, [8], ["e4m3/t:0"]])
def test_a_limit_that_is_no_list_of_forms_is_refused(limit):
    said = {"name": "x", "chapters": KINDS, "limits": {"form": limit}}
    with pytest.raises(BadInput, match="form"):
        description(said)


@pytest.mark.parametrize("kind", geometry.IN_FORMS)
def test_each_sort_of_form_has_many_heads_and_many_sequences_and_a_row_behind_a_refused_rewind(kind):
    traces, about = at_sizes(kind), claims()
    sizes = [(each.kv_heads >= 64, each.batch >= 33) for each in (trace.config for trace in traces)]
    forms_ = {trace.config.form for trace in traces}
    met = {(trace.config.form, *size) for trace, size in zip(traces, sizes, strict=True)}
    assert met == {(form, heads, not heads) for form in forms_ for heads in (True, False)} and len(forms_) >= 7
    for level in ("storage", "visible"):
        for trace in traces:
            seen = trial.on(trace, lambda observe: CitingReference(observe=observe), about, level)
            results = [(op["op"], want.result) for op, (want, _) in zip(trace.ops, seen.steps, strict=True)]
            assert not seen.failed and results[1:3] == [("rewind", "refused"), ("append", "ok")]


@pytest.mark.parametrize("kind", geometry.IN_FORMS)
def test_they_are_judged_in_quick_runs_of_a_cache_of_one_kind(kind):
    check = suite.suite((kind, "forms"))[f"forms/geometry/{kind}"]
    alone = description({"name": "x", "chapters": dict.fromkeys((kind, "forms"), "visible")})
    assert not check.takes_long and not check.lacks(alone.chapters)
    assert len(list(fitted(at_sizes(kind, alone.chapters), alone))) == len(at_sizes(kind))


NO_FORMS = ("int9/2", "int8/2;", "int8/2,int8/2,int8/2", "e4m3/t" + ":1" * 65, "int8/" + "9" * 99)


@pytest.mark.parametrize("text", NO_FORMS)
def test_a_text_that_is_no_form_is_refused_before_it_is_read(text):
    document = {"kvtrace": VERSION, "kind": "growing", "config": {"form": text}, "ops": []}
    with pytest.raises(BadInput, match=r"form must be a text like"):
        from_json(document)


def test_rows_too_narrow_to_have_names_are_refused():
    with pytest.raises(BadInput, match=r"rows of 2 elements in int4/2 can name only 12"):
        from_json(from_sentence("growing form=int4/2 k_dim=2: append 20").to_json())


@pytest.mark.parametrize("text", FORMS)
def test_a_form_is_given_widths_that_fit_and_name_the_rows_of_a_trace(text):
    config = fitting(Config(k_dim=5, v_dim=13, dtype="f32"), text)
    assert forms(config) == parsed(text)
    assert replayable(in_form(from_sentence("growing: append 100"), text))


def test_a_kind_without_forms_keeps_its_rows():
    trace = from_sentence("keyed page_size=1 pages=3: match xyx")
    assert in_form(trace, "int8/2") is trace


@pytest.mark.parametrize("start", SMALL, ids=lambda trace: trace.config.form)
def test_moves_of_covers_are_of_rows_that_are_rounded_too(start):
    session = CitingReference()
    session.begin(start.kind, start.config)
    if start.kind == "page":
        session.do(notation.operations("admit")[0])
    assert any("append 1" in text and "fill=fine" in text for text in moves(session))
    assert all(notation.operations(text) for text in moves(session))


LIVES = (
    "growing form=int8/4 step=2: append 3 fill=fine; append 1; rewind 2; append 2 fill=bits; view",
    "ring window=3 form=int4/2,e4m3/3: append 3; append 1 fill=fine; append 2; append 1",
    "growing form=q8_0,q4_0 k_dim=64 v_dim=32 kv_heads=4: append 2 fill=fine; snapshot s; free; restore s 2; view",
    "sink window=4 sinks=1 form=e5m2/t:0.001: append 6; append 1 fill=bits; append 1",
    "bounded max_len=5 form=int4a/4,int8a/3: append 3 fill=fine; rewind 1; append 2",
    "page page_size=2 pages=4 form=int4/2,e5m2/3: admit; append 3 fill=fine; fork 0 3; append 1 sequence=1",
)


@pytest.mark.parametrize("level", ["storage", "visible"])
@pytest.mark.parametrize("life", LIVES)
def test_lives_in_a_form_are_judged_alike_by_both_oracles_and_by_another_implementation(life, level):
    trace = from_sentence(life)
    assert not trial.on(trace, lambda observe: CitingReference(observe=observe), claims(), level).differences
    other = description(Nearest().describe())
    assert not trial.on(trace, lambda observe: Session(Nearest(), observe), other).differences


def test_one_scale_for_a_row_of_several_groups_is_found_on_rows_that_the_form_keeps():
    trace = from_sentence("growing form=int8/2: append 2; view")
    other = description(NearestOneForAll().describe())
    seen = trial.on(trace, lambda observe: Session(NearestOneForAll(), observe), other)
    assert [d.message for d in seen.differences][:1] == ["query 0 sees ?; expected a"]
