"""Small changes to questions that keep what they ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..errors import InputError
from .rewriting import Mentions, Rewriting, checked_questions, drawn

_PREFIXES = ("Please tell me: ", "Could you tell me: ", "I would like to know: ")
#: "what" and "which" mean the same before these.
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
    """Each question changed by one of the rules that can change it.

    ============================ ======================================================================================
    rule                         what it does
    ============================ ======================================================================================
    ``polite``                   "Please tell me: ", "Could you tell me: " or "I would like to know: " before it
    ``what_which``               "what" for "which" and "which" for "what", at the beginning (or after its
                                 preposition) and before one of a list of nouns: "Which city", "in what year"
    ``contraction``              the first "is not", "did not" and the like in one word, else a first "Who is",
                                 "What is" and the like: "Who's"
    ``no_question_mark``         a question mark at the end goes
    ``first_letter``             the first letter in the other case, but of "I" and words of capitals alone
    ============================ ======================================================================================

    Parameters
    ----------
    questions : sequence of str, B entries
    entities : sequence of sequences of str, B entries, optional
        The questions' mentions, kept as they are.
    rules : sequence of str, optional
        Names from the table, by default all. Which one of those that change a question is taken depends on the MD5 of
        the question, not on the others, their order or a seed.

    Returns
    -------
    Rewriting
        With the rule of each question, ``""`` where none changes it.

    Raises
    ------
    InputError
        A question that is not a string, another number of mentions, no rule or an unknown one.

    Examples
    --------
    >>> from hopfuse.evaluate import paraphrase
    >>> paraphrase(["In which year did Ada die?"], rules=["what_which"]).rewritten
    ('In what year did Ada die?',)
    >>> paraphrase(["Who is Ada?", "Ada"], rules=["contraction"]).rewritten
    ("Who's Ada?", 'Ada')
    """
    asked = checked_questions(questions)
    names = tuple(_RULES) if rules is None else tuple(rules)
    if isinstance(rules, str) or not names or not set(names) <= set(_RULES):
        raise InputError(f"rules is {rules!r}; give one or more of {', '.join(_RULES)}")
    made = [_rewritten(question, names) for question in asked]
    return Rewriting(asked, [text for text, _ in made], [rule for _, rule in made], entities)


def _rewritten(question: str, names: Sequence[str]) -> tuple[str, str]:
    """The question after one of the rules that change it, and the rule's name."""
    results = ((_RULES[name](question), name) for name in names)
    changed = [(text, name) for text, name in results if text != question]
    return changed[drawn(question, "rule", len(changed))] if changed else (question, "")


def _polite(question: str) -> str:
    return _PREFIXES[drawn(question, "prefix", len(_PREFIXES))] + question if question.strip() else question


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
