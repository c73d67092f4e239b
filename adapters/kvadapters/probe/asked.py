"""Asks a whole engine in many histories of its cache, and in random lives of several sequences.

engine = from_model(open=lambda: DynamicCache(...), decode=lambda cache, tokens: logits)
print(asked(probe, engine, Precision("f32")).told())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from kvadapters.probe.blame import clauses
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.histories import History, histories, sizes
from kvadapters.probe.lived import Life, Lived
from kvadapters.probe.lives import Acts, drawn, shortened
from kvadapters.probe.model import Model
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.reading import Judgement

MOST_TOKENS = 50
LIVES = 60
"""Random lives of an engine whose memory has several sequences."""
SEVERAL = frozenset({"beside", "load", "batch", "shift"})
"""What only such an engine has."""


@dataclass(frozen=True)
class Failure:
    """The judgement of the last answers of a history, which are wrong."""

    history: History | Acts
    judgement: Judgement

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that are broken."""
        return clauses(self.history, self.judgement)


@dataclass(frozen=True)
class Verdict:
    """What an engine was asked, and what was wrong: the failures of the shortest histories."""

    histories: int
    queries: int
    refused: int
    failures: tuple[Failure, ...]
    untold: tuple[str, ...]

    def told(self, most: int = 3) -> str:
        """Tell it in lines."""
        refused = f", {self.refused} refused a rewind" if self.refused else ""
        lines = [f"{self.histories} histories of {self.queries} queries{refused}: {len(self.failures)} wrong"]
        for failure in self.failures[:most]:
            lines += [f"after {'; '.join(map(str, failure.history))}:"]
            lines += [
                f"  {line}" for line in failure.judgement.told(4).splitlines() if not line.startswith("cannot")
            ]
            lines += [f"  see {', '.join(failure.clauses)}"]
        if len(self.failures) > most:
            lines += [f"{len(self.failures) - most} longer histories are wrong too"]
        return "\n".join([*lines, *(f"cannot be told: {text}" for text in self.untold)])


def asked(
    probe: Probe,
    model: Model,
    precision: Precision | None = None,
    seed: int = 0,
    most: int = MOST_TOKENS,
    lives: int = LIVES,
) -> Verdict:
    """Ask an engine in many histories, the shortest first, and in so many random lives if its memory has several
    sequences. Each sequence has at most `most` tokens, which `seed` draws."""
    most, precision = min(most, probe.layout.ids), precision or Precision()
    found = histories(probe.layout.layers, most, model.abilities)
    done = [Life(probe, model, precision, seed + i).lived(history) for i, history in enumerate(found)]
    failures = [
        Failure(history[: life.steps], life.judgements[-1])
        for history, life in zip(found, done, strict=True)
        if life.judgements and life.judgements[-1].wrong
    ]
    random = _random(probe, model, precision, range(seed, seed + lives), most) if model.abilities & SEVERAL else []
    shortest = {str(failure.history): failure for failure, _ in random if failure}.values()
    failures += sorted(shortest, key=lambda failure: len(failure.history))
    return _verdict([*done, *(life for _, life in random)], failures)


def _random(
    probe: Probe, model: Model, precision: Precision, seeds: Iterable[int], most: int
) -> list[tuple[Failure | None, Lived]]:
    """Live a random life for each seed; give it, and the shortest life that fails as it does."""
    found = list[tuple[Failure | None, Lived]]()
    for seed in seeds:
        acts = drawn(seed, sizes(probe.layout.layers), most, model.abilities)
        again = partial(Lived, probe, model, precision, seed)
        life = again().through(acts)
        found.append((_shortest(again, acts) if life.wrong else None, life))
    return found


def _shortest(again: Callable[[], Lived], acts: Acts) -> Failure:
    """Make a life that fails short, and tell what is wrong then."""
    acts = shortened(acts, lambda some: again().through(some).wrong)
    return Failure(acts, again().through(acts).judgements[-1])


def _verdict(lives: Sequence[Life | Lived], failures: Sequence[Failure]) -> Verdict:
    read_all = [judgement for life in lives for judgement in life.judgements]
    untold = dict.fromkeys(text for judgement in read_all for text in (*judgement.untold, *judgement.lost))
    queries = sum(len({r.query for r in judgement.readings}) for judgement in read_all)
    return Verdict(len(lives), queries, sum(life.refused for life in lives), tuple(failures), tuple(untold))
