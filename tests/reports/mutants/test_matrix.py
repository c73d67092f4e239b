"""The record of mutants: its schema, its numbers, and its renderings."""

from __future__ import annotations

import copy
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import convert, to_builtins
from msgspec.structs import replace

from kvconform import cli
from kvreports import json_file
from kvreports.mutants import html as mutants_html
from kvreports.mutants import markdown, numbers
from kvreports.mutants import text as mutants_text
from kvspec.errors import BadInput
from kvspec.reading.clauses import index
from kvspec.records.document import Version
from kvspec.records.mutants import Matrix, MutantRecord, result

SCHEMA = json.loads(resources.files("kvspec").joinpath("schemas/mutants.json").read_text(encoding="utf-8"))


def mutant(name: str, **fields: Any) -> MutantRecord:
    """One that was found, unless it is said otherwise."""
    made: Any = {
        "id": name,
        "class": "RING",
        "link": "https://example.org/1",
        "says": "Reads one row too many.",
        "clauses": ["CACHE-1"],
        "killed": True,
        "by": ["CACHE-1"],
        "operations": 3,
        "equivalent": "",
        "control": "",
        "right": True,
        "sources": {"examples": True, "cover": False},
        "trace": "ring window=2: append 3",
        "message": "offset: expected 3, found 4",
        "seconds": 0.01,
    }
    return convert(made | fields, MutantRecord)


SYSTEMATIC = {"class": "systematic", "link": "", "right": None, "clauses": []}
SURVIVED = mutant("reference/ring.read: 1 became 2", **SYSTEMATIC, killed=False, by=[], operations=0)
FAILED = mutant("control/Other", **{"class": "control", "control": "lives"}, right=None)
FOUND = mutant("reference/ring.mask: 0 became 1", **SYSTEMATIC, equivalent="a citation alone")
SAMPLE = Matrix(
    spec=Version(version="0.1", hash="943c43fe9c1b8787"),
    seconds=12.5,
    mutants=[
        mutant("RING-01/One"),
        mutant("RING-02/Two", right=False, operations=8, sources={"explored": True}, link="javascript:alert(1)"),
        mutant("reference/ring.read: to < 0: Lt swapped", **SYSTEMATIC),
        mutant("kernels/move: < became <=", **SYSTEMATIC, sources={"examples": True}),
        mutant("reference/ring.mask: 1 became 2", **SYSTEMATIC, equivalent="a citation alone", killed=False, by=[]),
        mutant("control/Same", **{"class": "control", "control": "lives"}, killed=False, right=None),
    ],
)
DOCUMENT: Any = to_builtins(SAMPLE)


def having(*more: MutantRecord) -> Matrix:
    return replace(SAMPLE, mutants=[*SAMPLE.mutants, *more])


def test_the_record_fits_its_schema_which_names_every_field() -> None:
    jsonschema.validate(DOCUMENT, SCHEMA)
    named = SCHEMA["$defs"]["MutantRecord"]["properties"]
    assert set(named) == set(MutantRecord.__struct_encode_fields__)
    for field in named:
        broken = copy.deepcopy(DOCUMENT)
        del broken["mutants"][0][field]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA)


@pytest.mark.parametrize(("m", "said"), [(SURVIVED, "SURVIVED"), (FAILED, "FAILED"), (FOUND, "FOUND")])
def test_what_is_not_as_it_must_be_is_said_everywhere(m: MutantRecord, said: str) -> None:
    assert result(m) == said
    assert {result(x) for x in SAMPLE.mutants} == {"killed", "equivalent", "lives"}
    assert "wrong" not in numbers.headline(SAMPLE).replace("wrong caches", "")
    assert "results are wrong" not in numbers.headline(SAMPLE)
    assert "1 result is wrong" in numbers.headline(having(m))
    for text in (mutants_text.render(having(m)), markdown.render(having(m)), mutants_html.render(having(m))):
        assert said in text
    assert "Wrong results" not in mutants_html.render(SAMPLE) + markdown.render(SAMPLE)


def test_the_clauses_that_were_blamed_are_links_where_the_chapters_are_told() -> None:
    blamed = next(m.by[0] for m in SAMPLE.mutants if m.by and m.link)
    chapter = index()[blamed].chapter
    assert f"[{blamed}](spec/{chapter}.md#{blamed})" in markdown.render(SAMPLE, "spec")
    assert "](spec/" not in markdown.render(SAMPLE)


def test_the_numbers_of_the_groups() -> None:
    groups = {g.name: g for g in numbers.whole(SAMPLE)}
    assert list(groups) == ["real bugs", "systematic: reference", "systematic: kernels", "controls"]
    real = groups["real bugs"]
    assert (real.by("examples"), real.by("cover"), real.by("explored")) == ("1 of 1", "0 of 1", "1 of 1")
    assert real.row()[-2:] == ["1 of 2", "5.5, at most 8"]
    assert groups["systematic: reference"].row()[3] == "1"
    headline = numbers.headline(SAMPLE)
    assert "Found 4 of 4 wrong caches" in headline and "1 of 1 correct caches passed" in headline
    systematic = numbers.of_class(SAMPLE, "systematic")
    assert [numbers.module(m) for m in systematic][:2] == ["reference/ring", "kernels/move"]


def test_a_page_links_to_addresses_of_the_web_alone_and_shows_every_bug() -> None:
    page = mutants_html.render(SAMPLE)
    assert re.findall(r'<a href="(?!#)([^"]*)"', page) == ["https://example.org/1"]
    assert all(m.id in page for m in numbers.real(SAMPLE)) and "a citation alone" in page


def test_a_page_tells_which_sources_found_a_bug_and_which_did_not() -> None:
    one = mutant("RING-01/One", sources={"examples": True, "explored": True, "cover": False})
    assert mutants_html.told(one) == [("hit", "examples, explored"), ("miss", "not by cover")]
    page = mutants_html.render(having(one))
    assert '<span class="told miss">not by cover</span>' in page and "3 operations" in page


def test_a_source_that_was_never_tried_has_no_column() -> None:
    head, rows = mutants_html.columns(numbers.whole(SAMPLE))
    assert "cover" in head and "geometry" not in head and "geometry" in numbers.HEAD
    assert all(len(row) == len(head) for row in rows)


def test_nothing_in_a_record_is_trusted_with_the_page() -> None:
    page = mutants_html.render(having(mutant("<script>alert(1)</script>", says="<b>", trace="</td>")))
    assert "<script>alert" not in page and "<b></td>" not in page


def test_a_record_is_read_back_and_rendered_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mutants.json"
    json_file.write(file, json_file.dumps(SAMPLE))
    assert json_file.load(file, Matrix) == SAMPLE
    for form, says in (("table", "RING-01/One"), ("markdown", "# The mutation matrix"), ("json", '"kvmutants": 1')):
        assert cli.main(["report", str(file), "--format", form]) == 0
        assert says in capsys.readouterr().out
    assert cli.main(["report", str(file), "--html", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text() == mutants_html.render(SAMPLE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["mutants"][0].pop("id"), "id is missing"),
        (lambda d: d["mutants"][0].update(killed=1), "expected true or false"),
        (lambda d: d.update(kvmutants=2), "version 1"),
    ],
)
def test_a_broken_record_says_what_is_wrong(tmp_path: Path, change: Any, says: str) -> None:
    broken = copy.deepcopy(DOCUMENT)
    change(broken)
    file = tmp_path / "mutants.json"
    file.write_text(json.dumps(broken))
    with pytest.raises(BadInput, match=says):
        json_file.load(file, Matrix)
