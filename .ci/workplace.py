"""Provide what .ci/full and .ci/soak work in: clones of HEAD, environments, builds, and caches that outlive a run.

Needs only Python. The caches are in build/cache. ccache keeps the objects of every compiler and sanitizer: sources and
builds lie at the same relative paths in every clone, so clones share objects. uv, which makes an environment many times
faster than pip, and pip keep their wheels.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from requires import requirements

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build" / "cache"
# Programs, and the Debian packages that have them.
TOOLS = {
    "git": "git",
    "cmake": "cmake",
    "ccache": "ccache",
    "g++-12": "g++-12",
    "clang++-14": "clang-14 libclang-rt-14-dev",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "qemu-aarch64-static": "qemu-user-static",
    "nginx": "nginx-light",
    "caddy": "caddy",
    "chromedriver": "chromium chromium-driver",
}
# The AVX-VNNI variant of dense search is tested if the machine has it.
FLAGS = Path("/proc/cpuinfo").read_text(encoding="utf-8").split() if Path("/proc/cpuinfo").exists() else []
AMX = ("amx",) if "amx_int8" in FLAGS else ()
AVXVNNI = ("avxvnni",) if "avx_vnni" in FLAGS else ()
VARIANTS = (*AMX, "avx512", *AVXVNNI, "avx2", "baseline")


@cache
def commit() -> str:
    """Return the commit that is checked, even if others are made meanwhile."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def install_tools(*tools: str) -> None:
    """Install the Debian packages of programs that are missing, if this is Debian and root."""
    missing = [TOOLS[tool] for tool in tools if shutil.which(tool) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit(f"missing Debian packages: {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], check=True, env=environment)
    install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *" ".join(missing).split()]
    subprocess.run(install, check=True, env=environment)


def machine() -> str:
    """Return the processor and its cores, without the name of the machine."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return f"{found[1] if found else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def environment_of(folder: Path) -> dict[str, str]:
    """Return the variables of every command of a run in this folder."""
    variables = {key: value for key, value in os.environ.items() if key != "PIP_NO_CACHE_DIR"}
    # pip does not compile whole packages, which takes longer than installing them.
    pip = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1", "PIP_CACHE_DIR": str(CACHE / "pip")}
    # uv fetches packages, not Pythons.
    uv = {"UV_CACHE_DIR": str(CACHE / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
    ccache = {"CCACHE_DIR": str(CACHE / "ccache"), "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
    ccache |= {"CCACHE_MAXSIZE": "4G", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CMAKE_BUILD_PARALLEL_LEVEL": "2"}
    compiler = {"CXX": "g++-12", "CC": "gcc-12", "SKBUILD_BUILD_DIR": "build/ci"}
    return variables | {"CI": "true"} | pip | uv | ccache | compiler


# Parts run concurrently; what several of them use is made once, by the first of them.
_making: defaultdict[Path, threading.RLock] = defaultdict(threading.RLock)


@dataclass
class Workplace:
    """A folder of clones, builds and environments for one run, and the log of the current part."""

    folder: Path
    log: Path
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.environment = environment_of(self.folder)

    def run(self, *command: str | Path, cwd: Path | None = None, **environment: str) -> str:
        """Return the command's output; if it fails, raise."""
        with self.log.open("a", encoding="utf-8") as log:
            print("+", *environment.items(), *command, file=log, flush=True)
            done = subprocess.run(
                [str(word) for word in command],
                cwd=cwd or self.folder,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            log.write(done.stdout)
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-60:])
            raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{tail}")
        return done.stdout

    def fails(self, expected: str, *command: str | Path, **environment: str) -> None:
        """Check that the command fails with an output that contains ``expected``."""
        try:
            self.run(*command, **environment)
        except RuntimeError as error:
            if expected not in str(error):
                raise
        else:
            raise RuntimeError(f"{command} should have failed with {expected!r}")

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """Return a path of the folder, after it was made by the first that asks for it."""
        target = self.folder / name
        with _making[target]:
            if not target.exists():
                try:
                    make(target)
                except RuntimeError:
                    shutil.rmtree(target, ignore_errors=True)
                    raise
        return target

    def clone(self, name: str) -> Path:
        """Return a clone of the commit."""

        def make(target: Path) -> None:
            self.run("git", "clone", "-q", ROOT, target)
            self.run("git", "checkout", "-q", commit(), cwd=target)

        return self.once(name, make)

    def venv(
        self, name: str, *installs: tuple[str, ...], cwd: Path, before: Sequence[str] = (), **environment: str
    ) -> Path:
        """Return the programs' folder of an environment after these installations by uv.

        The packages ``before`` are installed by pip, whose settings may say where a build for CPUs is.
        """

        def make(target: Path) -> None:
            self.run(self.uv(), "venv", "-q", "--seed", "--python", sys.executable, target)
            if before:
                self.run(target / "bin" / "pip", "install", *before)
            for arguments in installs:
                self.install(target / "bin", *arguments, cwd=cwd, **(self.builds() | environment))

        return self.once(name, make) / "bin"

    def install(self, python: Path, *arguments: str | Path, cwd: Path | None = None, **environment: str) -> None:
        """Install packages by uv into the environment with this folder of programs."""
        self.run(self.uv(), "pip", "install", "--python", python / "python", *arguments, cwd=cwd, **environment)

    def uv(self) -> Path:
        """Return the program uv."""

        def make(target: Path) -> None:
            self.run(sys.executable, "-m", "venv", target)
            self.run(target / "bin" / "pip", "install", "uv")

        return self.once("venv-uv", make) / "bin" / "uv"

    def nanobind(self) -> str:
        """Return the folder of nanobind's CMake files, the same for all builds so that they share objects."""

        def make(target: Path) -> None:
            self.run(self.uv(), "venv", "-q", "--python", sys.executable, target)
            self.install(target / "bin", "nanobind>=2.2")

        return self.run(self.once("venv-tools", make) / "bin" / "python", "-m", "nanobind", "--cmake_dir").strip()

    def builds(self, *definitions: str) -> dict[str, str]:
        """Return the settings of scikit-build: warnings are errors, and these definitions."""
        every = ("HOPFUSE_WERROR=ON", f"nanobind_DIR={self.nanobind()}", *definitions)
        return {"SKBUILD_CMAKE_DEFINE": ";".join(every)}

    def wheel(self) -> Path:
        """Return the wheel of the commit, for parts that test what is installed."""

        def make(target: Path) -> None:
            source = self.clone("wheel")
            self.run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", target, ".", cwd=source, **self.builds())

        (wheel,) = self.once("wheels", make).glob("hopfuse-*.whl")
        return wheel

    def suite(self, cxx: str = "g++-12", cc: str = "gcc-12") -> tuple[Path, Path]:
        """Return a clone and its development environment, built by this compiler."""
        clone = self.clone(f"suite-{cxx}")
        # With nanobind, so that a test compares the stub with the generated one.
        options = ("-e", ".[dev]", *requirements(["checks", "fuzz", "notebook", "nvrtc", "sass"]), "nanobind")
        return clone, self.venv(f"venv-{cxx}", options, cwd=clone, CXX=cxx, CC=cc)

    def pytest(self, python: Path, cwd: Path, *arguments: str, **environment: str) -> str:
        """Return the last line of pytest's output; the slowest tests are in the log."""
        slowest = ("--durations=25", "--durations-min=4")
        output = self.run(python / "python", "-m", "pytest", *slowest, *arguments, cwd=cwd, **environment)
        return output.strip().splitlines()[-1].strip("= ")

    def build(self, name: str, compiler: str, *definitions: str) -> Path:
        """Build the kernels and return their replay program."""
        source, target = self.clone("source"), self.folder / name
        options = [f"-DCMAKE_CXX_COMPILER={compiler}", "-DHOPFUSE_WERROR=ON", "-DHOPFUSE_REPLAY=ON", *definitions]
        self.run("cmake", "-S", source, "-B", target, *options)
        self.run("cmake", "--build", target, "-j2")
        return target / "hopfuse_replay"

    def calls(self) -> tuple[Path, Path]:
        """Return the files of calls recorded through the public API of an installation, and of their results."""

        def make(target: Path) -> None:
            clone, python = self.suite()
            target.mkdir()
            self.run(python / "python", clone / ".ci" / "record_calls.py", target / "calls", target / "expected")

        folder = self.once("recorded", make)
        return folder / "calls", folder / "expected"

    def replays(
        self, program: Path, variants: tuple[str, ...], *, threads: tuple[str, ...] = ("1", "3"), copies: int = 1
    ) -> str:
        """Check that every variant gives the recorded results, bit for bit.

        The best instruction set runs with all the numbers of threads and so many copies of each call at a time, the
        others with the last number and one copy: what divides the work among threads is the same code for all.
        """
        calls, expected = self.calls()
        prefix = ["qemu-aarch64-static"] if "neon" in variants else []
        out = program.parent / "out"
        for at, variant in enumerate(variants):
            for count in threads if at == 0 else threads[-1:]:
                self.run(*prefix, program, calls, variant, count, str(copies if at == 0 else 1), out)
                if out.read_bytes() != expected.read_bytes():
                    raise RuntimeError(f"{variant} on {count} threads differs from the recorded results")
        return f"{len(expected.read_bytes()):,} bytes of results equal on {', '.join(variants)}"
