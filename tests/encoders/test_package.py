import doctest
import importlib
import pkgutil
import subprocess
import sys

import hopfuse.encoders
import pytest

MODULES = [f"hopfuse.encoders.{m.name}" for m in pkgutil.iter_modules(hopfuse.encoders.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    if name.endswith("word_llama"):
        pytest.importorskip("wordllama")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_public_name_exists_and_is_documented():
    for name in hopfuse.encoders.__all__:
        assert getattr(hopfuse.encoders, name).__doc__


def test_import_is_light():
    heavy = "{'wordllama', 'sentence_transformers', 'torch', 'transformers'} & {m.split('.')[0] for m in sys.modules}"
    code = f"import sys, hopfuse.encoders; print(sorted({heavy}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
