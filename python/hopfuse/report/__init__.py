"""Reports: tables for a terminal, HTML or JSON, SVG plots, and self-contained HTML pages.

Imports the public API and ``evaluate``; Rich, Jinja2 and matplotlib are imported when they are first needed.
"""

from .pages import evaluation_page, policy_page, seed_shares
from .paths import Subgraph, arrow, fact_words, path_words, subgraph, subgraph_plot
from .plots import curve_plot, difference_bars, heat_map, histogram, reliability_plot, stacked_bars
from .tables import (
    Row,
    Table,
    comparison_tables,
    evaluation_tables,
    mean_tables,
    query_tables,
    score_table,
    section_tables,
    sets_tables,
    sweep_tables,
    table,
)
from .text import ProgressLines, p_text, printable

__all__ = [
    "ProgressLines",
    "Row",
    "Subgraph",
    "Table",
    "arrow",
    "comparison_tables",
    "curve_plot",
    "difference_bars",
    "evaluation_page",
    "evaluation_tables",
    "fact_words",
    "heat_map",
    "histogram",
    "mean_tables",
    "p_text",
    "path_words",
    "policy_page",
    "printable",
    "query_tables",
    "reliability_plot",
    "score_table",
    "section_tables",
    "seed_shares",
    "sets_tables",
    "stacked_bars",
    "subgraph",
    "subgraph_plot",
    "sweep_tables",
    "table",
]
