import subprocess
import sys

import pytest


@pytest.mark.parametrize("room", ["evaluate", "diagnose", "report"])
def test_import_is_light(room):
    loaded = "{m.split('.')[0] for m in sys.modules} | {'kernels' for m in sys.modules if m == 'hopfuse._native'}"
    kernels = "'kernels', " if room != "diagnose" else ""  # evaluate.sweep searches
    heavy = f"{{{kernels}'rich', 'scipy', 'pandas', 'statsmodels', 'matplotlib', 'jinja2'}} & ({loaded})"
    code = f"import sys, hopfuse.{room}; print(sorted({heavy}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
