"""The examples of docs/hybrid-rrf.md run, its defaults are the recipe's, and its verdict is the recorded one."""

from __future__ import annotations

import re
from inspect import signature

import hopfuse as hf
from recipes.doc_pages import DOCS, run_examples

from experiments.published import RESULTS
from experiments.record import read_results

PAGE = DOCS / "hybrid-rrf.md"


def test_the_examples_run() -> None:
    known = run_examples(PAGE, 10, hf.recipes.SearchResult)
    assert known["named"].hits.ids[0, 0] == 1
    assert known["unseeded"].hits.counts.tolist() == [4]


def test_it_names_every_option_and_the_defaults() -> None:
    text = PAGE.read_text(encoding="utf-8")
    options, config = signature(hf.recipes.HybridRRF).parameters, hf.recipes.HybridRRFConfig()
    fields = set(vars(config))
    asked = set(signature(hf.recipes.HybridRRF.search).parameters) - {"self"}
    for name in (set(options) - {"index", "config", "options"}) | fields | asked:
        assert f"`{name}" in text, name
    assert f"`rank_constant`, {config.rank_constant:g}." in text
    assert f"`damping` {config.damping}" in text
    assert config.weights is None
    for pool, weight in (("lexical_k", "0.2 + 0.6 w"), ("dense_k", "0.4 + 0.6 w"), ("graph_k", "1 − w")):
        assert f"`{pool}`, {getattr(config, pool)} | {weight} |" in text
    adr = hf.recipes.HybridRRF.adr()
    assert (adr.weights, adr.rank_constant, adr.damping) == ((1.0, 1.0, 0.35), 60.0, 0.5)
    assert config.exact_bonus == 0.0
    assert hf.fusion.Prior([0.0]).weight == 0.3


def test_its_verdict_is_that_of_the_results() -> None:
    """Differences and p of convex against RRF, as recorded for both folders."""
    text, recorded = PAGE.read_text(encoding="utf-8"), read_results(RESULTS)["folders"]
    for metric in ("recall@5", "last_hop@10", "ndcg@10"):
        (row,) = re.findall(rf"^\| {metric} \| (.*) \| (.*) \|$", text, re.MULTILINE)
        for folder, cell in zip(("hotpotqa", "musique-train"), row, strict=True):
            found = recorded[folder]["convex against rrf"][metric]
            difference = f"{100 * found['difference']:+.1f}".replace("-", "−")
            assert cell == f"{difference}, p = {found['p']:.2g}"
