"""Read entities and facts of plain passages by spaCy."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from os import PathLike
from typing import Any

from .._validation import check_whole
from ..errors import InputError
from ._spacy_facts import facts_of
from ._spacy_links import LINKS, TITLE, links_of
from ._spacy_model import MODEL, check_lengths, loaded_model
from ._spacy_names import (
    NUMBERS,
    Mention,
    TitleLinks,
    in_full,
    is_name,
    is_within,
    label_at,
    places,
    says_something,
    trimmed,
)
from .canonical import Labels
from .extraction import Extraction, Passage, Progress, listed_passages


class SpacyReader:
    """Reads passages with a spaCy model: named entities, facts by the parse of each sentence, and titles.

    An entity is what the model's entity recogniser names, a title of any of the passages that a text names as it is
    written, and the passage's own title. A title goes without its last parenthesis where no other title is called so:
    "Alien (film)" is Alien. A fact joins two entities: subject, verb with its particle and preposition, and object;
    passives without their auxiliary ("directed by"); "X is the capital of Y" and "X, the capital of Y" as "capital of".
    A pronoun as subject, and "the film" where the passage says that its title is one, is the title; "he", "she", "his"
    and "her" are not, where the model names a person before them and never the title as one. A surname is the one
    person of the passage who has it. What is asked, stands under "if", "whether" or "unless", or is negated by "not",
    "never", "no longer", "neither" or "nor" is left out; denial by other words ("it is false that") is not seen.

    An entity's label is the one that the recogniser gives it most often in the passage; a title has the label of what
    the recogniser calls the same at that place, if it does.

    A model's numbers may differ in their last bits with the batch that a text is in; the same passages with the same
    ``batch_size`` give the same answer.

    Parameters
    ----------
    model : str, path, or spaCy Language
        An installed model, a folder with one, or a loaded one; it needs a tagger, a parser, an entity
        recogniser, and an attribute_ruler or a morphologizer, which sets parts of speech.
    drop : iterable of str, optional
        Labels of entities that are left out. By default CARDINAL, ORDINAL, PERCENT and QUANTITY, those that the model
        knows.
    links : collection of str
        Types of edges that need no fact. ``"title"``: from the passage's title to each other entity of the passage.
        ``"sentence"``: between entities of one sentence that no fact of the passage joins, at most 8 names apart.
    batch_size : int, at least 1
        Passages in one pass of the model.

    Raises
    ------
    InputError
        No such model, one that lacks a part, a label that it does not know, batch_size below 1.
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
        links: Collection[str] = (TITLE,),
        batch_size: int = 64,
    ) -> None:
        self._batch_size = check_whole(batch_size, "batch_size")
        self._model = loaded_model(model, "SpacyReader", ("tagger", "parser", "ner"), exclude=("lemmatizer",))
        self._links = _checked_links(links)
        known = frozenset(self._model.get_pipe("ner").labels)
        self._drop = known.intersection(NUMBERS) if drop is None else _dropped(drop, known)
        self._labels = tuple(sorted(known - self._drop))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that entities may have: the model's, without those that are left out."""
        return self._labels

    def read(self, passages: Any, *, progress: Progress | None = None) -> list[Extraction]:
        """Return entities and facts of each passage.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            Rows of ``text`` and, optionally, ``id`` and ``title``, as :meth:`hopfuse.Index.build` takes them.
        progress : callable, optional
            Called with the passages that are read and their number.

        Returns
        -------
        list of Extraction
            In the order of the passages.

        Raises
        ------
        InputError
            What is no table of passages, a text longer than the model's ``max_length``; no text is read then.
        """
        listed = listed_passages(passages)
        check_lengths([(passage.id, passage.text) for passage in listed], self._model)
        links = TitleLinks(passage.title for passage in listed)
        docs = self._model.pipe((passage.text for passage in listed), batch_size=self._batch_size)
        found = []
        for passage, doc in zip(listed, docs, strict=True):
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
            Mention(ent.start_char, ent.end_char, in_full(name, persons if ent.label_ == "PERSON" else []), ent.label_)
            for ent, name in recognised
            if says_something(name) and not is_within(ent, linked)
        ]
        mentions, labels = sorted([*linked, *kept], key=lambda one: (one.start, -one.end)), Labels()
        for one in mentions:
            labels.add(one.name, one.label)
        names = tuple(dict.fromkeys([*own, *(one.name for one in mentions)]))
        facts = facts_of(doc, places(doc, linked, kept), title)
        joined = links_of(self._links, title, [sentence.end_char for sentence in doc.sents], mentions, facts)
        return Extraction(
            passage.id,
            passage.title,
            passage.text,
            names,
            tuple(facts),
            labels=tuple(map(labels.of, names)),
            links=tuple(joined),
            document=passage.document,
            position=passage.position,
        )


def _checked_links(links: Any) -> tuple[str, ...]:
    if isinstance(links, str) or not isinstance(links, Collection) or not set(links) <= set(LINKS):
        raise InputError(f"links is {links!r}; it must be a collection of {', '.join(LINKS)}")
    return tuple(name for name in LINKS if name in links)


def _dropped(drop: Any, known: frozenset[str]) -> frozenset[str]:
    if isinstance(drop, str) or not isinstance(drop, Iterable):
        raise InputError(f"drop is {drop!r}; it must be a collection of labels")
    labels = tuple(drop)
    for label in labels:
        if not isinstance(label, str) or label not in known:
            raise InputError(f"drop has the label {label!r}; the model knows {', '.join(sorted(known))}")
    return frozenset(labels)
