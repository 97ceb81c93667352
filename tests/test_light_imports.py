"""Importing a package of hopfuse loads no library of an extra, and no kernels before they are used."""

from __future__ import annotations

import json
import subprocess
import sys

#: Packages in the order in which one process imports them, as far as possible from the lightest.
PACKAGES = ("evaluate", "report", "encoders", "lexical", "extract", "llm", "index", "diagnose")
#: Those that do not load the native module.
WITHOUT_KERNELS = ("evaluate", "report")
#: Third-party packages that take long to import, and are imported where they are used.
LATE = (
    *("ahocorasick", "bm25s", "jax", "jinja2", "matplotlib", "numba", "openai", "pandas", "pyarrow", "rich", "scipy"),
    *("sentence_transformers", "spacy", "statsmodels", "Stemmer", "torch", "transformers", "wordllama"),
)
PROGRAM = """
import importlib, json, sys
packages, late = json.loads(sys.argv[1])
for package in packages:
    importlib.import_module(f"hopfuse.{package}")
    print(json.dumps([package, sorted(set(late) & set(sys.modules)), "hopfuse._native" in sys.modules]))
"""


def test_imports_are_light() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([PACKAGES, LATE])], capture_output=True, text=True, check=True
    )
    loaded = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(package, late) for package, late, _ in loaded] == [(package, []) for package in PACKAGES]
    assert {package for package, _, kernels in loaded if not kernels} >= {*WITHOUT_KERNELS}
