"""How good a retrieval run is: judgements, metrics per query, significance, and tables by hops."""

from .alias_substitution import substitute_aliases
from .answer_support import answer_supported, findable_answers
from .answers import answer_values, exact_match, normalised, token_f1
from .bootstrap import bootstrap_interval
from .comparison import Comparison, compare
from .components import connected_components
from .curves import Curve, option_curves
from .distractors import distractor_suppression
from .distributions import ScoreDistribution, score_distribution, score_distributions
from .evaluation import Estimate, Evaluation, Group, summarise
from .fragmentation import shared_names
from .fused_legs import FusedLegs, fusion_trials
from .grid import Grid, sweep_grid
from .holm import holm
from .hops_recovered import hops_recovered
from .html_policy import policy_page
from .html_report import html_report
from .legs import error_correlation, overlap, pool_loss
from .mcnemar import mcnemar_exact
from .metric_names import Metric, parse_metric
from .metrics import average_precision, full_support, hit, last_hop, ndcg, recall, reciprocal_rank
from .odds_ratio import discordant_odds_ratio
from .paraphrases import paraphrase
from .passage_names import PassageNames
from .passage_texts import read_texts
from .power import detectable_difference, detectable_mean_difference, mcnemar_power
from .qrels import JudgedPairs, Qrels
from .qrels_files import read_qrels
from .randomisation import randomisation_test
from .rank_overlap import rank_biased_overlap
from .rank_stability import RankStability, rank_stability
from .ranks import gold_ranks
from .relevance import gains, relevance
from .reliability import Reliability, reliability
from .rendering import query_tables, rich_tables, score_table
from .rewriting import Rewriting
from .run import Run
from .run_files import read_run
from .split import SPLITS, in_test_half, split_rows
from .spread import MassSpread, hub_nodes, mass_spread
from .svg_heat_map import heat_map
from .sweep import Sweep, Trial, sweep
from .sweep_rendering import sweep_tables
from .tables import DEFAULT_METRICS, evaluate
from .traces import decided, query_trace, traces
from .wilson import wilson_interval

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
    "JudgedPairs",
    "MassSpread",
    "Metric",
    "PassageNames",
    "Qrels",
    "RankStability",
    "Reliability",
    "Rewriting",
    "Run",
    "ScoreDistribution",
    "Sweep",
    "Trial",
    "answer_supported",
    "answer_values",
    "average_precision",
    "bootstrap_interval",
    "compare",
    "connected_components",
    "decided",
    "detectable_difference",
    "detectable_mean_difference",
    "discordant_odds_ratio",
    "distractor_suppression",
    "error_correlation",
    "evaluate",
    "exact_match",
    "findable_answers",
    "full_support",
    "fusion_trials",
    "gains",
    "gold_ranks",
    "heat_map",
    "hit",
    "holm",
    "hops_recovered",
    "html_report",
    "hub_nodes",
    "in_test_half",
    "last_hop",
    "mass_spread",
    "mcnemar_exact",
    "mcnemar_power",
    "ndcg",
    "normalised",
    "option_curves",
    "overlap",
    "paraphrase",
    "parse_metric",
    "policy_page",
    "pool_loss",
    "query_tables",
    "query_trace",
    "randomisation_test",
    "rank_biased_overlap",
    "rank_stability",
    "read_qrels",
    "read_run",
    "read_texts",
    "recall",
    "reciprocal_rank",
    "relevance",
    "reliability",
    "rich_tables",
    "score_distribution",
    "score_distributions",
    "score_table",
    "shared_names",
    "split_rows",
    "substitute_aliases",
    "summarise",
    "sweep",
    "sweep_grid",
    "sweep_tables",
    "token_f1",
    "traces",
    "wilson_interval",
]
