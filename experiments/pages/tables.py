"""The tables behind the pages, as comma-separated values in docs/results/quality/; shares are in percent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..tuned import BASELINES
from .numbers import csv_of, percent, points

Results = Mapping[str, Any]
RECIPE_METRICS = ("recall@5", "last_hop_recall@5", "last_hop_recall@10", "full_support@10", "mrr")
COMPARED_WITH = ("dense", "guided-walk")
ROLES = ("baseline", "selected", "by mean", "best")
ENDS = ("low", "high")
COMPARED = ("first", "second", "folder", "metric")
READ = ("texts", "titles and texts")
STABILITY = ("rbo", "jaccard@10", "first gold kept")


def tables(results: Results) -> dict[str, str]:
    """Return every table by the name of its file."""
    return {
        "recipes.csv": recipes(results["side-by-side"]),
        "best-legs.csv": best_legs(results["side-by-side"]),
        "published.csv": by_group(results["published"]["folders"]),
        "published-compared.csv": compared(results["published"]["folders"]),
        "convex-against-rrf.csv": convex_against_rrf(results["published"]["folders"]),
        "metaqa.csv": by_group({"metaqa": results["metaqa"]}),
        "metaqa-compared.csv": compared({"metaqa": results["metaqa"]}),
        "guided-walk.csv": guided(results["guided"]),
        "policy-rag.csv": policy(results["ablations"]["folders"]),
        "policy-rag-stability.csv": stability(results["ablations"]["folders"]),
        "defaults.csv": defaults(results["tuned"]),
        "tau.csv": tau(results["similarity"]),
        "titles.csv": titles(results["titles"]["folders"]),
        "fusion-arms.csv": fusion_arms([*results["fusion"]["questions"], results["reranking"]["question"]]),
        "fusion-pairs.csv": fusion_pairs([*results["fusion"]["questions"], results["reranking"]["question"]]),
        "sets.csv": sets(results),
    }


def parts(recorded: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the name, the graph and the figures of each index of a comparison of recipes."""
    for name, graphs in recorded.items():
        for graph, found in graphs.items():
            yield name, graph, found


def recipes(recorded: Mapping[str, Any]) -> str:
    """Return all metrics of every ranking on every index."""
    rows = []
    for name, graph, found in parts(recorded):
        for run in found["runs"]:
            means = [percent(found["means"][run].get(metric)) for metric in RECIPE_METRICS]
            p = [_p(found["p"].get(baseline, {}).get(run)) for baseline in COMPARED_WITH]
            rows.append([name, graph, run, found["questions"], *means, *p, found["commit"]])
    p_head = [f"p to {baseline} (Holm)" for baseline in COMPARED_WITH]
    return csv_of(["set", "graph", "ranking", "questions", *RECIPE_METRICS, *p_head, "commit"], rows)


def best_legs(recorded: Mapping[str, Any]) -> str:
    """Return the difference of every recipe from the best of its legs and of the plain hybrid."""
    rows = [
        [name, graph, run, one["leg"], *_points(one)]
        for name, graph, found in parts(recorded)
        for run, one in found["legs"].items()
    ]
    return csv_of(["set", "graph", "recipe", "best leg", "last_hop_recall@5", "low", "high"], rows)


def by_group(folders: Mapping[str, Any]) -> str:
    """Return the means of every run, by folder and number of hops."""
    rows, metrics = [], []
    for name, found in folders.items():
        for label, group in found["groups"].items():
            for run, means in group["means"].items():
                metrics = list(means)
                rows.append([name, label, group["questions"], run, *map(percent, means.values())])
    return csv_of(["folder", "group", "questions", "run", *metrics], rows)


def compared(folders: Mapping[str, Any]) -> str:
    """Return the comparisons of every run with the baseline; intervals are those of the run's own mean."""
    rows = [
        [
            name,
            found["baseline"],
            run,
            metric,
            percent(c["low"]),
            percent(c["high"]),
            c["wins"],
            c["losses"],
            _p(c["p"]),
        ]
        for name, found in folders.items()
        for run, by_metric in found["against baseline"].items()
        for metric, c in by_metric.items()
    ]
    return csv_of(["folder", "baseline", "run", "metric", "low", "high", "wins", "losses", "p"], rows)


def convex_against_rrf(folders: Mapping[str, Any]) -> str:
    """Return the differences of a convex combination from RRF with the published weights."""
    rows = [
        [name, metric, *_points(c), c["wins"], c["losses"], _p(c["p"]), _p(c["p_holm"])]
        for name, found in folders.items()
        for metric, c in found["convex against rrf"].items()
    ]
    return csv_of(["folder", "metric", "difference", "low", "high", "wins", "losses", "p", "p (Holm)"], rows)


def guided(found: Mapping[str, Any]) -> str:
    """Return last_hop_recall@5 of GuidedWalk with its parts and options changed, by the passages' vectors."""
    halves = [f"{name}, {half}" for name in found["questions"] for half in ("tune", "test")]
    runs = [("MiniLM", found["runs"]), *found["encoders"].items()]
    rows = [
        [vectors, run, *(percent(mean) for pair in one["halves"].values() for mean in pair), *_points(one)]
        for vectors, by_run in runs
        for run, one in by_run.items()
    ]
    return csv_of(["vectors", "run", *halves, "test, all: difference", "low", "high"], rows)


