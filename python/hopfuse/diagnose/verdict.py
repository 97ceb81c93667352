"""Decide which ranking to use, and whether the graph is worth its time, from a comparison of the rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from .._validation import counted
from ..evaluate import Comparison, Estimate, Evaluation, compare, holm, parse_metric, queries_needed
from ..recipes import RECIPES
from ..report import p_text
from .comparison import RecipeComparison
from .rankings import PLAIN, RANKINGS

#: The metric that decides, and one that is shown beside it.
DECIDES, SHOWN = "recall@5", "mrr"
METRICS = (DECIDES, SHOWN)
LEVEL = 0.05
#: The legs that replace the plain hybrid as the bar where they are better than it.
LEGS = ("dense", "words")


@dataclass(frozen=True)
class Figures:
    """What a ranking finds, and how it compares with the bar.

    Attributes
    ----------
    ranking : str
    recall, mrr : Estimate
        Recall@5 and the mean reciprocal rank.
    milliseconds : float
        Of a question, in batches of 32.
    compared : Comparison or None
        By recall@5, with the bar; None for the bar. ``p_holm`` of a recipe is corrected over all recipes.
    """

    ranking: str
    recall: Estimate
    mrr: Estimate
    milliseconds: float
    compared: Comparison | None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        compared = None if self.compared is None else self.compared.to_dict()
        estimates = {DECIDES: self.recall.to_dict(), SHOWN: self.mrr.to_dict()}
        return {"ranking": self.ranking, **estimates, "ms per query": self.milliseconds, "compared": compared}


@dataclass(frozen=True)
class GraphWorth:
    """Whether walking the graph is worth its time: the best ranking that walks beside the best that does not.

    Attributes
    ----------
    walk, leg : str
        The rankings.
    compared : Comparison
        Of ``walk`` with ``leg`` by recall@5; ``p_holm`` is corrected over all rankings that walk.
    walk_milliseconds, leg_milliseconds : float
        Of a question.
    """

    walk: str
    leg: str
    compared: Comparison
    walk_milliseconds: float
    leg_milliseconds: float

    @property
    def answer(self) -> Literal["yes", "no", "open"]:
        """Whether the walk is better or worse beyond chance."""
        if self.compared.p_holm > LEVEL:
            return "open"
        return "yes" if self.compared.difference > 0 else "no"

    def __str__(self) -> str:
        begins = {
            "yes": "The graph is worth its time",
            "no": "The graph is not worth its time on these questions",
            "open": "Whether the graph is worth its time is open: the difference is within chance",
        }
        return (
            f"{begins[self.answer]}. {self.walk}, the best that walks it, differs from {self.leg}, the best that does "
            f"not, by {_difference(self.compared)}. A question takes {_time(self.walk_milliseconds)} with the walk and "
            f"{_time(self.leg_milliseconds)} without it."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {**asdict(self), "compared": self.compared.to_dict(), "answer": self.answer}


@dataclass(frozen=True)
class Verdict:
    """Which ranking to use on a set of judged questions; ``str()`` says it in sentences.

    Attributes
    ----------
    questions : int
        Questions that are judged.
    figures : tuple of Figures
        Of every ranking that ran.
    bar : str
        The ranking that recipes are held to: the plain hybrid, or a leg that is better than it beyond chance.
    use : str
        The best recipe that is better than the bar beyond chance (p below 5 % after Holm's correction over the
        recipes); without one, the bar.
    best : str or None
        The recipe of the highest recall; None if no recipe ran.
    needed : int or None
        Questions that would show the difference of ``best`` from the bar, if it is positive and within chance.
    graph : GraphWorth or None
        None if no ranking walks.
    left_out : mapping of str to str
        Rankings that cannot run on the index, and why.
    """

    questions: int
    figures: tuple[Figures, ...]
    bar: str
    use: str
    best: str | None
    needed: int | None
    graph: GraphWorth | None
    left_out: Mapping[str, str]

    def of(self, ranking: str) -> Figures:
        """Return the figures of a ranking."""
        return next(one for one in self.figures if one.ranking == ranking)

    @property
    def sentences(self) -> list[str]:
        """What to use and why, and whether the graph is worth its time."""
        said = [self._choice()]
        if self.graph is not None:
            said.append(str(self.graph))
        return said

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _choice(self) -> str:
        use, bar = self.of(self.use), self.of(self.bar)
        begin = f"Use {self.use}: its {DECIDES} is {_percent(use.recall)}"
        if self.use != self.bar:
            assert use.compared is not None
            return f"{begin}, that of {self.bar} {_percent(bar.recall)}: {_difference(use.compared)}."
        begin += "."
        if self.bar in LEGS and any(one.ranking == PLAIN for one in self.figures):
            compared = self.of(PLAIN).compared
            assert compared is not None
            begin += f" It is better than {PLAIN} beyond chance ({PLAIN}: {_difference(compared)})."
        if self.best is None:
            return f"{begin} No recipe could be compared with it."
        compared = self.of(self.best).compared
        assert compared is not None
        questions = counted(self.questions, "question")
        said = [begin, f"No recipe is better than {self.bar} beyond chance on these {questions}."]
        said.append(f"The best, {self.best}, differs by {_difference(compared)}.")
        if self.needed is not None:
            said.append(f"To show this difference takes about {_about(self.needed)} questions.")
        smallest = compared.detectable()
        if smallest is not None and smallest < 1:
            said.append(f"These {questions} show differences from about {100 * smallest:.1f} points on.")
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {
            "questions": self.questions,
            "use": self.use,
            "bar": self.bar,
            "best": self.best,
            "questions needed": self.needed,
            "graph": None if self.graph is None else self.graph.to_dict(),
            "said": self.sentences,
            "rankings": [one.to_dict() for one in self.figures],
            "left out": dict(self.left_out),
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
    compared |= {run: _against(evaluation, [run], bar)[0] for run in others}
    figures = tuple(
        Figures(
            run,
            evaluation.estimate(run, DECIDES),
            evaluation.estimate(run, SHOWN),
            found.batch_milliseconds.get(run, float("nan")),
            compared.get(run),
        )
        for run in evaluation.runs
    )
    better = [run for run in recipes if compared[run].p_holm <= LEVEL and compared[run].difference > 0]
    best = _first(evaluation, recipes)
    needed = None
    if best is not None and not better and compared[best].difference > 0:
        needed = queries_needed(compared[best].difference, compared[best].deviation)
    return Verdict(
        questions=evaluation.estimate(bar, DECIDES).n,
        figures=figures,
        bar=bar,
        use=_first(evaluation, better) or bar,
        best=best,
        needed=needed,
        graph=graph_worth(found),
        left_out=found.left_out,
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
    return GraphWorth(walk, leg, compared, found.batch_milliseconds[walk], found.batch_milliseconds[leg])


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
    better = [run for run in legs if compared[run].p_holm <= LEVEL and compared[run].difference > 0]
    return _first(evaluation, better) or PLAIN


def _against(evaluation: Evaluation, runs: Sequence[str], bar: str) -> list[Comparison]:
    """Return comparisons of runs with a bar, corrected over them."""
    binary = parse_metric(DECIDES).binary
    theirs = evaluation.per_query[bar][DECIDES]
    found = [compare(evaluation.per_query[run][DECIDES], theirs, binary=binary) for run in runs]
    corrected = holm([one.p_value for one in found])
    return [replace(one, p_holm=float(p)) for one, p in zip(found, corrected, strict=True)]


def _first(evaluation: Evaluation, runs: Sequence[str]) -> str | None:
    """Return the run of the highest recall, then of the highest MRR, then the first; None if there is none."""
    return max(runs, key=lambda run: [evaluation.estimate(run, metric).mean for metric in METRICS], default=None)


def _percent(one: Estimate) -> str:
    ends = "" if one.low is None or one.high is None else f" ({100 * one.low:.1f} to {100 * one.high:.1f})"
    return f"{100 * one.mean:.1f} %{ends}"


def _difference(c: Comparison) -> str:
    ends = "" if c.low is None or c.high is None else f"{100 * c.low:+.1f} to {100 * c.high:+.1f}, "
    p = p_text(c.p_holm)
    return f"{100 * c.difference:+.1f} points ({ends}p {'' if p[0] == '<' else '= '}{p})"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.2g} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"


def _about(number: int) -> str:
    """Return a number rounded to two digits."""
    return f"{round(number, 2 - len(str(number))) if number > 99 else number:,}"
