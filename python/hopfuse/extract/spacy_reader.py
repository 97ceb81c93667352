"""Extract entities and facts from passages with spaCy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from os import PathLike
from typing import Any

from .._validation import check_choice, check_list, check_whole
from ..errors import InputError
from ..io.skips import SKIP_FAILED, Skips, check_share
from ..text import canonical_key, language_named
from ._spacy_facts import facts_of
from ._spacy_model import MODEL, loaded_model, too_long
from ._spacy_names import (
    NUMBERS,
    SpacyMention,
    TitleLinks,
    in_full,
    is_meaningful,
    is_name,
    is_within,
    label_at,
    places,
    trimmed,
)
from .extraction import (
    Extraction,
    LabelCounts,
    Passage,
    Progress,
    Triple,
    extracted,
    listed_passages,
)

_TITLE, _SENTENCE = "title", "sentence"
_LINKS = (_TITLE, _SENTENCE)
_MAX_APART = 8  # names between the ends of a link: a list of 100 names then has 772 pairs, not 4,950


class SpacyReader:
    """Reads passages with a spaCy model: named entities, titles, and facts from the parse of each sentence.

    Entities are what the model's entity recogniser finds, titles of any of the passages that occur in a text exactly,
    and the passage's own title. The last parenthesis of a title is dropped if no other title has the same rest: "Alien
    (film)" becomes Alien. Facts join two entities by a subject, a verb with its particle and preposition, and an
    object. Passives lose their auxiliary ("directed by"), and "X is the capital of Y" and "X, the capital of Y" have
    the relation "capital of". A pronoun as subject refers to the title, and so does "the film" if the passage says that
    its title is a film. "He", "she", "his" and "her" do not, if the model finds a person before them and never labels
    the title as a person. A surname refers to the only person in the passage with it. Questions, clauses with "if",
    "whether" or "unless", and negations by "not", "never", "no longer", "neither" or "nor" give no facts; other
    negations ("it is false that") are not recognised.

    The label of an entity is the recogniser's most frequent one in the passage. A title has the label of a recognised
    entity with the same name at the same place, if any.

    A model's numbers may differ in their last bits with the other texts in a batch; the same passages with the same
    ``batch_size`` give the same result.

    Parameters
    ----------
    model : str, path, or spaCy Language
        An installed model, a folder with one, or a loaded one. It needs a tagger, a parser, an entity recogniser, and
        an attribute_ruler or a morphologizer, which sets parts of speech.
    drop : iterable of str, optional
        Labels of entities to leave out; by default CARDINAL, ORDINAL, PERCENT and QUANTITY, if the model has them.
    links : collection of str
        Types of links to add without a fact. ``"title"``: from the passage's title to all other entities of the
        passage. ``"sentence"``: between entities of a sentence that no fact joins, at most 8 names apart.
    batch_size : int, at least 1
        Passages in one pass of the model.
    skip_failed : float in [0, 100]
        Per cent of the passages that may be left out, because they are longer than the model's ``max_length``; one
        passage always may be, unless this is 0. A passage that is left out has ``failure``, and no entities.

    Raises
    ------
    InputError
        A model that does not exist or lacks a component, a label that it does not know, or batch_size below 1.
    MissingExtraError
        spaCy, the default model or pyahocorasick is not installed.

    References
    ----------
    Honnibal et al., spaCy: Industrial-strength Natural Language Processing in Python, 2020.

    Examples
    --------
    >>> from hopfuse.extract import SpacyReader
    >>> (found,) = SpacyReader().read([{"title": "Alien (film)", "text": "Alien was directed by Ridley Scott."}])
    >>> found.entities, found.triples
    (('Alien', 'Ridley Scott'), (('Alien', 'directed by', 'Ridley Scott'),))
    """

    def __init__(
        self,
        model: str | PathLike[str] | Any = MODEL,
        *,
        drop: Iterable[str] | None = None,
        links: Collection[str] = (_TITLE,),
        batch_size: int = 64,
        skip_failed: float = SKIP_FAILED,
    ) -> None:
        self._skip_failed = check_share(skip_failed)
        self._batch_size = check_whole(batch_size, "batch_size")
        self._model = loaded_model(model, "SpacyReader", ("tagger", "parser", "ner"), exclude=("lemmatizer",))
        self._links = _checked_links(links)
        known = frozenset(self._model.get_pipe("ner").labels)
        self._drop = known.intersection(NUMBERS) if drop is None else _dropped(drop, known)
        self._labels = tuple(sorted(known - self._drop))

    @property
    def language(self) -> str | None:
        """The language of the model, or None if it is for several."""
        try:
            return language_named(str(self._model.lang))
        except InputError:
            return None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that entities may have: the model's, without the dropped ones."""
        return self._labels

    @property
    def skip_failed(self) -> float:
        """Per cent of the passages that may be left out."""
        return self._skip_failed

    def read(self, passages: Any, *, progress: Progress | None = None, skips: Skips | None = None) -> list[Extraction]:
        """Return the entities and facts of each passage.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            Rows of ``text`` and, optionally, ``id`` and ``title``, as :meth:`hopfuse.Index.build` takes them.
        progress : callable, optional
            Called with the number of passages that were read and the number of all.
        skips : Skips, optional
            Counts the passages that are left out over several calls; by default in this one.

        Returns
        -------
        list of Extraction
            In the order of the passages.

        Raises
        ------
        InputError
            The argument is not a table of passages, or more texts than ``skip_failed`` allows are longer than the
            model's ``max_length``. In that case no text is read.
        """
        listed = listed_passages(passages)
        skips = skips or Skips(self._skip_failed, len(listed))
        failed = too_long(((passage.id, passage.text) for passage in listed), self._model, skips)
        texts = ("" if at in failed else passage.text for at, passage in enumerate(listed))
        links = TitleLinks(passage.title for passage in listed)
        found: list[Extraction] = []
        for passage, doc in zip(listed, self._model.pipe(texts, batch_size=self._batch_size), strict=True):
            if len(found) in failed:
                found.append(extracted(passage, failure=failed[len(found)]))
            else:
                found.append(self._extraction(passage, doc, links))
            if progress is not None:
                progress(len(found), len(listed))
        return found

    def _extraction(self, passage: Passage, doc: Any, links: TitleLinks) -> Extraction:
        own = links.names_of(passage.title.strip())
        title = own[0] if own else ""
        found = links.find(passage.text, passage.title.strip())
        persons = [trimmed(ent) for ent in doc.ents if ent.label_ == "PERSON"]
        recognised = [(ent, trimmed(ent)) for ent in doc.ents if ent.label_ not in self._drop]
        linked = [
            one._replace(label=label_at(one, doc.text[one.start : one.end], recognised))
            for one in found
            if one.name == title or is_name(doc, one.start, one.end)
        ]
        kept = [
            SpacyMention(
                ent.start_char, ent.end_char, in_full(name, persons if ent.label_ == "PERSON" else []), ent.label_
            )
            for ent, name in recognised
            if is_meaningful(name) and not is_within(ent, linked)
        ]
        mentions, labels = sorted([*linked, *kept], key=lambda one: (one.start, -one.end)), LabelCounts()
        for one in mentions:
            labels.add(one.name, one.label)
        names = tuple(dict.fromkeys([*own, *(one.name for one in mentions)]))
        facts = facts_of(doc, places(doc, linked, kept), title)
        joined = _links_of(self._links, title, [sentence.end_char for sentence in doc.sents], mentions, facts)
        kinds = tuple(map(labels.of, names))
        return extracted(passage, entities=names, triples=tuple(facts), labels=kinds, links=tuple(joined))


