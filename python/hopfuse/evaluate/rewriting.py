"""Questions beside other ways to ask them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Mentions = Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class Rewriting:
    """Questions, what each was rewritten to, and by which rule.

    :func:`paraphrase` and :func:`substitute_aliases` make them; others, a language model's, can be given.

    Parameters
    ----------
    questions, rewritten : sequence of str, B entries each
        A question that could not be rewritten stands in both.
    rules : sequence of str, B entries, optional
        What was done to each question, ``""`` for nothing; by default ``"rewritten"`` where it changed.
    entities : sequence of sequences of str, B entries, optional
        The questions' mentions of entities, for a search that is given them.
    rewritten_entities : sequence of sequences of str, B entries, optional
        Those of the rewritten questions; by default the same.

    Raises
    ------
    InputError
        Fields of different lengths, a question that is not a string, mentions of rewritten questions alone.

    Examples
    --------
    >>> from hopfuse.evaluate import Rewriting
    >>> made = Rewriting(["Who wrote it?", "When?"], ["Who is its author?", "When?"])
    >>> made.rules, made.changed.tolist()
    (('rewritten', ''), [True, False])
    """

    questions: Sequence[str]
    rewritten: Sequence[str]
    rules: Sequence[str] | None = None
    entities: Mentions | None = None
    rewritten_entities: Mentions | None = None

    def __post_init__(self) -> None:
        for name in ("questions", "rewritten"):
            object.__setattr__(self, name, checked_questions(getattr(self, name), name))
        if self.entities is None and self.rewritten_entities is not None:
            raise InputError("rewritten_entities are given without entities; give the mentions of both, or of neither")
        if self.rewritten_entities is None:
            object.__setattr__(self, "rewritten_entities", self.entities)
        for name in ("rewritten", "rules", "entities", "rewritten_entities"):
            field = getattr(self, name)
            if field is not None and len(field) != len(self.questions):
                raise InputError(
                    f"{name} has {len(field)} entries for {len(self.questions)} questions; give one for each"
                )
        rules = self.rules
        if rules is None:
            rules = ["rewritten" if one else "" for one in self.changed.tolist()]
        object.__setattr__(self, "rules", tuple(rules))

    @property
    def changed(self) -> NDArray[np.bool_]:
        """True where the question, or its mentions, differ; shape (B,)."""
        return np.array([one != other for one, other in zip(self._asked(0), self._asked(1), strict=True)], bool)

    def _asked(self, side: int) -> list[tuple[str, tuple[str, ...]]]:
        """Each question with its mentions, as it was (0) or as it is rewritten (1)."""
        texts = (self.questions, self.rewritten)[side]
        mentions = (self.entities, self.rewritten_entities)[side]
        return list(zip(texts, [()] * len(texts) if mentions is None else map(tuple, mentions), strict=True))

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        return f"Rewriting(questions={len(self)}, changed={int(self.changed.sum())})"


def checked_questions(questions: Sequence[str], name: str = "questions") -> tuple[str, ...]:
    """Questions as a tuple of strings."""
    if isinstance(questions, str):
        raise InputError(f"{name} is one str; pass a list of strings: [question]")
    for at, question in enumerate(questions):
        if not isinstance(question, str):
            raise InputError(f"{name}[{at}] is a {type(question).__name__}; every question is a string")
    return tuple(questions)


def drawn(question: str, purpose: str, choices: int) -> int:
    """A number below ``choices`` that depends on the question and the purpose alone, by MD5.

    Examples
    --------
    >>> drawn("Who?", "rule", 5) == drawn("Who?", "rule", 5) < 5
    True
    """
    digest = md5(f"{purpose}\0{question}".encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest) % choices
