"""Common bugs of questions that replace a whole method; `questions.toml` has those that change a line."""

from __future__ import annotations

from kvconform.bugs.planting import Over, planted


@planted("missing-refusal", breaks="ASK-3")
class OpenRoundForgotten(Over):
    """Whether an append would be accepted is told as if no round were open."""

    def can_append(self, n: int) -> bool:
        return True
