"""Decide which ranking to use, and whether the graph is worth its time, from a comparison of the rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .._validation import counted
from ..errors import HopfuseError
from ..evaluate import Comparison, Estimate, Evaluation, compare, holm, parse_metric, queries_needed
from ..recipes import RECIPES
from ..report import p_text
from .comparison import RecipeComparison
from .rankings import PLAIN, RANKINGS

#: The passages of the metric that decides, that metric, and the one that decides where it differs by chance alone.
DECIDING = 5
RECALL, MRR = METRICS = f"recall@{DECIDING}", "mrr"
LEVEL = 0.05
#: The encoder is weak if dense is so far behind words.
BEHIND = 0.05
#: Fewer questions than these do not decide.
ENOUGH = 30
#: The legs that replace the plain hybrid as the bar where they are better than it.
LEGS = ("dense", "words")


@dataclass(frozen=True)
class Difference:
    """The difference of a ranking from another one; ``p_holm`` is corrected over those compared with that one.

    Attributes
    ----------
    recall, mrr : Comparison
        By recall@5 and by the reciprocal rank.
    """

    recall: Comparison
    mrr: Comparison

    @property
    def sign(self) -> int:
        """1 if the ranking is better beyond chance, -1 if it is worse, else 0.

        By recall@5 or, where that differs by chance alone, by MRR (p up to 5 % after Holm's correction).
        """
        found = (np.sign(one.difference) for one in (self.recall, self.mrr) if one.p_holm <= LEVEL)
        return int(next((sign for sign in found if sign), 0))

    @property
    def zero(self) -> bool:
        """Return whether both rankings have the same values on every question."""
        return not any(one.wins or one.losses for one in (self.recall, self.mrr))

    def __str__(self) -> str:
        said = f"{_points(self.recall)} of {RECALL}"
        if self.recall.p_holm > LEVEL >= self.mrr.p_holm:
            said += f" and {_points(self.mrr)} of MRR"
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {RECALL: self.recall.to_dict(), MRR: self.mrr.to_dict(), "sign": self.sign}


@dataclass(frozen=True)
class Figures:
    """The figures of a ranking, and its difference from the bar.

    Attributes
    ----------
    ranking : str
    recall, mrr : Estimate
        Recall@5 and the mean reciprocal rank.
    milliseconds : float
        Of a question, in batches of 32.
    compared : Difference or None
        From the bar; None for the bar.
    """

    ranking: str
    recall: Estimate
    mrr: Estimate
    milliseconds: float
    compared: Difference | None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        compared = None if self.compared is None else self.compared.to_dict()
        estimates = {RECALL: self.recall.to_dict(), MRR: self.mrr.to_dict()}
        return {"ranking": self.ranking, **estimates, "ms per query": self.milliseconds, "compared": compared}


@dataclass(frozen=True)
class GraphWorth:
    """The best recipe that walks, and the best ranking that does not: whether walking the graph is worth its time.

    Attributes
    ----------
    walk, leg : str
        The rankings.
    compared : Difference
        Of ``walk`` from ``leg``.
    walk_milliseconds, leg_milliseconds : float
        Of a question.
    walk_weight : float or None
        How far the questions' names lead (:class:`RecipeComparison`).
    """

    walk: str
    leg: str
    compared: Difference
    walk_milliseconds: float
    leg_milliseconds: float
    walk_weight: float | None

    @property
    def answer(self) -> Literal["yes", "no", "open"]:
        """Return whether the walk is better or worse beyond chance."""
        answers: tuple[Literal["yes", "no", "open"], ...] = ("open", "yes", "no")
        return answers[self.compared.sign]

    def __str__(self) -> str:
        begins = {
            "yes": "The graph is worth its time",
            "no": "The graph is not worth its time on these questions",
            "open": "Whether the graph is worth its time is open: the difference is within chance",
        }
        weight = ""
        if self.walk_weight is not None:
            weight = f" The walk's weight by the questions' names is {self.walk_weight:.2f} on average, of at most 1."
        return (
            f"{begins[self.answer]}. {self.walk}, the best that walks it, differs from {self.leg}, the best that does "
            f"not, by {self.compared}. A question takes {_time(self.walk_milliseconds)} with the walk and "
            f"{_time(self.leg_milliseconds)} without it.{weight}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {
            "answer": self.answer,
            "walk": self.walk,
            "leg": self.leg,
            "compared": self.compared.to_dict(),
            "ms per query": {self.walk: self.walk_milliseconds, self.leg: self.leg_milliseconds},
            "walk weight": self.walk_weight,
            "said": str(self),
        }


@dataclass(frozen=True)
class Verdict:
    """The ranking to use on a set of judged questions, and why; ``str()`` says it in sentences.

    Attributes
    ----------
    questions : int
        Questions that are judged.
    figures : tuple of Figures
        Of every ranking that ran.
    bar : str
        The ranking that recipes are held to: the plain hybrid, or a leg that is better than it beyond chance.
    use : str
        The best recipe that is better than the bar beyond chance (:attr:`Difference.sign`); without one, the bar.
    best : str or None
        The recipe of the highest recall that differs from the bar on some question; None if none does.
    needed : int or None
        Questions that would show that ``best`` has a higher recall than the bar, if it has, within chance; None if
        those asked are at least as many, or too few to tell.
    graph : GraphWorth or None
        None if no ranking walks.
    left_out : mapping of str to HopfuseError
        Rankings that cannot run on the index, and why.
    behind : Difference or None
        Of dense from words, if that is more than 5 points behind, beyond chance.
    """

    questions: int
    figures: tuple[Figures, ...]
    bar: str
    use: str
    best: str | None
    needed: int | None
    graph: GraphWorth | None
    left_out: Mapping[str, HopfuseError]
    behind: Difference | None

    @property
    def hint(self) -> str | None:
        """Return that the encoder is weak, and what to do; None if it is not."""
        if self.behind is None:
            return None
        return (
            "The encoder is weak on these texts: dense differs from words by "
            f"{_points(self.behind.recall)} of {RECALL}. "
            "Try a stronger one, such as --encoder sentence-transformers:FOLDER of hopfuse build: that may change more "
            "than any recipe."
        )

    def of(self, ranking: str) -> Figures:
        """Return the figures of a ranking."""
        return next(one for one in self.figures if one.ranking == ranking)

    @property
    def few(self) -> bool:
        """Return whether the questions are too few to decide: fewer than 30."""
        return self.questions < ENOUGH

    @property
    def highest(self) -> Figures:
        """The figures of the ranking of the highest recall."""
        return max(self.figures, key=lambda one: one.recall.mean)

    @property
    def sentences(self) -> list[str]:
        """Return what to use and why, and whether the graph is worth its time."""
        said = [self._choice()]
        if self.graph is not None:
            said.append(str(self.graph))
        return said

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _choice(self) -> str:
        use, bar, questions = self.of(self.use), self.of(self.bar), counted(self.questions, "question")
        begin = f"Use {self.use}: its {RECALL} is {percent(use.recall)}"
        if use.compared is not None:
            return f"{begin}, that of {self.bar} {percent(bar.recall)}. It differs by {use.compared}."
        said = [f"{begin}."]
        plain = next((one.compared for one in self.figures if one.ranking == PLAIN), None)
        if plain is not None and plain.sign < 0:
            turned = Difference(*(_turned(one) for one in (plain.recall, plain.mrr)))
            said.append(f"It is better than {PLAIN}, by {turned}.")
        best = None if self.best is None else self.of(self.best).compared
        if best is None:
            ran = any(_is_choice(one.ranking) for one in self.figures)
            none = f"No recipe that runs differs from {self.bar} on {questions}." if ran else "No recipe runs."
            return " ".join([*said, none])
        said.append(f"No recipe is better than {self.bar} beyond chance on {questions}.")
        said.append(f"The best, {self.best}, differs by {best}.")
        if self.needed is not None:
            said.append(f"To show this difference takes about {_about(self.needed)} questions.")
        smallest = best.recall.detectable()
        if smallest is not None and smallest < 1:
            said.append(f"As many questions show differences from about {100 * smallest:.1f} points on.")
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {
            "questions": self.questions,
            "few": self.few,
            "use": self.use,
            "bar": self.bar,
            "best": self.best,
            "questions needed": self.needed,
            "graph": None if self.graph is None else self.graph.to_dict(),
            "said": self.sentences,
            "rankings": [one.to_dict() for one in self.figures],
            "left out": {name: str(why) for name, why in self.left_out.items()},
            "hint": self.hint,
        }


def verdict(found: RecipeComparison) -> Verdict:
    """Return which ranking to use, from a comparison by recall@5 and MRR.

    Parameters
    ----------
    found : RecipeComparison
        Of :func:`compare_recipes` under the metrics ``"recall@5"`` and ``"mrr"``.

    Raises
    ------
    InputError
        The comparison has other metrics.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import compare_recipes, verdict
    >>> from hopfuse.evaluate import Qrels
    >>> index = hf.Index.from_texts(["Ada wrote notes.", "The sea is cold."])
    >>> qrels = Qrels(["q", "r"], [[0], [1]])
    >>> found = verdict(compare_recipes(index, ["Who wrote?", "a cold sea"], qrels, ["recall@5", "mrr"]))
    >>> found.use, found.of("words").mrr.mean, found.graph
    ('words', 1.0, None)
    """
    evaluation = found.evaluation
    bar = _bar(evaluation)
    recipes = [run for run in evaluation.runs if _is_choice(run)]
    compared = dict(zip(recipes, _against(evaluation, recipes, bar), strict=True))
    others = [run for run in evaluation.runs if run not in recipes and run != bar]
    compared |= dict(zip(others, _against(evaluation, others, bar), strict=True))
    figures = tuple(
        Figures(
            run,
            evaluation.estimate(run, RECALL),
            evaluation.estimate(run, MRR),
            found.batch_milliseconds.get(run, float("nan")),
            compared.get(run),
        )
        for run in evaluation.runs
    )
    better = [run for run in recipes if compared[run].sign > 0]
    best, asked = (
        _first(evaluation, [run for run in recipes if not compared[run].zero]),
        evaluation.estimate(bar, RECALL).n,
    )
    needed = None
    if best is not None and compared[best].sign == 0 and compared[best].recall.difference > 0 and asked >= ENOUGH:
        shown = queries_needed(compared[best].recall.difference, compared[best].recall.deviation)
        needed = shown if shown > asked else None
    return Verdict(
        questions=asked,
        figures=figures,
        bar=bar,
        use=_first(evaluation, better) or bar,
        best=best,
        needed=needed,
        graph=graph_worth(found),
        left_out=found.left_out,
        behind=_behind(evaluation),
    )


def graph_worth(found: RecipeComparison) -> GraphWorth | None:
    """Return whether walking the graph is worth its time, or None if no recipe walks it.

    The best recipe that walks is compared with the best ranking that does not.

    Parameters
    ----------
    found : RecipeComparison
        As of :func:`verdict`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import compare_recipes, graph_worth
    >>> from hopfuse.evaluate import Qrels
    >>> index = hf.Index.from_texts(["Ada wrote notes.", "The sea is cold."])
    >>> graph_worth(compare_recipes(index, ["a cold sea"], Qrels(["q"], [[1]]), ["recall@5", "mrr"])) is None
    True
    """
    evaluation = found.evaluation
    walking = [run for run in evaluation.runs if run in found.walks and _is_choice(run)]
    walk = _first(evaluation, walking)
    leg = _first(
        evaluation, [run for run in evaluation.runs if run in found.batch_milliseconds and _stands(run, found)]
    )
    if walk is None or leg is None:
        return None
    compared = dict(zip(walking, _against(evaluation, walking, leg), strict=True))[walk]
    times = found.batch_milliseconds
    return GraphWorth(walk, leg, compared, times[walk], times[leg], found.walk_weight)


def _stands(run: str, found: RecipeComparison) -> bool:
    """Return whether a ranking finds passages without a walk."""
    return run not in found.walks and (run in LEGS or run == PLAIN or _is_choice(run))


def _is_choice(run: str) -> bool:
    """Return whether a ranking is a recipe that a search can use, beside the plain hybrid."""
    ranking = RANKINGS.get(run)
    whole = ranking is not None and ranking.leg is None and not ranking.detail and run != PLAIN
    return ranking is not None and whole and RECIPES[ranking.recipe].ranks == "passages"


def _bar(evaluation: Evaluation) -> str:
    """Return the ranking that recipes are held to."""
    runs = evaluation.runs
    if PLAIN not in runs or "dense" not in runs:  # without vectors, the plain hybrid has the list of words alone
        assert evaluation.baseline is not None
        return evaluation.baseline
    legs = [run for run in LEGS if run in runs]
    compared = dict(zip(legs, _against(evaluation, legs, PLAIN), strict=True))
    return _first(evaluation, [run for run in legs if compared[run].sign > 0]) or PLAIN


def _behind(evaluation: Evaluation) -> Difference | None:
    """Return the difference of dense from words, if it is far behind."""
    if not {"dense", "words"} <= set(evaluation.runs):
        return None
    found = _against(evaluation, ["dense"], "words")[0]
    return found if found.recall.difference < -BEHIND and found.recall.p_holm <= LEVEL else None


def _against(evaluation: Evaluation, runs: Sequence[str], bar: str) -> list[Difference]:
    """Return the differences of runs from a bar, corrected over these runs."""
    by_metric = []
    for metric in METRICS:
        theirs, binary = evaluation.per_query[bar][metric], parse_metric(metric).binary
        found = [compare(evaluation.per_query[run][metric], theirs, binary=binary) for run in runs]
        corrected = holm([one.p_value for one in found])
        by_metric.append([replace(one, p_holm=float(p)) for one, p in zip(found, corrected, strict=True)])
    return [Difference(*both) for both in zip(*by_metric, strict=True)]


def _first(evaluation: Evaluation, runs: Sequence[str]) -> str | None:
    """Return the run of the highest recall, then of the highest MRR, then the first; None if there is none."""
    return max(runs, key=lambda run: [evaluation.estimate(run, metric).mean for metric in METRICS], default=None)


def percent(one: Estimate) -> str:
    """Return a mean with its interval, as text."""
    ends = "" if one.low is None or one.high is None else f" ({100 * one.low:.1f} to {100 * one.high:.1f})"
    return f"{100 * one.mean:.1f} %{ends}"


def _turned(c: Comparison) -> Comparison:
    """Return the comparison from the other side."""
    low, high = (None if end is None else -end for end in (c.high, c.low))
    return replace(c, difference=-c.difference, wins=c.losses, losses=c.wins, low=low, high=high)


def _points(c: Comparison) -> str:
    ends = "" if c.low is None or c.high is None else f"{100 * c.low:+.1f} to {100 * c.high:+.1f}, "
    p = p_text(c.p_holm)
    return f"{100 * c.difference:+.1f} points ({ends}p {f'< {p[1:]}' if p[0] == '<' else f'= {p}'})"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.2g} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"


def _about(number: int) -> str:
    """Return a number rounded to two digits."""
    return f"{round(number, 2 - len(str(number))) if number > 99 else number:,}"
