"""Prebuilt images: what the build makes, which of them a device gets, and what happens to damaged ones."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import build_images
import nvrtc
import pytest
from audit import entries
from cubin import kernel_names
from hopfuse.backends.cuda.kernel_cache import KernelCache
from hopfuse.backends.cuda.kernel_code import Code, KernelCode
from hopfuse.backends.cuda.kernel_compiler import FoundNvrtc, best_target
from hopfuse.backends.cuda.kernel_images import ImagesError, KernelImages, pack
from hopfuse.backends.cuda.kernel_sources import KernelSources
from hopfuse.backends.driver import OLDEST_DRIVER, check_driver
from hopfuse.errors import BackendError
from refusals import refused
from tiers import FULL

SCRIPT = nvrtc.ROOT / "kernels" / "cuda" / "build_images.py"
TARGETS = {*(f"sm_{number}" for number in (75, 80, 86, 89, 90, 100, 120)), "compute_75", "compute_120"}
#: The units that are built here; the part images of .ci/full builds all, and looks into the wheel.
UNITS = ["boost_weights_f32", "dice_f32", *(["ppr_topk_f32"] if FULL else [])]


class NoCompiler:
    """Where prebuilt code must do."""

    def version(self) -> str:
        raise BackendError("unavailable", None, "no compiler")

    def architectures(self) -> Sequence[int]:
        raise BackendError("unavailable", None, "no compiler")

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        raise AssertionError(unit)


def run(*arguments: str | Path, library: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """The script on a Python without any package."""
    command = [sys.executable, "-I", "-S", SCRIPT, *arguments]
    environment = {**os.environ, "HOPFUSE_NVRTC": library, **more}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def sources_of(folder: Path) -> KernelSources:
    return KernelSources(folder / "cuda", folder / "include", folder / "images")


@pytest.fixture(scope="module")
def built(compiler: nvrtc.Nvrtc, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of kernels with the images of some units, as a wheel has them."""
    folder = tmp_path_factory.mktemp("built")
    for name in ("cuda", "include"):
        shutil.copytree(nvrtc.ROOT / "kernels" / name, folder / name)
    for unit in UNITS:
        done = run(
            "unit", folder / "cuda" / f"{unit}.cu", folder / "images" / f"{unit}.images", library=str(compiler.path)
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture
def kernels(built: Path, tmp_path: Path) -> Path:
    """A copy with one unit that a test may change."""
    for name in ("cuda", "include"):
        shutil.copytree(built / name, tmp_path / name)
    (tmp_path / "images").mkdir()
    shutil.copy(built / "images" / "dice_f32.images", tmp_path / "images")
    return tmp_path


def code_of(folder: Path, capability: int, driver: int = 13020, compiler: object = None) -> KernelCode:
    cache = KernelCache(folder / "cache")
    return KernelCode(sources_of(folder), compiler or NoCompiler(), capability, cache, driver)  # type: ignore[arg-type]


def prebuilt(folder: Path, capability: int, driver: int = 13020) -> Code | None:
    return code_of(folder, capability, driver).prebuilt(folder / "cuda" / "dice_f32.cu")


# ---- The build -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
def test_every_image_has_the_kernels_of_its_source(built: Path, compiler: nvrtc.Nvrtc, unit: str) -> None:
    source = built / "cuda" / f"{unit}.cu"
    images = sources_of(built).prebuilt(source)
    assert images is not None
    assert (images.unit, images.compiler) == (f"{unit}.cu", build_images.NVRTC)
    assert set(images.targets) == TARGETS
    expected = set(entries(images.image("compute_75")))
    assert expected
    for target in images.targets:
        image = images.image(target)
        assert kernel_names(image) == expected
        if target.startswith("compute_"):
            assert f".target sm_{target.partition('_')[2]}".encode() in image


def test_images_are_the_same_wherever_they_are_built(built: Path, compiler: nvrtc.Nvrtc, tmp_path: Path) -> None:
    unit = "dice_f32"
    done = run("unit", nvrtc.ROOT / "kernels/cuda" / f"{unit}.cu", tmp_path / "made", library=str(compiler.path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").read_bytes() == (built / "images" / f"{unit}.images").read_bytes()


@pytest.mark.parametrize("number", [75, 80, 86, 89, 90])
def test_cubins_have_the_form_that_drivers_of_cuda_12_0_read(built: Path, number: int) -> None:
    """Version 7 of the ELF ABI, as NVRTC 12.0 writes it. NVRTC 13 writes 8, which drivers of CUDA 12.0 do not know."""
    images = sources_of(built).prebuilt(built / "cuda" / "dice_f32.cu")
    assert images is not None
    assert images.image(f"sm_{number}")[7:9] == b"\x33\x07"


def test_the_stated_compiler_is_that_of_the_build_and_of_the_tests(compiler: nvrtc.Nvrtc) -> None:
    project = (nvrtc.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert project.count(f'"{build_images.PACKAGE}') == 2  # the group nvrtc, and the requirement of a build with images
    assert compiler.version == build_images.NVRTC
    assert set(build_images.CUBINS) <= set(compiler.architectures())


def test_the_build_names_what_it_needs(tmp_path: Path) -> None:
    done = run("check", library=str(tmp_path / "none.so"))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"pip install {build_images.PACKAGE}" in done.stderr


def test_the_build_refuses_another_release(cuda13_compiler: nvrtc.Nvrtc) -> None:
    done = run("check", library=str(cuda13_compiler.path))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{cuda13_compiler.path} is {cuda13_compiler.version}" in done.stderr


def test_the_build_finds_its_compiler(compiler: nvrtc.Nvrtc) -> None:
    done = run("check", library=str(compiler.path))
    assert done.stdout == f"NVRTC {build_images.NVRTC}, {compiler.path}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('#pragma message "look here"\n', "look here"),
        ("    int wrong", "wrong.cu(1): error"),
        ("#error not here\n", "not here"),
    ],
)
def test_a_message_of_the_compiler_fails_the_build(compiler: nvrtc.Nvrtc, tmp_path: Path, text: str, said: str) -> None:
    unit = tmp_path / "cuda" / "wrong.cu"
    unit.parent.mkdir()
    unit.write_text(text)
    done = run("unit", unit, tmp_path / "images" / "wrong.images", library=str(compiler.path))
    assert done.returncode != 0
    assert said in done.stderr
    assert not (tmp_path / "images").exists()


def test_the_script_says_how_it_is_used() -> None:
    done = run("other")
    assert done.returncode == 1
    assert "Usage" in done.stderr


# ---- Which image a device gets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "driver", "target"),
    [
        (75, 12000, "sm_75"), (80, 12000, "sm_80"), (86, 12000, "sm_86"), (89, 12000, "sm_89"), (90, 12000, "sm_90"),
        (100, 12080, "sm_100"), (103, 12090, "sm_100"), (120, 12080, "sm_120"), (121, 13000, "sm_120"),
        (87, 12090, "compute_75"), (87, 12060, None),  # a Jetson; PTX of 12.9 needs a driver of 12.9
        (101, 12090, "compute_75"), (110, 13000, "compute_75"),
        (130, 13020, "compute_120"), (130, 12080, None),
        (70, 13020, None), (90, 11080, None),
    ],
)  # fmt: skip
def test_the_nearest_image_is_taken(capability: int, driver: int, target: str | None) -> None:
    assert best_target(capability, TARGETS, "12.9.86", driver) == target


def test_a_cubin_needs_a_driver_of_its_compilers_major_release() -> None:
    assert best_target(90, ["sm_90", "compute_90"], "13.2.78", 12090) is None
    assert best_target(90, ["sm_90", "compute_90"], "13.2.78", 13000) == "sm_90"
    assert best_target(90, ["compute_90"], "13.2.78", 13010) is None
    assert best_target(90, ["compute_90"], "13.2.78", 14000) == "compute_90"
    assert best_target(90, [], "13.2.78", 14000) is None


def test_an_old_driver_is_refused_with_what_it_must_be() -> None:
    check_driver(OLDEST_DRIVER)
    check_driver(13020)
    for version, given in ((11080, "11.8"), (0, "0.0")):
        with refused(BackendError, "version", "backend", given=given, allowed="12.0", release="525.60.13"):
            check_driver(version)


@pytest.mark.parametrize(("capability", "target"), [(75, "sm_75"), (89, "sm_89"), (121, "sm_120"), (87, "compute_75")])
def test_a_device_gets_prebuilt_code_without_a_compiler(built: Path, capability: int, target: str) -> None:
    code = code_of(built, capability)
    made = code.image("dice_f32")
    images = sources_of(built).prebuilt(built / "cuda" / "dice_f32.cu")
    assert images is not None
    assert made.image == images.image(target)
    assert kernel_names(made.image) == kernel_names(images.image("compute_75"))
    assert made.origin == f"prebuilt for {target} by NVRTC {build_images.NVRTC}"


def test_a_device_without_an_image_needs_a_compiler(built: Path) -> None:
    with refused(BackendError, "unavailable"):
        code_of(built, 87, 12060).image("dice_f32")
    with refused(BackendError, "unavailable", unit="nothing"):
        code_of(built, 90).image("nothing")


def test_only_units_without_an_image_are_compiled(kernels: Path) -> None:
    class Naming:
        """A compiler whose code is PTX with a kernel of the file's name."""

        calls = list[str]()  # noqa: RUF012

        def version(self) -> str:
            return "12.9.86"

        def architectures(self) -> Sequence[int]:
            return (90,)

        def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
            self.calls.append(unit.name)
            return f".visible .entry {unit.stem}_one(".encode()

    code = code_of(kernels, 90, compiler=Naming())
    assert code.image("dice_f32").origin.startswith("prebuilt")
    assert Naming.calls == []
    assert kernel_names(code.image("topk").image) == {"topk_one"}
    assert sorted(Naming.calls) == sorted(path.name for path in nvrtc.SOURCES if path.stem != "dice_f32")


# ---- Damage ------------------------------------------------------------------------------------------------------


def test_images_of_other_sources_are_not_taken(kernels: Path) -> None:
    assert prebuilt(kernels, 90) is not None
    header = kernels / "include" / "hopfuse" / "scalar.h"
    kept = header.read_bytes()
    header.write_bytes(kept + b"\n// changed\n")
    assert prebuilt(kernels, 90) is None
    header.write_bytes(kept)
    assert prebuilt(kernels, 90) is not None
    shutil.copy(kernels / "images" / "dice_f32.images", kernels / "images" / "topk.images")
    assert code_of(kernels, 90).prebuilt(kernels / "cuda" / "topk.cu") is None
    (kernels / "images" / "dice_f32.images").unlink()
    assert prebuilt(kernels, 90) is None


def with_head(head: object, images: bytes) -> bytes:
    """A file with another head, whose hash is right."""
    text = json.dumps(head).encode()
    return b"\n".join([b"hopfuse kernel images 1 " + hashlib.sha256(text).hexdigest().encode(), text, images])


def head_of(content: bytes) -> tuple[dict[str, object], bytes]:
    _, head, images = content.split(b"\n", 2)
    return json.loads(head), images


def test_every_damaged_byte_is_noticed(kernels: Path) -> None:
    """A changed byte of the head, of the image or of the file's length: no code is better than wrong code."""
    path = kernels / "images" / "dice_f32.images"
    whole = path.read_bytes()
    images = KernelImages.read(path)
    place, right = images.places["sm_90"], images.image("sm_90")
    at = [*range(len(whole) - len(head_of(whole)[1])), *range(place.begin, place.begin + place.packed)]
    for position in at[:: 1 if FULL else 19]:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with suppress(ImagesError):  # zlib's own checksum may be wrong beside the right bytes
            assert KernelImages.read(path).image("sm_90") == right, position
            assert position >= place.begin
    for content in (b"", whole[:10], whole[:-1], whole + b"\0", whole[: place.begin]):
        path.write_bytes(content)
        assert prebuilt(kernels, 90) is None


@pytest.mark.parametrize("wrong", ["sha256", "size", "packed", "target", "images"])
def test_a_wrong_head_is_damage(kernels: Path, wrong: str) -> None:
    path = kernels / "images" / "dice_f32.images"
    head, images = head_of(path.read_bytes())
    listed = head["images"]
    assert isinstance(listed, list)
    for image in listed:
        if image["target"] == "sm_90":
            if wrong in ("size", "packed"):
                image[wrong] -= 1
            elif wrong == "target":
                del image[wrong]
            else:
                image[wrong] = "0" * 64
    if wrong == "images":
        head["images"] = None
    path.write_bytes(with_head(head, images))
    with pytest.raises(ImagesError):
        KernelImages.read(path).image("sm_90")
    with refused(BackendError, "unavailable") as caught:
        code_of(kernels, 90).image("dice_f32")
    assert any(place.startswith(f"{path} is damaged") for place in caught.value.places)


def test_damage_is_told_where_the_code_comes_from(
    kernels: Path, compiler: nvrtc.Nvrtc, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kernels / "images" / "dice_f32.images"
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setenv("HOPFUSE_NVRTC", str(compiler.path))
    unit = kernels / "cuda" / "dice_f32.cu"
    for origin in (f"compiled by NVRTC {build_images.NVRTC}", f"cache {kernels / 'cache'}"):
        code = code_of(kernels, 90, compiler=FoundNvrtc(90, 13020))
        assert code.prebuilt(unit) is None
        made = code.compiled(unit)
        assert made.origin.startswith(origin)
        assert f", since {path} is damaged" in made.origin
        assert kernel_names(made.image) == {"dice_f32"}


def test_a_file_that_cannot_be_read_is_told(kernels: Path) -> None:
    path = kernels / "images" / "dice_f32.images"
    path.unlink()
    path.mkdir()
    with refused(BackendError, "unavailable") as caught:
        code_of(kernels, 90).image("dice_f32")
    assert any(str(path) in place for place in caught.value.places)


def test_packing_and_reading_agree(tmp_path: Path) -> None:
    images = {"sm_75": b"", "compute_75": b"text" * 1000, "sm_90": os.urandom(5000)}
    path = tmp_path / "any.images"
    path.write_bytes(pack("any.cu", "hash", "1.2.3", images))
    read = KernelImages.read(path)
    assert (read.unit, read.sources, read.compiler, read.targets) == ("any.cu", "hash", "1.2.3", tuple(images))
    assert {target: read.image(target) for target in read.targets} == images
    assert path.stat().st_size < 7000
