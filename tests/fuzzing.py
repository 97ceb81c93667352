"""Fuzz targets: ``python tests/fuzzing.py TARGET --seconds 60``, in an environment with Atheris.

    python tests/fuzzing.py --list
    python tests/fuzzing.py log --seconds 600 --keep build/fuzz      # goes on from what earlier runs found there
    python tests/fuzzing.py log --minimize build/fuzz                # adds to the corpus what reaches more code
    python tests/fuzzing.py log --read INPUT                         # reads one input, without Atheris
    python tests/fuzzing.py --seeds                                  # writes the inputs that corpora begin with

A failing input is written to the working directory, and printed with what it raised.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path += [path for path in (str(TESTS), str(TESTS.parent)) if path not in sys.path]

from fuzz.targets import CORPUS, NAMES, Target, is_read, target_of  # noqa: E402
from scratch import memory  # noqa: E402

#: Seconds that one input may take, on a busy machine.
SLOW = 60


@dataclass(frozen=True)
class Outcome:
    """Hold what a run of the fuzzer gave: the inputs, the edges that they reached, and the failing one."""

    count: int
    edges: int
    failing: bytes | None
    said: str


def fuzz(target: Target, seed: int, *limits: str, corpora: tuple[Path, ...] = ()) -> Outcome:
    """Run the fuzzer from a seed, up to limits such as ``-runs=1000``; new inputs go to the first corpus, if given."""
    with tempfile.TemporaryDirectory(prefix="hopfuse-fuzz-", dir=memory()) as folder:
        place = Path(folder)
        (place / "new").mkdir()
        options = [f"-seed={seed + 1}", f"-max_len={target.most}", f"-timeout={SLOW}", "-rss_limit_mb=0"]
        options += [f"-artifact_prefix={place}/failing-", "-print_final_stats=1", *limits]
        if target.words:
            words = place / "words"
            words.write_bytes(b"".join(_word(word) for word in target.words))
            options.append(f"-dict={words}")
        known = CORPUS / target.name
        folders = [*(corpora or (place / "new",)), *([known] if known.is_dir() else [])]
        command = [sys.executable, "-m", "fuzz.under_atheris", target.name, *options, *map(str, folders)]
        path = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
        variables = {**os.environ, "PYTHONPATH": path, "TMPDIR": folder}
        done = subprocess.run(command, env=variables, capture_output=True, check=False, cwd=place)
        said = _said(done.stderr + done.stdout)
        failing = next((one.read_bytes() for one in place.glob("failing-*")), None)
    counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    edges = [int(one) for one in re.findall(r"cov: (\d+)", said)]
    if failing is None and (done.returncode or counted is None):
        raise RuntimeError(f"the fuzzer of {target.name} ended with {done.returncode}:\n{said[-4000:]}")
    return Outcome(int(counted[1]) if counted else 0, max(edges, default=0), failing, said)


def _said(output: bytes) -> str:
    """Return what the fuzzer printed, without the modules that it instrumented."""
    lines = output.decode(errors="replace").splitlines()
    return "\n".join(line for line in lines if not line.startswith("INFO: Instrumenting"))


def _word(word: str) -> bytes:
    return b'"' + b"".join(b"\\x%02X" % byte for byte in word.encode()) + b'"\n'


def main(arguments: list[str]) -> None:
    """Parse the command, and fuzz, add to the corpus, or read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="all by default")
    parser.add_argument("--list", action="store_true", help="list the targets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60, help="of each target")
    parser.add_argument("--keep", type=Path, help="a folder of inputs to go on from, and for those that are found")
    parser.add_argument("--minimize", type=Path, help="add the inputs of such a folder that reach more to the corpus")
    parser.add_argument("--seeds", action="store_true", help="write the inputs that corpora begin with")
    parser.add_argument("--read", type=Path, help="read this input with the target, without Atheris")
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.targets) - set(NAMES)):
        parser.error(f"no target {', '.join(unknown)}; the targets are {', '.join(NAMES)}")
    if asked.list:
        print(*NAMES, sep="\n")
        return
    if asked.seeds:
        from fuzz.seeds import write_all

        write_all(asked.targets or NAMES)
        return
    failed = False
    for name in asked.targets or NAMES:
        target = target_of(name)
        if asked.read:
            with tempfile.TemporaryDirectory() as folder:
                print("read" if is_read(target, asked.read.read_bytes(), Path(folder)) else "refused")
        elif asked.minimize:
            (CORPUS / name).mkdir(parents=True, exist_ok=True)
            fuzz(target, 0, "-merge=1", corpora=(CORPUS / name, asked.minimize / name))
        else:
            failed |= _fuzz_and_print(target, asked.seed, asked.seconds, asked.keep)
    if failed:
        raise SystemExit(1)


def _fuzz_and_print(target: Target, seed: int, seconds: int, keep: Path | None) -> bool:
    """Fuzz a target, print what came of it, and return whether it failed."""
    corpora = () if keep is None else (keep / target.name,)
    for folder in corpora:
        folder.mkdir(parents=True, exist_ok=True)
    found = fuzz(target, seed, f"-max_total_time={seconds}", corpora=corpora)
    print(f"{target.name}: {found.count:,} inputs, {found.edges:,} edges", flush=True)
    if found.failing is None:
        return False
    path = Path(f"{target.name}.failing")
    path.write_bytes(found.failing)
    print(f"{found.said[-3000:]}\n{target.name} FAILED with the input {path}: {found.failing[:300]!r}", flush=True)
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
