# SPDX-License-Identifier: Apache-2.0
"""Rows of all-reduce and reading: C7 to C10."""
from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial

from .context import MPI_ENV, Context
from .groups import Group
from .install import data_file, require_hosts, require_torch, run
from .processes import Command
from .sides import Program, Side, Torch, read_allreduce, read_one
from .statistics import Figure
from .variants import best_chunk, mpi_program

LARGE = [25_000_000, 102_400_000]
SMALL = [8, 256, 1024]
ACROSS = [1_000_000, 4_000_000, 25_000_000, 102_400_000]


def in_words(size: int) -> str:
    return f"{size / 1e6:g} MB" if size >= 1_000_000 else f"{size} B"


def time_figure(row: str, work: str, size: int, peer: str, must: float,
                aim: float | None) -> Figure:
    value = f"time_s/{size}"
    unit, scale = ("ms", 1e3) if size >= 1_000_000 else ("us", 1e6)
    return Figure(row, work, f"ours {value}", f"{peer} {value}", "time", must, aim, scale, unit)


# ---------------------------------------------------------------- within a node
def ours_argv(context: Context, sizes: list[int]) -> list[str]:
    context.require_command("bench", "allreduce")
    return [str(context.annulus), "bench", "allreduce", "--bytes", ",".join(map(str, sizes)),
            "--json"]


def ours_in_node(sizes: list[int], context: Context) -> Side:
    return Program([context.mpirun(2, ours_argv(context, sizes), context.cpus(2))],
                   read_allreduce)


def plain_mpi(sizes: list[int], context: Context) -> Side:
    return mpi_program(context, sizes, [0], [1], 1000, read_allreduce)


def best_mpi(context: Context) -> Side:
    """One program a size, since each has its own best chunk."""
    commands = []
    for size in LARGE:
        best = best_chunk(context, size)
        commands.append(mpi_program(context, [size], [best["chunk_bytes"]],
                                    [int(best["in_place"])], 1000, read_allreduce))
    return OneAfterTheOther(commands)


class OneAfterTheOther(Side):
    """Several programs that make one side."""

    def __init__(self, sides: list[Program]) -> None:
        self._sides = sides
        self.text = "; ".join(side.text for side in sides)

    def measure(self, context: Context) -> dict:
        measured: dict = {}
        for side in self._sides:
            measured |= side.measure(context)
        return measured


def gloo(context: Context) -> Side:
    require_torch(context)
    return Torch(context, "allreduce", {"bytes": [LARGE[1]], "variant": {"malloc": "tuned"}},
                 threads=1, ranks=2, warmup=2, steps=context.steps(8, 15))


def node_group() -> Group:
    best = "best of MPI_Allreduce whole or in chunks / all-reduce of"
    return Group(
        "allreduce_node",
        [*(time_figure("C7", f"{best} {in_words(size)}, 2 ranks", size, "mpi_best", 2.0, 2.6)
           for size in LARGE),
         time_figure("C8", f"plain MPI_Allreduce / all-reduce of {in_words(LARGE[1])}, 2 ranks",
                     LARGE[1], "mpi", 4.0, 6.0),
         time_figure("C8", f"gloo / all-reduce of {in_words(LARGE[1])}, 2 ranks", LARGE[1], "gloo",
                     8.0, 13.0)],
        {"ours": partial(ours_in_node, LARGE), "mpi_best": best_mpi,
         "mpi": partial(plain_mpi, LARGE), "gloo": gloo},
        require=lambda context: context.require_bytes(2_000_000_000))


def small_group() -> Group:
    return Group(
        "allreduce_small",
        [time_figure("C9", f"MPI_Allreduce / all-reduce of {in_words(size)} in the node, 2 ranks",
                     size, "mpi", 0.9, None) for size in SMALL],
        {"ours": partial(ours_in_node, SMALL), "mpi": partial(plain_mpi, SMALL)})


# ---------------------------------------------------------------- across two hosts
def hosts_name() -> str:
    return f"compare{os.getpid()}"


