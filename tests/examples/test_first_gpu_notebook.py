"""examples/first_gpu.ipynb, every cell but the installation, on an emulated machine."""

from __future__ import annotations

import ast
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from stand_in.machine import environment
from variants import SIMT, missing

from bench.first_gpu.parts import PARTS

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "first_gpu.ipynb"


def read(file: Path = NOTEBOOK) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


def tagged(cell: dict[str, Any], tag: str) -> bool:
    return tag in cell["metadata"].get("tags", [])


def test_it_has_no_output_and_its_cells_are_python() -> None:
    cells = read()["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells) == 10
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        source = "".join(line for line in cell["source"] if not line.startswith(("%", "!")))
        ast.parse(source)


@pytest.mark.full
@pytest.mark.emulator
@pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT)))
def test_it_runs_on_the_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="pip install --group notebook")
    nbclient = pytest.importorskip("nbclient", reason="pip install --group notebook")
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    given = read()
    given["cells"] = [cell for cell in given["cells"] if not tagged(cell, "install")]
    (settings,) = (cell for cell in given["cells"] if tagged(cell, "settings"))
    settings["source"] = f"QUICK = True\nREPORT = {str(tmp_path / 'report.json')!r}"
    notebook = nbformat.reads(json.dumps(given), as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(ROOT)}}).execute()
    printed = {
        cell["id"]: "".join(output.get("text", "") for output in cell["outputs"])
        for cell in notebook.cells
        if cell["cell_type"] == "code"
    }
    assert "SIMT emulator" in printed["card"]
    assert "checks equal the CPU in every bit" in printed["selftest"]
    assert "µs a launch" in printed["selftest"]
    assert "the card's hits are the CPU's, in every bit" in printed["quickstart"]
    assert "ms, GPU" in printed["times"]
    lines = printed["parts"].splitlines()
    expected = {part.name: "passed" for part in PARTS}
    if find_spec("torch") is None:
        expected["torch_streams"] = "skipped"
    assert dict(line.split()[:2] for line in lines[-len(PARTS) :]) == expected, printed["parts"]
    assert "hopfuse alone" in printed["bench"]
    assert "faiss-gpu" in printed["bench"]
