# SPDX-License-Identifier: Apache-2.0
"""Installs PyTorch into build/compare/venv, builds the programs, and makes data files."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .context import Context, Missing, say
from .processes import last_line

# What PyTorch imports; and what a CUDA toolkit does not bring, or not new enough.
PURE = ["typing_extensions", "sympy", "networkx", "jinja2", "filelock", "fsspec", "mpmath", "numpy",
        "setuptools"]
LEAST_OF_CUDA = ("cufile", "cusparselt", "nvshmem", "nccl")
PINS = """
import importlib.metadata, re, sys
words = sys.argv[1:]
for line in importlib.metadata.requires("torch") or []:
    name = re.split(r"[ ;\\[=<>!~]", line, 1)[0]
    if any(word in name for word in words): print(line.split(";")[0].strip())
"""


def run(argv: list[str], what: str, timeout_s: float = 3600) -> str:
    """Throws Missing with the last line of what went wrong."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{what}: {error}") from None
    if done.returncode != 0:
        raise Missing(f"{what}: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def has_cuda_toolkit() -> bool:
    return shutil.which("nvcc") is not None or Path("/usr/local/cuda/lib64").is_dir()


def imports(context: Context) -> str:
    """PyTorch's version; throws Missing where it does not start."""
    return run([str(context.python), "-c", "import torch, h5py; print(torch.__version__)"],
               "no PyTorch", 120).strip()


def pip(context: Context, *arguments: str) -> None:
    run([str(context.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--retries", "1", "--timeout", "30", *arguments], "no PyTorch to be had: pip install")


def install_beside_toolkit(context: Context) -> None:
    """Without the gigabytes that the toolkit has already."""
    pip(context, "--no-deps", "torch")
    pip(context, *PURE)
    pins = run([str(context.python), "-c", PINS, *LEAST_OF_CUDA], "PyTorch's requirements")
    if pins.split():
        pip(context, "--no-deps", *pins.splitlines())


def install_torch(context: Context) -> str:
    """The newest PyTorch and h5py, unless they are there; returns the version."""
    if not context.python.exists():
        say("installing PyTorch into build/compare/venv (up to 3 GB)")
        run([sys.executable, "-m", "venv", str(context.build / "venv")], "no PyTorch: venv")
    try:
        return imports(context)
    except Missing:
        pass
    pip(context, "h5py", "numpy")
    if has_cuda_toolkit():
        install_beside_toolkit(context)
        try:
            return imports(context)
        except Missing:
            say("the toolkit's libraries do not suit; installing PyTorch with its own")
    pip(context, "torch")
    return imports(context)


def require_torch(context: Context) -> str:
    """install_torch, tried once a run."""
    if "no torch" in context.memo:
        raise Missing(context.memo["no torch"])
    if "torch" not in context.memo:
        try:
            context.memo["torch"] = install_torch(context)
        except Missing as missing:
            context.memo["no torch"] = str(missing)
            raise
    return context.memo["torch"]


PROGRAMS = ["bench_ceiling_convolutions", "bench_peer_allreduce_mpi", "bench_peer_pread"]


def build(context: Context, with_annulus: bool) -> None:
    """Compiles the peers' programs, and annulus itself unless one was given."""
    directory = context.build / "programs"
    say("building into build/compare/programs")
    run(["cmake", "-S", str(context.root), "-B", str(directory), "-G", "Ninja",
         "-DCMAKE_BUILD_TYPE=Release", "-DANNULUS_BENCH=ON", "-DANNULUS_TESTS=OFF"],
        "cmake failed")
    run(["ninja", "-C", str(directory), *PROGRAMS, *(["annulus"] if with_annulus else [])],
        "the build failed")


def data_file(context: Context, name: str, spec: str) -> Path:
    """A file of random images of `annulus data synth`, made once. name says what the spec is."""
    path = context.build / "data" / f"{name}.h5"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        run([str(context.annulus), "data", "synth", spec, str(new)], "no data file")
        new.rename(path)
    return path


def require_hosts(context: Context) -> None:
    done = subprocess.run([str(context.root / "scripts" / "hosts"), "check"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise Missing(last_line(done.stderr))