@contextmanager
def two_hosts(context: Context):
    """Hosts of their own, removed at the end."""
    script = str(context.root / "scripts" / "hosts")
    named = ["env", f"ANNULUS_HOSTS={hosts_name()}", script]
    run([*named, "up", "2"], "no hosts")
    try:
        yield
    finally:
        run([*named, "down"], "the hosts are still there")


def on_hosts(context: Context, argv: list[str]) -> Side:
    """A rank a host. The launcher on the other host stays a child of the one here, so that its
    processor time is counted."""
    command = Command([str(context.root / "scripts" / "hosts"), "mpirun", "-n", "2", "--map-by",
                       "ppr:1:node", "--mca", "orte_leave_session_attached", "1", *argv],
                      {**MPI_ENV, "ANNULUS_HOSTS": hosts_name()}, context.cpus(2))
    return Program([command], read_allreduce)


def ours_across(context: Context) -> Side:
    return on_hosts(context, ours_argv(context, ACROSS))


def mpi_across(context: Context) -> Side:
    program = str(context.programs / "bench_peer_allreduce_mpi")
    return on_hosts(context, [program, ",".join(map(str, ACROSS)), "0", "1", "1000"])


def hosts_group() -> Group:
    return Group(
        "allreduce_hosts",
        [time_figure("C9", f"MPI_Allreduce / all-reduce of {in_words(size)} across two hosts",
                     size, "mpi", 1.0, 1.3) for size in ACROSS],
        {"ours": ours_across, "mpi": mpi_across}, require=require_hosts, around=two_hosts)


# ---------------------------------------------------------------- reading
SAMPLES, SAMPLE_BYTES, BATCH = 4096, 3 * 224 * 224, 64


def read_file(context: Context, chunked: bool):
    spec = f"samples={SAMPLES},shape=3x224x224,classes=1000,test=16"
    if chunked:
        return data_file(context, "read_chunked", spec + ",storage=chunked,chunk=1")
    return data_file(context, "read_contiguous", spec)


def hdf5(chunked: bool, shuffled: bool, context: Context) -> Side:
    context.require_command("bench", "data")
    path = read_file(context, chunked)
    sets = [f"data.train.file={path}", f"data.test.file={path}", f"batch.global={BATCH}",
            f"data.train.shuffle={'true' if shuffled else 'false'}", "data.train.workers=1",
            "data.train.augment.flip=false", "data.train.augment.crop_padding=0"]
    argv = [str(context.annulus), "bench", "data",
            str(context.root / "configs/imagenet_resnet50.toml"), "--json"]
    for setting in sets:
        argv += ["--set", setting]
    return Program([Command(argv, {}, context.cpus(2))], read_one)


def pread(shuffled: bool, context: Context) -> Side:
    """The same number of bytes of the contiguous file: images begin within its first pages."""
    argv = [str(context.programs / "bench_peer_pread"), str(read_file(context, False)), "0",
            str(SAMPLE_BYTES), str(SAMPLES), str(BATCH), "shuffled" if shuffled else "ordered",
            str(context.steps(700, 2000))]
    return Program([Command(argv, {}, context.cpus(2))], read_one)


def reading_group(name: str, work: str, chunked: bool, shuffled: bool, must: float,
                  aim: float) -> Group:
    figure = Figure("C10", f"HDF5 reading, {work} / raw pread, warm", "ours bytes_per_s",
                    "pread bytes_per_s", "rate", must, aim, 1e-9, "GB/s")
    return Group(name, [figure], {"ours": partial(hdf5, chunked, shuffled),
                                  "pread": partial(pread, shuffled)},
                 require=lambda context: context.require_bytes(3_000_000_000))


def exchange_groups() -> list[Group]:
    return [
        node_group(), small_group(), hosts_group(),
        reading_group("read_contiguous", "contiguous, in order", False, False, 0.97, 1.0),
        reading_group("read_shuffled", "contiguous, shuffled single images", False, True, 0.90,
                      0.98),
        reading_group("read_chunks", "one-image chunks, shuffled", True, True, 0.65, 0.8)]
