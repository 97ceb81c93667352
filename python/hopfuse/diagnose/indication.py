"""Judge the rankings of an index: by judged questions or, as an indication, by questions made from the index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._validation import counted
from ..errors import HopfuseError, InputError
from ..evaluate import Qrels
from ..index import Index
from ..retriever import Retriever
from .comparison import compare_recipes
from .rankings import PLAIN, RANKINGS, retriever_of
from .samples import SIZE, one_passage_sample, two_passage_sample
from .verdict import DECIDING, METRICS, RECALL, Verdict, percent, verdict

#: The rankings of a verdict.
JUDGED = tuple(name for name, ranking in RANKINGS.items() if not ranking.detail)
#: A sample tells rankings apart if the best of them has this recall.
FOUND = 0.1
#: The samples, by name.
_SAMPLES = {"one passage": one_passage_sample, "two passages": two_passage_sample}
_HEADINGS = {
    "one passage": "One passage answers: titles or first sentences, taken out of their passages, with whose words they "
    "share many, which favours words",
    "two passages": "Two passages answer: a title, and general words of a passage that a rare name joins to it. They "
    "follow the graph's edges, so they show what a walk can reach, not how often people ask so",
}


@dataclass(frozen=True)
class Indication:
    """Verdicts on questions that were made from the index itself; ``str()`` says them in sentences.

    Attributes
    ----------
    verdicts : mapping of str to Verdict
        On ``"one passage"``, titles (or first sentences) taken out of their passages, and on ``"two passages"``, pairs
        that a rare name joins which the question does not have.
    first_questions : mapping of str to str
        The first question of each sample.
    lacks : mapping of str to str
        Why there is no verdict on a sample.
    chance : float
        Recall@5 of passages in an order by chance.
    """

    verdicts: Mapping[str, Verdict]
    first_questions: Mapping[str, str]
    lacks: Mapping[str, str]
    chance: float

    @property
    def use(self) -> str | None:
        """Return the ranking to use by every sample that tells; None if none does, or if they disagree."""
        uses = {one.use for name, one in self.verdicts.items() if self.tells(name)}
        return uses.pop() if len(uses) == 1 else None

    def tells(self, name: str) -> bool:
        """Return whether the best ranking finds 10 % of a sample, and more than an order by chance does."""
        best = self.verdicts[name].highest.recall
        return best.mean >= FOUND and best.low is not None and best.low > self.chance

    def said(self, name: str) -> str:
        """Return what the questions of a sample are, and the verdict on them."""
        one = self.verdicts[name]
        example = f"{counted(one.questions, 'question')}, such as {self.first_questions[name]!r}"
        heading = f"{_HEADINGS[name]} ({example})."
        if self.tells(name):
            return f"{heading} {one}"
        best = one.highest
        return (
            f"{heading} This sample says nothing here: {best.ranking}, the best, finds {percent(best.recall)} by "
            f"{RECALL}, and chance {100 * self.chance:.1f} %."
        )

    @property
    def conclusion(self) -> str | None:
        """Return why there is nothing to use, if there are verdicts."""
        told = [f"{one.use} by the sample of {name}" for name, one in self.verdicts.items() if self.tells(name)]
        if self.use is not None or not self.verdicts:
            return None
        why = f"The samples disagree: {', '.join(told)}" if told else "No sample says which recipe to use"
        return f"{why}. Keep the default search until you have judged questions."

    def __str__(self) -> str:
        said = [self.said(name) for name in self.verdicts]
        said += [] if self.conclusion is None else [self.conclusion]
        return "\n".join([*said, *(f"No sample of {name}: {why}" for name, why in self.lacks.items())])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        made = {
            name: {"example": self.first_questions[name], "tells": self.tells(name), **one.to_dict()}
            for name, one in self.verdicts.items()
        }
        return {**made, "lacks": dict(self.lacks), "use": self.use}


def judge(
    retriever: Retriever | Index,
    questions: Sequence[str],
    qrels: Qrels,
    *,
    vectors: Any = None,
    entities: Any = None,
    rankings: Collection[str] = JUDGED,
) -> Verdict:
    """Return which ranking to use on judged questions, and whether the graph is worth its time.

    Parameters
    ----------
    retriever, questions, qrels, vectors, entities
        As of :func:`compare_recipes`.
    rankings : collection of str
        Of :data:`RANKINGS`; by default all but parts of other rankings. One that cannot run is left out, as is the
        plain hybrid of an index without vectors.

    Raises
    ------
    InputError
        No question is judged, or :func:`compare_recipes` raises it.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import judge
    >>> from hopfuse.evaluate import Qrels
    >>> index = hf.Index.from_texts(["Ada wrote notes.", "The sea is cold."])
    >>> judge(index, ["Who wrote?"], Qrels(["q"], [[0]])).use
    'words'
    """
    if not any(qrels.gold):
        raise InputError("empty", "qrels", "{field} has no passage that answers a question, so there is no verdict")
    whole = retriever_of(retriever)
    is_words = whole.index.corpus is None and PLAIN in rankings
    same = {PLAIN: InputError("missing", "index", "without vectors it is words")} if is_words else {}
    asked = {"vectors": vectors, "entities": entities, "rankings": [name for name in rankings if name not in same]}
    found = verdict(compare_recipes(whole, questions, qrels, METRICS, weighed=True, **asked))
    return replace(found, left_out={**found.left_out, **same})


def indicate(retriever: Retriever | Index, *, size: int = SIZE, rankings: Collection[str] = JUDGED) -> Indication:
    """Return verdicts on questions that are made from the index, for an index without judged questions.

    Parameters
    ----------
    retriever : Retriever or Index
        With an encoder if the index has vectors.
    size : int
        Most questions of a sample.
    rankings : collection of str
        As of :func:`judge`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import indicate
    >>> names = ["Ems", "Elbe", "Oder", "Main", "Isar", "Inn", "Lech", "Spree", "Havel", "Saale"]
    >>> text = "The {} is long, and several towns lie by it."
    >>> rows = [{"title": f"The river {name}", "text": text.format(name)} for name in names]
    >>> found = indicate(hf.Index.from_texts(rows))
    >>> found.verdicts["one passage"].questions, sorted(found.lacks)
    (10, ['two passages'])
    """
    whole = retriever_of(retriever)
    verdicts, firsts, lacks = dict[str, Verdict](), dict[str, str](), dict[str, str]()
    for name, make in _SAMPLES.items():
        try:
            sample = make(whole, size)
            verdicts[name] = judge(sample.retriever, sample.questions, sample.qrels, rankings=rankings)
            firsts[name] = sample.questions[0]
        except HopfuseError as error:  # what a sample lacks does not end the diagnosis
            lacks[name] = str(error)
    return Indication(verdicts, firsts, lacks, min(1.0, DECIDING / max(1, whole.index.num_passages)))


def searchable(retriever: Retriever, *, vectors: bool = False) -> tuple[Retriever, str | None]:
    """Return a retriever that searches texts, without the index's vectors if nothing makes those of questions.

    Parameters
    ----------
    retriever : Retriever
    vectors : bool
        Whether the vectors of questions are given.

    Returns
    -------
    retriever : Retriever
    lack : str or None
        Why the vectors are not used.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import searchable
    >>> index = hf.Index.build(passages=[{"text": "Ada wrote."}], vectors=[[1.0, 0.0]])
    >>> searchable(hf.Retriever(index))[0].index.dim is None
    True
    """
    index, encoder = retriever.index, retriever.encoder
    if index.corpus is None or vectors or (encoder is not None and encoder.dim == index.dim):
        return retriever, None
    lack = retriever.describe().lacks.get("an encoder", "the encoder has another dimension than the vectors")
    return retriever.of_state(index.with_vectors(None)), f"The vectors of the index are not used: {lack}"


def over_all(found: Verdict, retriever: Retriever) -> Verdict:
    """Return a verdict that was reached without the index's vectors, with why the whole index leaves rankings out.

    Parameters
    ----------
    found : Verdict
        Of the retriever that :func:`searchable` returns.
    retriever : Retriever
        The one that was given to it.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import judge, over_all, searchable
    >>> from hopfuse.evaluate import Qrels
    >>> whole = hf.Retriever(hf.Index.build(passages=[{"text": "Ada wrote."}], vectors=[[1.0, 0.0]]))
    >>> found = over_all(judge(searchable(whole)[0], ["Who wrote?"], Qrels(["q"], [[0]])), whole)
    >>> str(found.left_out["dense"])
    'nothing makes the vectors of the questions'
    """
    reasons = dict(found.left_out)
    for name in reasons:
        try:
            made = RANKINGS[name].over(retriever, "none")
        except HopfuseError as error:
            reasons[name] = error
        else:
            if made.needs.vectors:
                reasons[name] = InputError("missing", "encoder", "nothing makes the vectors of the questions")
    return replace(found, left_out=reasons)
