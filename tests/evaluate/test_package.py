import doctest
import importlib
import pkgutil
import subprocess
import sys

import hopfuse.evaluate
import pytest

MODULES = [f"hopfuse.evaluate.{m.name}" for m in pkgutil.iter_modules(hopfuse.evaluate.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    if name.endswith("rendering"):
        pytest.importorskip("rich")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_public_name_exists_and_is_documented():
    for name in hopfuse.evaluate.__all__:
        assert getattr(hopfuse.evaluate, name).__doc__


def test_import_is_light():
    loaded = "{m.split('.')[0] for m in sys.modules} | {'kernels' for m in sys.modules if m == 'hopfuse._native'}"
    heavy = f"{{'rich', 'scipy', 'pandas', 'statsmodels', 'kernels'}} & ({loaded})"
    code = f"import sys, hopfuse.evaluate; print(sorted({heavy}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
