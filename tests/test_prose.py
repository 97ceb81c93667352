"""Pages and public docstrings hold the rules of plain English of ``prose.py``."""

from __future__ import annotations

import prose
import pytest

#: Pages that do not hold the rules yet. Mend one (``python tests/prose.py PAGE`` lists its faults) and take it out.
NOT_YET = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "docs/checks.md",
    "docs/compare.md",
    "docs/dependencies.md",
    "docs/design.md",
    "docs/diagnose.md",
    "docs/dialects.md",
    "docs/evaluation.md",
    "docs/experiments.md",
    "docs/extraction.md",
    "docs/fusion.md",
    "docs/gpu-formulas.md",
    "docs/gpu.md",
    "docs/guided-walk.md",
    "docs/guides/hipporag.md",
    "docs/hybrid-rrf.md",
    "docs/kernels.md",
    "docs/languages.md",
    "docs/live.md",
    "docs/local-walks.md",
    "docs/offline.md",
    "docs/performance.md",
    "docs/phase-graph.md",
    "docs/policy-rag.md",
    "docs/quality.md",
    "docs/retriever.md",
    "docs/scale.md",
    "docs/serving.md",
    "docs/start.md",
    "docs/sweep.md",
    "docs/triple-hybrid.md",
    "kernels/README.md",
}


@pytest.mark.parametrize("rule", prose.RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_what_breaks_it(rule: prose.Rule) -> None:
    assert [fault.partition(":")[0] for fault in prose.broken(rule.breaks)] == [rule.name]
    assert prose.broken(rule.holds) == []


def test_a_long_sentence_is_found_and_inline_code_counts_once() -> None:
    assert prose.broken("on and " * 20 + "on") == [f"41 words (at most 40): “{('on and ' * 9)[:60]}…”"]
    assert prose.broken("on and " * 20) == []
    (read,) = prose.sentences(prose.paragraphs("It takes `a b c`, `d` and `e`, and [a page](page.md#of-of-of)."))
    assert (read.text, prose.words(read.text)) == ("It takes CODE, CODE and CODE, and a page.", 6)


PAGE = """# A title

Words of one
sentence. A second.

```sh
the the code
```

- an item alone.
| a cell | is that of another |
"""


def test_a_page_is_read_without_its_code() -> None:
    read = list(prose.sentences(prose.paragraphs(PAGE)))
    assert read == [
        (1, "A title"),
        (3, "Words of one sentence."),
        (3, "A second."),
        (10, "an item alone."),
        (11, "a cell"),
        (11, "is that of another"),
    ]


DOCSTRING = """Add two numbers, e.g. of
two rows.

Parameters
----------
left : of a of b of c
    The first alone.

====  ============
very  of the table
====  ============

Examples
--------
>>> very = 1
very
"""


def test_a_docstring_is_read_without_names_tables_and_examples() -> None:
    read = list(prose.sentences(prose.docstring_blocks(DOCSTRING, 7)))
    assert read == [(7, "Add two numbers, e.g of two rows."), (13, "The first alone.")]


def test_only_public_docstrings_are_read() -> None:
    read = prose.sources()
    assert "python/hopfuse/ops/ppr.py" in read
    assert not any("/_" in path.replace("/__init__.py", "") for path in read)
    assert len(read) > 200


def test_pages_are_plain_english() -> None:
    pages = set(prose.pages())
    assert pages >= NOT_YET
    faults = [fault for name in sorted(pages - NOT_YET) for fault in prose.faults(name)]
    assert not faults, "\n".join(faults)


def test_public_docstrings_are_plain_english() -> None:
    faults = [fault for name in prose.sources() for fault in prose.faults(name)]
    assert not faults, "\n".join(faults)
