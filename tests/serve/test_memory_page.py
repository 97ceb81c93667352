"""docs/guides/memory.md: its Python, and then its calls over MCP, to the command that it configures."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import hopfuse as hf
import processes
import pytest
from hopfuse.serve import ServeConfig
from index.live_model import differences

for package in ("wordllama", "bm25s", "starlette", "msgspec", "uvicorn", "click", "ahocorasick"):
    pytest.importorskip(package, reason=f"the guide's memory needs {package}")

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "memory.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(PAGE.encode()) < 10_000
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()) as printed:
        for number, block in enumerate(blocks("python")):
            exec(compile(block, f"memory.md, block {number}", "exec"), known)
    shown = re.findall(r"print\(.*?\)  # (.*)", PAGE)
    assert printed.getvalue().splitlines() == shown
    assert list(hf.Index.open("memory").passage_ids) == ["bob/monday/1", "bob/tuesday/1"]
    mcp = pytest.importorskip("mcp", reason="the package of the protocol")

    (server,) = json.loads(blocks("json")[0])["mcpServers"].values()
    assert server["command"] == "hopfuse"
    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "hopfuse", *server["args"]], cwd=tmp_path
    )

    async def call() -> list[Any]:
        async with mcp.Client(parameters) as client:
            calls = [json.loads(line) for line in blocks("jsonl")[0].splitlines()]
            return [(await client.call_tool(one["name"], one["arguments"])).structured_content for one in calls]

    added, found, counted, deleted, none = asyncio.run(call())
    assert added["searched"]
    assert [hit["id"] for hit in found["hits"]] == ["ada/friday/1"]
    assert (counted["seq"], counted["passages"], deleted["passages"]) == (None, 1, 1)
    assert deleted["seq"] > added["seq"]
    assert none["hits"] == []


def test_the_keys_of_the_guide_are_valid(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    config = ServeConfig.read(text.replace("...", "0" * 64), {"indexes": {"memory": {"path": str(tmp_path)}}})
    assert config.keys["ada"].filter == {"user": "ada"}


def test_the_command_of_the_guide_makes_the_same_memory_as_its_python(tmp_path: Path) -> None:
    _, commands = blocks("sh")
    touch, build = commands.replace("\\\n", " ").splitlines()
    (tmp_path / touch.removeprefix("touch ")).touch()
    program, *args = build.split()
    assert program == "hopfuse"
    processes.run([sys.executable, "-m", "hopfuse", *args], cwd=tmp_path, check=True, capture_output=True)
    known: dict[str, Any] = {}
    exec(re.search(r"import hopfuse.*?(?=empty\.save)", blocks("python")[0], re.DOTALL)[0], known)
    assert differences(hf.Index.open(tmp_path / "memory"), known["empty"]) == []
