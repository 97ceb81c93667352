"""Read facts from parsed sentences: relations between two names by a verb, a copula or an apposition.

Dependency labels are those of spaCy's English models (ClearNLP).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text import canonical_key
from ._spacy_names import bare
from .extraction import Triple

SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj", "csubjpass"))
OBJECTS = frozenset(("dobj", "dative", "oprd", "attr", "acomp"))
PREPOSITIONS = frozenset(("prep", "agent"))
BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "am", "'s", "’s", "'re", "’re"))
PERSONAL = frozenset(("he", "she", "it", "they"))
OF_PERSONS = frozenset(("he", "she", "his", "her"))
MAX_NOUNS = 2  # nouns between a verb and a name: "is a member of the board of X"
OPENING = frozenset(("if", "whether", "unless"))  # introduce clauses that are not stated
CLOSING = frozenset("\"'”’)]")
NEGATION_LABELS = ("neg", "det", "preconj", "cc")
LONGER = frozenset(("longer", "more"))
MAX_VERBS = 16  # governing verbs that are searched


def facts_of(doc: Any, named: Mapping[int, str], title: str) -> list[Triple]:
    """Return the distinct facts of a parsed text, in order.

    ``named`` maps words to the names that they are part of; pronouns refer to ``title``, which may be empty.
    """
    return list(dict.fromkeys(_Sentences(doc, named, title).facts()))


class _Sentences:
    def __init__(self, doc: Any, named: Mapping[int, str], title: str) -> None:
        self._doc, self._title = doc, title
        self._named = dict(named)
        self._kinds: frozenset[str] = frozenset()
        self._first_person = next((word.i for word in doc if word.ent_type_ == "PERSON"), len(doc))
        self._verbs = [word for word in doc if _is_verb(word)]
        self._call_first_subject_by_title()
        self._kinds = self._kinds_of_title()

    def facts(self) -> Iterator[Triple]:
        for word in self._doc:
            rows = self._of_verb(word) if _is_verb(word) else self._of_apposition(word)
            for head, relation, tail in rows:
                if canonical_key(head) != canonical_key(tail):
                    yield head, relation, tail

    def _of_verb(self, verb: Any) -> Iterator[Triple]:
        if not _is_stated(verb):
            return
        subjects = list(dict.fromkeys(self._subjects(verb)))
        for relation, tail in self._objects(verb):
            for head in subjects:
                yield head, relation, tail
        if _is_copula(verb):  # "the capital of France is Paris"
            for subject in _with(verb, SUBJECTS):
                for attribute in _with(verb, {"attr"}):
                    yield from self._inverted(attribute, subject)

    def _of_apposition(self, word: Any) -> Iterator[Triple]:
        """Read "Paris, the capital of France" and "the capital of France, Paris"."""
        if word.dep_ == "appos" and not _with(word.head, {"neg"}):
            first = word.head
            yield from self._inverted(first, word)
            yield from self._inverted(word, first)

    def _inverted(self, name: Any, noun: Any) -> Iterator[Triple]:
        """Yield the facts about a name in the phrase of a noun that describes it."""
        if noun.i in self._named or any(one.i != name.i for one in _with(noun, {"appos"})):  # "his cousin, X"
            return
        for one in _several(name):
            if one.i in self._named:
                for relation, tail in self._below(noun, [], 0):
                    yield self._named[one.i], relation, tail

    def _subjects(self, verb: Any, depth: int = 8) -> Iterator[str]:
        """Yield the names of a verb's subjects, active or passive."""
        own = _with(verb, SUBJECTS)
        if own:
            found = (self._who(one) for subject in own for one in _several(subject))
            yield from (name for name in found if name)
        elif verb.dep_ in ("acl", "relcl"):
            name = self._who(verb.head)
            if name:
                yield name
        elif depth and _shares_subject(verb):
            yield from self._subjects(verb.head, depth - 1)

    def _objects(self, verb: Any) -> Iterator[tuple[str, str]]:
        words = [] if _is_copula(verb) else [verb.lower_, *(child.lower_ for child in _with(verb, {"prt"}))]
        for child in verb.children:
            if child.dep_ in OBJECTS and child.pos_ != "ADP":
                yield from self._reached(child, words, 0)
            elif child.dep_ == "npadvmod" and child.i in self._named:  # "born 1948"
                yield " ".join(words) or "is", self._named[child.i]
            elif _is_denied(child):  # "by X and not by Y"
                continue
            elif child.dep_ in PREPOSITIONS or (child.dep_ == "dative" and child.pos_ == "ADP"):
                for noun in _with(child, {"pobj"}):
                    yield from self._reached(noun, [*words, child.lower_], 0)

    def _reached(self, noun: Any, words: list[str], depth: int) -> Iterator[tuple[str, str]]:
        """Yield the names in a phrase, and the words that lead to them."""
        for one in _several(noun):
            name = self._named.get(one.i) or self._in_apposition(one)
            if not name and noun.dep_ != "attr":  # in "Paris is the capital of France", "the capital" is Paris
                name = self._meant(one)
            if name:
                yield " ".join(words) or "is", name
            else:
                yield from self._below(one, words, depth)

    def _below(self, noun: Any, words: list[str], depth: int) -> Iterator[tuple[str, str]]:
        """Read "capital of France" and "France's capital", both as "capital of"."""
        if depth == MAX_NOUNS or noun.pos_ not in ("NOUN", "PROPN", "ADJ", "NUM", "VERB"):
            return
        before = (child.lower_ for child in _with(noun, {"compound"}) if child.i < noun.i)
        phrase = [*words, *before, noun.lower_]
        for child in noun.children:
            if child.dep_ in PREPOSITIONS and not _is_denied(child):
                for below in _with(child, {"pobj"}):
                    yield from self._reached(below, [*phrase, child.lower_], depth + 1)
            elif child.dep_ == "poss":
                owner = (
                    self._by_pronoun(child) if child.tag_ == "PRP$" else self._named.get(child.i) or self._meant(child)
                )
                if owner:
                    yield " ".join([*phrase, "of"]), owner

    def _who(self, word: Any, depth: int = 4) -> str | None:
        """Return the name of a subject."""
        if word.i in self._named:
            return self._named[word.i]
        if word.lower_ in PERSONAL:
            return self._by_pronoun(word)
        if not depth:
            return None
        if word.tag_ in ("WDT", "WP"):
            verb = word.head
            return self._who(verb.head, depth - 1) if verb.dep_ == "relcl" else None
        if word.dep_ == "attr":  # "Azra was a band formed in 1977"
            subjects = _with(word.head, SUBJECTS)
            return self._who(subjects[0], depth - 1) if subjects else None
        return self._in_apposition(word) or self._meant(word)

    def _by_pronoun(self, word: Any) -> str | None:
        """Return the title, unless "she" refers to a person that the text names before."""
        if word.lower_ in OF_PERSONS and word.i > self._first_person and not self._title_is_person():
            return None
        return self._title or None

    def _title_is_person(self) -> bool:
        return any(name == self._title and self._doc[at].ent_type_ == "PERSON" for at, name in self._named.items())

    def _in_apposition(self, noun: Any) -> str | None:
        """Return X in "its frontman, X"."""
        return next((self._named[one.i] for one in _with(noun, {"appos"}) if one.i in self._named), None)

    def _meant(self, noun: Any) -> str | None:
        """Return the title if the noun is definite and one of its kinds, as in "the film"."""
        definite = any(child.lower_ in ("the", "this") for child in _with(noun, {"det"}))
        return self._title if definite and noun.lower_ in self._kinds else None

    def _call_first_subject_by_title(self) -> None:
        """Map a longer form of the title in the first sentence ("The Right Honourable ...") to the title."""
        wanted = set(canonical_key(bare(self._title)).split())
        first = (subject for verb in self._verbs if verb.sent.start == 0 for subject in _with(verb, SUBJECTS))
        name = next((self._named[one.i] for one in first if one.i in self._named), None)
        if name and wanted and wanted <= set(canonical_key(name).split()):
            self._named |= {at: self._title for at, other in self._named.items() if other == name}

    def _kinds_of_title(self) -> frozenset[str]:
        """Return the nouns that the passage uses for its title: "X is a film"."""
        kinds = set()
        for verb in self._verbs:
            if self._title and _is_copula(verb) and _is_stated(verb) and self._title in self._subjects(verb):
                kinds |= {one.lower_ for noun in _with(verb, {"attr"}) for one in _several(noun) if one.pos_ == "NOUN"}
        return frozenset(kinds)


