"""How good a retrieval run is: judgements, metrics per query, significance, and tables by hops."""

from .answers import answer_values, exact_match, normalised, token_f1
from .bootstrap import bootstrap_interval
from .comparison import Comparison, compare
from .evaluation import Estimate, Evaluation, Group, summarise
from .holm import holm
from .html_report import html_report
from .mcnemar import mcnemar_exact
from .metric_names import Metric, parse_metric
from .metrics import average_precision, full_support, hit, last_hop, ndcg, recall, reciprocal_rank
from .odds_ratio import discordant_odds_ratio
from .passage_names import PassageNames
from .power import detectable_difference, detectable_mean_difference, mcnemar_power
from .qrels import JudgedPairs, Qrels
from .qrels_files import read_qrels
from .randomisation import randomisation_test
from .ranks import gold_ranks
from .relevance import gains, relevance
from .rendering import rich_tables
from .run import Run
from .run_files import read_run
from .split import SPLITS, in_test_half, split_rows
from .sweep import Sweep, Trial, sweep
from .tables import DEFAULT_METRICS, evaluate
from .wilson import wilson_interval

__all__ = [
    "DEFAULT_METRICS",
    "SPLITS",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Group",
    "JudgedPairs",
    "Metric",
    "PassageNames",
    "Qrels",
    "Run",
    "Sweep",
    "Trial",
    "answer_values",
    "average_precision",
    "bootstrap_interval",
    "compare",
    "detectable_difference",
    "detectable_mean_difference",
    "discordant_odds_ratio",
    "evaluate",
    "exact_match",
    "full_support",
    "gains",
    "gold_ranks",
    "hit",
    "holm",
    "html_report",
    "in_test_half",
    "last_hop",
    "mcnemar_exact",
    "mcnemar_power",
    "ndcg",
    "normalised",
    "parse_metric",
    "randomisation_test",
    "read_qrels",
    "read_run",
    "recall",
    "reciprocal_rank",
    "relevance",
    "rich_tables",
    "split_rows",
    "summarise",
    "sweep",
    "token_f1",
    "wilson_interval",
]
