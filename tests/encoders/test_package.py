import subprocess
import sys


def test_import_is_light():
    heavy = "{'wordllama', 'sentence_transformers', 'torch', 'transformers'} & {m.split('.')[0] for m in sys.modules}"
    code = f"import sys, hopfuse.encoders; print(sorted({heavy}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