def _is_verb(word: Any) -> bool:
    return word.pos_ in ("VERB", "AUX") and word.dep_ not in ("aux", "auxpass")


def _shares_subject(verb: Any) -> bool:
    """Return whether a verb has no subject of its own: "wrote and directed", "went on to win", "led by X, it won"."""
    joined = verb.dep_ in ("conj", "xcomp") or (verb.dep_ == "advcl" and verb.tag_ in ("VBN", "VBG"))
    return joined and _is_verb(verb.head)


def _is_copula(verb: Any) -> bool:
    return verb.lower_ in BE


def _with(word: Any, labels: Any) -> list[Any]:
    return [child for child in word.children if child.dep_ in labels]


# ---- Negation, questions and conditions ------------------------------------------------------------------------------


def _is_stated(verb: Any) -> bool:
    """Return whether a verb is not in a question or condition, and neither it nor its governing verbs are negated."""
    if _ending(verb.doc, verb.sent) == "?":
        return False
    negates = True
    for _ in range(MAX_VERBS):
        if any(child.dep_ == "mark" and child.lower_ in OPENING for child in verb.children):
            return False
        if negates and _is_negated(verb):
            return False
        if verb.dep_ not in ("xcomp", "ccomp", "conj"):
            return True
        negates = negates and _reaches(verb.head, verb)
        verb = verb.head
    return True


