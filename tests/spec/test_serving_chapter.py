"""The chapter SERVE: its examples say what histories of requests must show, and mistakes in it are errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from kvconform import cli
from kvconform.serving.recipes import RECIPES
from kvspec.errors import BadInput
from kvspec.serving import clauses
from kvspec.serving.clauses import chapter_text, index
from kvspec.serving.history import history, told
from kvspec.serving.lettered import lettered
from kvspec.serving.texts import Texts

EXAMPLES = [example for clause in index().values() for example in clause.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_an_example_says_what_its_requests_are_and_see(example: clauses.Example) -> None:
    assert [(row.tokens, row.sees) for row in example.rows] == list(lettered(example))
    assert any(row.sees for row in example.rows)


def test_each_clause_is_aimed_at_or_is_about_all_requests() -> None:
    assert set(index()) - set(RECIPES) == {"SERVE-17"}
    needs = {clause: needs for clause, (_, needs) in RECIPES.items()}
    assert needs.pop("SERVE-18") == "stop"  # it is about all requests; an answer that is ended early is asked for
    assert all(index()[clause].needs == (need or "any") for clause, need in needs.items())


def replaced(was: str, now: str) -> Callable[[str], str]:
    return lambda text: text.replace(was, now, 1)


MISTAKES: dict[str, tuple[Callable[[str], str], str]] = {
    "a clause that is left out": (lambda text: text.replace("SERVE-3", "SERVE-33"), "numbered from SERVE-1"),
    "an ability that nobody has": (replaced("(salt).", "(pepper)."), "needs are any"),
    "an example of another clause": (replaced("Example SERVE-4.1", "Example SERVE-5.1"), "is expected"),
    "a column of another name": (replaced("| do | tokens | sees |", "| do | tokens | says |"), "columns"),
    "a misspelt step": (replaced("| ask a 9 |", "| aks a 9 |"), "is no step"),
    "an example that breaks off": (replaced("Example SERVE-1.2, window=3\n\n", "Example SERVE-1.2\n"), "read"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_chapter_is_an_error(mistake: Callable[[str], str], words: str) -> None:
    changed = mistake(chapter_text())
    assert changed != chapter_text()
    with pytest.raises(BadInput, match=words):
        clauses.read(changed)


WRITTEN = (
    "ask a 20; submit b a[:16] 3 new=4 samples=2 salt=x adapter=y; "
    "submit c up6 a[2:5] b vectors=2:; step 2; cancel c; wait b"
)


def test_a_history_is_read_as_it_is_written() -> None:
    assert told(history(WRITTEN)) == WRITTEN


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "ask a": "has a name and tokens",
        "ask a b": "no request named b",
        "ask a 3; ask a 3": "began before",
        "ask a 0": "no number from 1",
        "ask a 3 new=0": "no number from 1",
        "ask a 9999999999": "no part of a prompt",
        "ask a 3 hot=1": "none of new, samples, salt, adapter",
        "ask a 3 vectors=2": "no place; write 2:6",
        "ask A 3": "no name",
        "ask up3 3": "no name",
        "cancel a": "no request named a",
        "cancel": "one request is named",
        "step 0": "no number",
        "ask a 3 samples=99": "no number from 1 to 16",
    }.items(),
)
def test_a_history_that_cannot_be_read_is_an_error(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        history(text)


def test_new_tokens_are_new_and_do_not_follow_each_other() -> None:
    texts = Texts(223, 5)
    first, second = (texts.begin(step) for step in history("ask a 100 new=4; ask b 100"))
    for prompt in (first, second):
        assert len(set(prompt)) == 100
        assert all(b != texts.after(a) for a, b in pairwise(prompt))
    assert not {(first[-1] + i) % 223 for i in range(1, 5)} & set(first)
    again = Texts(223, 5)
    assert again.begin(history("ask a 100 new=4")[0]) == first != second


def test_a_prompt_that_is_empty_or_too_long_is_an_error() -> None:
    texts = Texts(50)
    texts.begin(history("ask a 2000")[0])
    for words in ("ask b a[5:5]", "ask b a a[:100]"):
        with pytest.raises(BadInput, match=r"empty|more than 2048"):
            texts.begin(history(f"ask a 1; {words}")[1])


def test_a_clause_is_explained_with_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "serve-3"]) == 0
    said = capsys.readouterr().out
    assert "Rows are reused only behind the tokens" in said and "j k l m e f g h o > o'" in said and "Why: " in said
    assert cli.main(["explain", "SERVE"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{id_} {clause.text[:40]}" in listed for id_, clause in index().items())
    assert cli.main(["explain", "SERVE-99"]) == 2
    assert "SERVE-99" in capsys.readouterr().err
