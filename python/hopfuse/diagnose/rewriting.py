"""Rewritings of questions, and rules for small paraphrases that keep the meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import md5

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length, check_needs, checked_texts
from ..errors import InputError

Mentions = Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class Rewriting:
    """Questions, their rewritten forms, and the rule that rewrote each.

    Made by :func:`paraphrase` and :func:`substitute_aliases`, or from rewritings of your own, such as a language
    model's.

    Parameters
    ----------
    questions, rewritten : sequence of str, B entries each
        A question that could not be rewritten is the same in both.
    rules : sequence of str, B entries, optional
        The rule that rewrote each question, ``""`` for none; by default ``"rewritten"`` if the question changed.
    entities : sequence of sequences of str, B entries, optional
        Mentions of entities in the questions, for a search that takes them.
    rewritten_entities : sequence of sequences of str, B entries, optional
        Mentions in the rewritten questions; by default the same.

    Raises
    ------
    InputError
        Fields differ in length, a question is not a string, or only the mentions of rewritten questions are given.

    Examples
    --------
    >>> from hopfuse.diagnose import Rewriting
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
            object.__setattr__(self, name, tuple(checked_texts(getattr(self, name), name)))
        check_needs("rewritten_entities", self.rewritten_entities, "entities", self.entities, "the mentions before")
        if self.rewritten_entities is None:
            object.__setattr__(self, "rewritten_entities", self.entities)
        for name in ("rewritten", "rules", "entities", "rewritten_entities"):
            field = getattr(self, name)
            if field is not None:
                check_length(len(field), name, len(self.questions), "question")
        rules = self.rules
        if rules is None:
            rules = ["rewritten" if one else "" for one in self.changed.tolist()]
        object.__setattr__(self, "rules", tuple(rules))

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Whether each question or its mentions differ, shape (B,)."""
        return np.array([one != other for one, other in zip(self._asked(0), self._asked(1), strict=True)], bool)

    def _asked(self, side: int) -> list[tuple[str, tuple[str, ...]]]:
        """Return each question with its mentions: the original ones (0), or the rewritten ones (1)."""
        texts = (self.questions, self.rewritten)[side]
        mentions = (self.entities, self.rewritten_entities)[side]
        return list(zip(texts, [()] * len(texts) if mentions is None else map(tuple, mentions), strict=True))

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        return f"Rewriting(questions={len(self)}, changed={int(self.changed.sum())})"


def draw(question: str, purpose: str, choices: int) -> int:
    """Return a number below ``choices`` derived from the MD5 hash of the purpose and the question.

    Examples
    --------
    >>> draw("Who?", "rule", 5) == draw("Who?", "rule", 5) < 5
    True
    """
    digest = md5(f"{purpose}\0{question}".encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest) % choices


_PREFIXES = ("Please tell me: ", "Could you tell me: ", "I would like to know: ")
#: Nouns before which "what" and "which" mean the same.
_NOUNS = (
    "actor|actress|airport|album|animal|artist|author|award|band|battle|book|building|character|city|club|college|"
    "company|continent|country|county|director|film|game|genre|group|island|king|language|magazine|month|mountain|"
    "movie|museum|musician|nationality|newspaper|novel|organization|person|player|president|province|queen|region|"
    "religion|river|school|season|series|show|singer|song|sport|state|street|team|town|university|village|war|writer|"
    "year"
)
_WHAT_WHICH = re.compile(rf"((?:(?i:at|by|during|for|from|in|on|to|under|with) )?)((?i:what|which)) (?=(?:{_NOUNS})\b)")
_NOT = re.compile(r"\b(is|are|was|were|does|do|did|has|have|had|could|would|should) not(?= \w)")
_IS = re.compile(r"(Who|What|Where|When|How|who|what|where|when|how) is(?= \w)")


def paraphrase(
    questions: Sequence[str], entities: Mentions | None = None, *, rules: Sequence[str] | None = None
) -> Rewriting:
    """Rewrite each question by one of the rules that apply to it.

    ============================ ======================================================================================
    rule                         effect
    ============================ ======================================================================================
    ``polite``                   prepends "Please tell me: ", "Could you tell me: " or "I would like to know: "
    ``what_which``               swaps "what" and "which" at the beginning (or after a preposition there), before one
                                 of a list of nouns: "Which city", "in what year"
    ``contraction``              contracts the first "is not", "did not" and the like, else "Who is", "What is" and
                                 the like at the beginning: "Who's"
    ``no_question_mark``         removes a question mark at the end
    ``first_letter``             changes the case of the first letter, except of "I" and words in capitals
    ============================ ======================================================================================

    Parameters
    ----------
    questions : sequence of str, B entries
    entities : sequence of sequences of str, B entries, optional
        Mentions in the questions, which do not change.
    rules : sequence of str, optional
        Names from the table, by default all. The MD5 hash of a question decides which of the rules that change it is
        applied.

    Returns
    -------
    Rewriting
        Has the rule of each question, ``""`` if none changes it.

    Raises
    ------
    InputError
        A question is not a string, the number of mentions differs, or a rule is unknown or none is given.

    Examples
    --------
    >>> from hopfuse.diagnose import paraphrase
    >>> paraphrase(["In which year did Ada die?"], rules=["what_which"]).rewritten
    ('In what year did Ada die?',)
    >>> paraphrase(["Who is Ada?", "Ada"], rules=["contraction"]).rewritten
    ("Who's Ada?", 'Ada')
    """
    asked = tuple(checked_texts(questions, "questions"))
    names = tuple(_RULES) if rules is None else tuple(rules)
    if isinstance(rules, str) or not names or not set(names) <= set(_RULES):
        raise InputError(
            "choice",
            "rules",
            "{field} is {given!r}; give one or more of {allowed}",
            given=rules,
            allowed=", ".join(_RULES),
        )
    made = [_rewritten(question, names) for question in asked]
    return Rewriting(asked, [text for text, _ in made], [rule for _, rule in made], entities)


def _rewritten(question: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the question rewritten by one of the rules that change it, and the name of the rule."""
    results = ((_RULES[name](question), name) for name in names)
    changed = [(text, name) for text, name in results if text != question]
    return changed[draw(question, "rule", len(changed))] if changed else (question, "")


def _polite(question: str) -> str:
    return _PREFIXES[draw(question, "prefix", len(_PREFIXES))] + question if question.strip() else question


def _what_which(question: str) -> str:
    found = _WHAT_WHICH.match(question)
    if found is None:
        return question
    other = "which" if found[2].lower() == "what" else "what"
    return found[1] + (other.capitalize() if found[2][0].isupper() else other) + question[found.end(2) :]


def _contraction(question: str) -> str:
    shorter = _NOT.sub(r"\1n't", question, count=1)
    if shorter != question:
        return shorter
    found = _IS.match(question)
    return question if found is None else f"{found[1]}'s{question[found.end() :]}"


def _no_question_mark(question: str) -> str:
    without = question.rstrip().removesuffix("?").rstrip()
    return without if without and question.rstrip().endswith("?") else question


def _first_letter(question: str) -> str:
    first = question.partition(" ")[0]
    other = question[:1].swapcase()
    if (len(first) > 1 and first.isupper()) or first.partition("'")[0] == "I" or len(other) != 1:
        return question
    return other + question[1:]


_RULES: dict[str, Callable[[str], str]] = {
    "polite": _polite,
    "what_which": _what_which,
    "contraction": _contraction,
    "no_question_mark": _no_question_mark,
    "first_letter": _first_letter,
}
