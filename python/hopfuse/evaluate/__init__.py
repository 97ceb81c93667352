"""How good a retrieval run is: judgements, metrics per query, significance, and tables by hops."""

from .evaluation import Comparison, Estimate, Evaluation, Group, compare, summarise
from .metrics import Metric, full_support, hit, last_hop, ndcg, parse_metric, recall, reciprocal_rank
from .qrels import JudgedPairs, Qrels
from .relevance import relevance
from .reliability import Reliability, reliability
from .rendering import rich_tables
from .statistics import mcnemar_exact, wilson_interval
from .tables import evaluate

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "Group",
    "JudgedPairs",
    "Metric",
    "Qrels",
    "Reliability",
    "compare",
    "evaluate",
    "full_support",
    "hit",
    "last_hop",
    "mcnemar_exact",
    "ndcg",
    "parse_metric",
    "recall",
    "reciprocal_rank",
    "relevance",
    "reliability",
    "rich_tables",
    "summarise",
    "wilson_interval",
]
