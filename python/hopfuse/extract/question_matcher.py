"""Find names of an index in questions or, in a question without names, words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from ..index import Index, IndexPart
from .gazetteer import Gazetteer, Match
from .linker import EntityLinker
from .words import WordMatcher


class QuestionMatcher:
    """Finds names with :class:`EntityLinker` and, in questions without names, words with :class:`WordMatcher`.

    If a question has names, words would spread the walk over unrelated passages (docs/readers.md). Both matchers are
    built at their first use.

    Parameters
    ----------
    index : Index
    case_sensitive : bool
        Find all names that are written as in the index, and no others.

    Raises
    ------
    MissingExtraError
        From :meth:`match`: ``pyahocorasick`` is needed for names, or a stemmer or tagger for words, and is not
        installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(
    ...     passages=[{"text": "The capital of Turkey is Ankara."}],
    ...     entities=["Turkey", "Ankara"],
    ...     graph=[{"src": 0, "dst": 1}, {"src": 0, "dst": 2}],
    ... )
    >>> matcher = hf.extract.QuestionMatcher(index)
    >>> [match.surface for match in matcher.match(["What is the capital of Turkey?"])[0]]
    ['Turkey']
    """

    def __init__(self, index: Index, *, case_sensitive: bool = False) -> None:
        self._index, self._case_sensitive = index, case_sensitive
        words = index.words
        self._named = index.num_entities if words is None else words.first  # entities that are names, not words
        self._whole: QuestionMatcher | None = None  # of a part: the matcher of the whole index

    def match(self, texts: Sequence[str]) -> list[list[str | int | Match]]:
        """Return the names in each text, in order or, for a text without names, the entity numbers of its words."""
        found: list[list[str | int | Match]] = self._names(texts) if self._named else [[] for _ in texts]
        if self._index.words is not None:
            unnamed = [at for at, row in enumerate(found) if not row]
            for at, words in zip(unnamed, self._words.match([texts[at] for at in unnamed]), strict=True):
                found[at] += dict.fromkeys(match.entity for match in words)
        return found

    def part(self, part: IndexPart) -> QuestionMatcher:
        """Return the matcher of a part of the index, for isolated searches; the tables of names are shared."""
        other = QuestionMatcher(part.index, case_sensitive=self._case_sensitive)
        other._whole = self
        return other

    def of_state(self, index: Index) -> QuestionMatcher:
        """Return the matcher of another state of the index; the tables of names and words are continued.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> rows, graph = [{"id": "a", "text": "Nice."}], [{"src": 0, "dst": 1}]
        >>> saved = hf.Index.build(passages=rows, entities=["Nice"], graph=graph).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     matcher = hf.extract.QuestionMatcher(live.index)
        ...     with live.change() as change:
        ...         change.add_passages([{"id": "b", "text": "The sea."}])
        ...     later = matcher.of_state(live.refresh())
        >>> [match.surface for match in later.match(["nice"])[0]]
        ['nice']
        """
        other = QuestionMatcher(index, case_sensitive=self._case_sensitive)
        if "_linker" in vars(self):  # it was used
            other._linker = self._linker.of_state(index)
        if "_words" in vars(self) and index.words is not None:
            other._words = self._words.of_state(index)
        return other

    def _names(self, texts: Sequence[str]) -> list[list[str | int | Match]]:
        """Return the distinct surfaces if ``case_sensitive``, else all matches."""
        if self._case_sensitive:
            return [list(dict.fromkeys(m.surface for m in found)) for found in self._gazetteer.match(texts)]
        return [list(found) for found in self._linker.match(texts)]

    @cached_property
    def _linker(self) -> EntityLinker:
        return EntityLinker(self._index) if self._whole is None else self._whole._linker.over(self._index)

    @cached_property
    def _words(self) -> WordMatcher:
        return WordMatcher(self._index) if self._whole is None else self._whole._words.over(self._index)

    @cached_property
    def _gazetteer(self) -> Gazetteer:
        named = {e: name for e, name in enumerate(islice(self._index.entity_names, self._named)) if name.strip()}
        aliases = {e: [a for a in row if a.strip()] for e, row in enumerate(self._index.entity_aliases)}
        row_of = {e: row for row, e in enumerate(named)}
        return Gazetteer(
            list(named.values()),
            {row_of[e]: row for e, row in aliases.items() if e in row_of},
            case_sensitive=True,
        )
