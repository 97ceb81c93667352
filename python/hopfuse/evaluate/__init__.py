"""Evaluate retrieval runs: judgements, metrics per query, significance, and sweeps that choose options.

Imports the public API and ``io``; SciPy is imported when it is first needed.
"""

from .answers import answer_supported, answer_values, exact_match, findable_answers, normalise_answer, token_f1
from .comparison import Comparison, compare
from .curves import Curve, Grid, option_curves, sweep_grid
from .distributions import (
    Reliability,
    ScoreDistribution,
    reliability,
    score_distribution,
    score_distributions,
)
from .evaluation import DEFAULT_METRICS, Estimate, Evaluation, Group, WithoutGold, evaluate, summarise
from .exchange import qrels_dict, qrels_from, run_dict, run_from, write_qrels, write_run
from .fused_legs import FusedLegs, fusion_trials
from .metric_names import Metric, parse_metric
from .metrics import (
    average_precision,
    distractor_suppression,
    full_support,
    gains,
    hit,
    hops_recovered,
    last_hop,
    last_hop_recall,
    ndcg,
    precision,
    r_precision,
    recall,
    reciprocal_rank,
    relevance,
)
from .passages import PassageNames, read_texts
from .qrels import Qrels, RelevantPairs, read_qrels
from .resampling import bootstrap_interval, randomisation_test
from .runs import Run, gold_ranks, join_hits, read_run
from .significance import (
    detectable_difference,
    detectable_mean_difference,
    discordant_odds_ratio,
    holm,
    mcnemar_exact,
    mcnemar_power,
    queries_needed,
    wilson_interval,
)
from .sweep import SPLITS, Sweep, Trial, in_test_half, split_rows, sweep
from .sweep_sets import JudgedSet, SetResult, SetsSweep, SetsTrial, sweep_sets
from .traces import differing_queries, query_trace, traces

__all__ = [
    "DEFAULT_METRICS",
    "SPLITS",
    "Comparison",
    "Curve",
    "Estimate",
    "Evaluation",
    "FusedLegs",
    "Grid",
    "Group",
    "JudgedSet",
    "Metric",
    "PassageNames",
    "Qrels",
    "RelevantPairs",
    "Reliability",
    "Run",
    "ScoreDistribution",
    "SetResult",
    "SetsSweep",
    "SetsTrial",
    "Sweep",
    "Trial",
    "WithoutGold",
    "answer_supported",
    "answer_values",
    "average_precision",
    "bootstrap_interval",
    "compare",
    "detectable_difference",
    "detectable_mean_difference",
    "differing_queries",
    "discordant_odds_ratio",
    "distractor_suppression",
    "evaluate",
    "exact_match",
    "findable_answers",
    "full_support",
    "fusion_trials",
    "gains",
    "gold_ranks",
    "hit",
    "holm",
    "hops_recovered",
    "in_test_half",
    "join_hits",
    "last_hop",
    "last_hop_recall",
    "mcnemar_exact",
    "mcnemar_power",
    "ndcg",
    "normalise_answer",
    "option_curves",
    "parse_metric",
    "precision",
    "qrels_dict",
    "qrels_from",
    "queries_needed",
    "query_trace",
    "r_precision",
    "randomisation_test",
    "read_qrels",
    "read_run",
    "read_texts",
    "recall",
    "reciprocal_rank",
    "relevance",
    "reliability",
    "run_dict",
    "run_from",
    "score_distribution",
    "score_distributions",
    "split_rows",
    "summarise",
    "sweep",
    "sweep_grid",
    "sweep_sets",
    "token_f1",
    "traces",
    "wilson_interval",
    "write_qrels",
    "write_run",
]