def _checked_links(links: Any) -> tuple[str, ...]:
    for link in check_list(links, "links", "a list of types of links"):
        check_choice(link, "links", _LINKS)
    return tuple(name for name in _LINKS if name in links)


def _dropped(drop: Any, known: frozenset[str]) -> frozenset[str]:
    return frozenset(
        check_choice(label, "drop", sorted(known)) for label in check_list(drop, "drop", "a list of labels")
    )


# ---- Links -----------------------------------------------------------------------------------------------------------


def _links_of(
    types: Sequence[str],
    title: str,
    sentence_ends: Sequence[int],
    mentions: Sequence[SpacyMention],
    facts: Iterable[Triple],
) -> list[Triple]:
    """Return the links (type, entity, entity) of a passage, each pair once per type.

    Parameters
    ----------
    types : sequence of str
        The types of links to return, of ``_LINKS``.
    title : str
        The entity of the passage's title, or ``""``.
    sentence_ends : sequence of int
        Offsets of the ends of the sentences, ascending.
    mentions : sequence of SpacyMention
        By ascending start.
    facts : iterable of (str, str, str)
        The facts of the passage; the pairs of their ends get no ``"sentence"`` link.

    Examples
    --------
    >>> ada, bob = SpacyMention(0, 3, "Ada"), SpacyMention(8, 11, "Bob")
    >>> _links_of(_LINKS, "Engine", [12], [ada, bob], [])
    [('title', 'Engine', 'Ada'), ('title', 'Engine', 'Bob'), ('sentence', 'Ada', 'Bob')]
    """
    found: dict[tuple[str, frozenset[str]], Triple] = {}
    stated = {frozenset((canonical_key(head), canonical_key(tail))) for head, _, tail in facts}

    def add(kind: str, head: str, tail: str) -> None:
        pair = frozenset((canonical_key(head), canonical_key(tail)))
        if len(pair) == 2 and not (kind == _SENTENCE and pair in stated):
            found.setdefault((kind, pair), (kind, head, tail))

    if _TITLE in types and title:
        for one in mentions:
            add(_TITLE, title, one.name)
    if _SENTENCE in types:
        for names in _by_sentence(sentence_ends, mentions):
            for at, name in enumerate(names):
                for other in names[at + 1 : at + 1 + _MAX_APART]:
                    add(_SENTENCE, name, other)
    return list(found.values())


def _by_sentence(ends: Sequence[int], mentions: Sequence[SpacyMention]) -> list[list[str]]:
    """Return the distinct names of each sentence, in order; a name belongs to the sentence in which it begins."""
    rows: dict[int, dict[str, None]] = {}
    for one in mentions:
        rows.setdefault(bisect_right(ends, one.start), {})[one.name] = None
    return [list(names) for names in rows.values()]