def policy(folders: Mapping[str, Any]) -> str:
    """Return all metrics of PolicyRAG without each of its parts, compared with the whole by ndcg@10."""
    rows, metrics = [], []
    for name, found in folders.items():
        for run, means in found["groups"]["all"]["means"].items():
            metrics, c = list(means), found["against baseline"].get(run, {}).get("ndcg@10")
            against = [c["wins"], c["losses"], _p(c["p_holm"])] if c else ["", "", ""]
            rows.append([name, run, *map(percent, means.values()), *against])
    return csv_of(["folder", "run", *metrics, "won", "lost", "p (Holm)"], rows)


def stability(folders: Mapping[str, Any]) -> str:
    """Return how much of a ranking stays if questions are reworded."""
    rows = []
    for name, found in folders.items():
        changed = found["stability"]["rewritten"]
        for run, kinds in found["stability"]["runs"].items():
            for kind, values in kinds.items():
                cells = [percent(values[value]) for value in STABILITY]
                rows.append([name, run, kind, *changed[kind], *cells])
    return csv_of(["folder", "run", "rewording", "reworded", "questions", *STABILITY], rows)


def defaults(recorded: Mapping[str, Any]) -> str:
    """Return the test halves of the options that a sweep chose, and of what it chose among."""
    rows = []
    for recipe, found in recorded.items():
        options = {
            "selected": found["selected"]["options"],
            "by mean": found["by_mean"]["options"],
            "baseline": BASELINES[recipe],
        }
        for name, one in found["test"].items():
            for role in ROLES:
                chosen = options.get(role) or found["best"][name]["options"]
                against = [""] * 3
                if role in ("baseline", "best"):  # of the selected options from these
                    against = _points(one[f"against_{role}"])
                shown = "; ".join(f"{option} {value}" for option, value in chosen.items())
                mean = percent(one["estimates"][role]["mean"])
                rows.append([recipe, name, one["against_best"]["n"], role, shown, mean, *against])
    head = ["recipe", "test half", "questions", "options of", "options", "last_hop_recall@5"]
    return csv_of([*head, "selected less these", "low", "high"], rows)


def tau(found: Mapping[str, Any]) -> str:
    """Return what encoders lose if they share one tau, by its unit: points below each encoder's own temperature."""
    encoders = list(found["own"])
    rows = [
        [name, f"{one['tau']:.2g}", half, *(f"{one[half][encoder]:+.1f}" for encoder in encoders)]
        for name, one in found["units"].items()
        for half in ("tune", "test")
    ]
    return csv_of(["unit", "tau", "half", *(f"{encoder} loses" for encoder in encoders)], rows)


def titles(folders: Mapping[str, Any]) -> str:
    """Return what titles add to passages' vectors."""
    rows = [
        [name, found["questions"], metric, *_percents(one, READ), one["wins"], one["losses"], _p(one["p"])]
        for name, found in folders.items()
        for metric, one in found["metrics"].items()
    ]
    return csv_of(["folder", "questions", "metric", *READ, "won", "lost", "p"], rows)


def fusion_arms(answers: Sequence[Mapping[str, Any]]) -> str:
    """Return the test half of every arm of the studies of fusion, with its chosen options."""
    rows = []
    for answer in answers:
        for arm, folders in answer["arms"].items():
            for folder, reached in folders.items():
                how = [_options(reached["chosen"]), reached["tried"], "; ".join(reached["edges"])]
                rows += [
                    [answer["title"], arm, folder, metric, *_percents(value, ("mean", *ENDS)), *how]
                    for metric, value in reached["test"].items()
                ]
    head = ["question", "arm", "folder", "metric", "mean", "low", "high", "chosen", "tried", "at an edge of the grid"]
    return csv_of(head, rows)


def fusion_pairs(answers: Sequence[Mapping[str, Any]]) -> str:
    """Return every comparison of the studies of fusion; p is corrected over those of the same question."""
    rows = [
        [
            answer["title"],
            *(c[part] for part in COMPARED),
            *_points(c),
            c["wins"],
            c["losses"],
            _p(c["p_holm"]),
            percent(c["detects"]),
        ]
        for answer in answers
        for c in answer["comparisons"]
    ]
    head = ["question", "first", "second", "folder", "metric", "difference", "low", "high", "wins", "losses"]
    return csv_of([*head, "p (Holm)", "detectable"], rows)


def sets(results: Results) -> str:
    """Return the size of every set."""
    rows = [
        [name, one["passages"], *_lengths(one), one["questions"], f"{one['gold passages of a question']:.1f}"]
        for name, one in [*results["folders"].items(), *results["corpora"].items()]
    ]
    return csv_of(["set", "passages", "words, 10 %", "words, median", "words, 90 %", "questions", "gold"], rows)


def _points(c: Mapping[str, Any]) -> list[str]:
    """Return a difference and its interval."""
    return [points(c[part]) for part in ("difference", *ENDS)]


def _percents(row: Mapping[str, Any], parts: Sequence[str]) -> list[str]:
    return [percent(row[part]) for part in parts]


def _lengths(one: Mapping[str, Any]) -> list[int]:
    return [one["words of a passage"][at] for at in ("10 %", "median", "90 %")]


def _options(chosen: Mapping[str, Any]) -> str:
    return "; ".join(f"{name} {_value(value)}" for name, value in chosen.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "/".join(map(_value, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