def _is_denied(word: Any) -> bool:
    """Return whether a noun or a preposition follows "not", "neither" or "no"."""
    return any(
        _is_not(child) or child.lower_ in ("neither", "no") for child in word.lefts if child.dep_ in NEGATION_LABELS
    )


def _several(word: Any) -> Iterator[Any]:
    """Yield a word and its conjuncts, except those negated by "not", "neither" or "nor"."""
    waiting = [(word, False)]
    while waiting:
        one, excluded = waiting.pop()
        excluded = excluded or any(child.lower_ == "neither" for child in one.lefts)
        if not (excluded or _is_denied(one)):
            yield one
        excluded = excluded or any(child.dep_ == "cc" and child.lower_ == "nor" for child in one.children)
        waiting += [(child, excluded) for child in reversed(list(one.children)) if child.dep_ == "conj"]


def _ending(doc: Any, sentence: Any) -> str:
    """Return the last token that is not a quotation mark or bracket."""
    places = range(sentence.end - 1, sentence.start - 1, -1)
    return next((doc[at].text for at in places if doc[at].text not in CLOSING), "")


def _is_not(word: Any) -> bool:
    """Return whether a word is a negation other than "not only"."""
    after = word.i + 1
    return word.dep_ == "neg" and not (after < len(word.doc) and word.doc[after].lower_ == "only")


def _is_negated(verb: Any) -> bool:
    """Return whether a verb is negated: "never married", "no longer married", "neither married nor"."""
    parts = [verb, *(child for child in verb.children if child.dep_ in ("aux", "auxpass"))]
    for child in (child for part in parts for child in part.children):
        if _is_not(child) or (child.dep_ in ("preconj", "cc") and child.lower_ == "neither"):
            return True
        if child.lower_ in LONGER and any(map(_is_not, child.children)):
            return True
    return False


def _reaches(head: Any, verb: Any) -> bool:
    """Return whether the head's negation covers the verb: "did not visit or see", but not "did not visit, and saw"."""
    if verb.dep_ != "conj":
        return bool(verb.i > head.i)  # in "he left, she did not stay", "left" is not negated
    if any(child.dep_ in ("nsubj", "nsubjpass", "aux", "auxpass") for child in verb.children):
        return False
    joins = {child.lower_ for child in head.children if child.dep_ == "cc"}
    if "but" in joins:
        return False
    return bool(joins & {"or", "nor"}) or verb.tag_ in ("VB", "VBN", "VBG")
