"""What is shipped: the wheel and the source distribution hold what they must, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MATURIN = Path(sys.executable).with_name("maturin")


def build(kind: list[str], out: Path) -> Path:
    command = [str(MATURIN), *kind, "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of a debug build, which is made already; the content is the same."""
    folder = tmp_path_factory.mktemp("wheel")
    return zipfile.ZipFile(build(["build", "--profile", "dev"], folder))


@pytest.mark.slow
def test_the_wheel_serves_every_python_from_3_11(wheel: zipfile.ZipFile) -> None:
    assert "-cp311-abi3-" in Path(str(wheel.filename)).name


@pytest.mark.slow
def test_the_wheel_holds_the_types(wheel: zipfile.ZipFile) -> None:
    assert {"testgrad/py.typed", "testgrad/_testgrad.pyi"} <= set(wheel.namelist())


@pytest.mark.slow
def test_the_wheel_holds_one_binary(wheel: zipfile.ZipFile) -> None:
    binaries = [name for name in wheel.namelist() if name.endswith(".so")]
    assert binaries == ["testgrad/_testgrad.abi3.so"]


@pytest.mark.slow
def test_the_wheel_holds_the_suites_of_the_demo(wheel: zipfile.ZipFile) -> None:
    assert "testgrad/demo/suites/bisect_suite.py" in wheel.namelist()


@pytest.mark.slow
def test_the_wheel_asks_for_numpy_only(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    needed = [
        line.split()[1]
        for line in wheel.read(name).decode().splitlines()
        if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    assert [need.partition(">")[0] for need in needed] == ["numpy"]


@pytest.mark.slow
def test_the_source_distribution_can_be_built_from(tmp_path: Path) -> None:
    with tarfile.open(build(["sdist"], tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    must = {"Cargo.toml", "Cargo.lock", "pyproject.toml", "src/lib.rs"}
    assert must <= names


def test_maturin_is_beside_python() -> None:
    assert shutil.which(str(MATURIN))
