# SPDX-License-Identifier: Apache-2.0
"""Finds each peer's best settings on this machine, once: build/compare/peers.json."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .context import Context, Missing, say
from .install import require_torch
from .machine import Watch
from .processes import Failed, json_lines
from .sides import Program, Side, Torch

LAYOUTS = ("channels_last", "contiguous")
MALLOC_STAGE = [{"malloc": "tuned, huge pages"}]
TRAIN_STAGES = [[{"layout": layout, "compile": compiled} for layout in LAYOUTS
                 for compiled in (False, True)], [{"fused": False}], MALLOC_STAGE]
TRAIN_START = {"layout": "channels_last", "compile": False, "fused": True, "malloc": "tuned"}
INFER_STAGES = [[{"layout": layout, "mode": mode} for layout in LAYOUTS
                 for mode in ("eager", "optimize", "compile")], MALLOC_STAGE]
INFER_START = {"layout": "channels_last", "mode": "eager", "malloc": "tuned"}
DDP_STAGES = [[{"layout": "contiguous"}], [{"bucket_mb": 5}, {"bucket_mb": 100}],
              [{"fused": False}], MALLOC_STAGE]
DDP_START = {"layout": "channels_last", "compile": False, "fused": True, "bucket_mb": 25,
             "bucket_view": True, "static_graph": True, "malloc": "tuned"}


@dataclass(frozen=True)
class Work:
    """Something that PyTorch does. Stages: changes to try, each on the best of those before."""

    kind: str
    spec: dict
    start: dict
    stages: list[list[dict]]
    threads: int
    ranks: int = 1
    avx2: bool = False
    warmup: int = 2
    steps: tuple[int, int] = (3, 6)  # of a round: quick, full
    bytes: int = 4_000_000_000

    def side(self, context: Context, variant: dict) -> Torch:
        return Torch(context, self.kind, {**self.spec, "variant": variant}, threads=self.threads,
                     ranks=self.ranks, warmup=self.warmup, steps=context.steps(*self.steps),
                     avx2=self.avx2)


def resnet50(size: int, batch: int) -> dict:
    return {"model": "resnet50", "shape": [3, size, size], "batch": batch, "label_smoothing": 0.1}


def small_cnn(size: int) -> dict:
    return {"model": "small_cnn", "shape": [1, size, size], "batch": 64}


def small_cnn_work(size: int, threads: int) -> Work:
    steps = (60, 200) if size == 28 else (400, 1000)
    return Work("train", small_cnn(size), TRAIN_START, TRAIN_STAGES, threads, warmup=10, steps=steps,
                bytes=2_000_000_000)


WORKS = {
    "resnet50_train": Work("train", resnet50(224, 16), TRAIN_START, TRAIN_STAGES, 2),
    "resnet50_train_avx2": Work("train", resnet50(224, 16), TRAIN_START, TRAIN_STAGES, 2,
                                avx2=True),
    "resnet50_infer_16": Work("infer", resnet50(224, 16), INFER_START, INFER_STAGES, 2,
                              steps=(5, 15)),
    "resnet50_infer_1": Work("infer", resnet50(224, 1), INFER_START, INFER_STAGES, 2,
                             warmup=5, steps=(60, 150)),
    "resnet50_ddp": Work("ddp", resnet50(64, 2), DDP_START, DDP_STAGES, 1, ranks=2, warmup=3,
                         steps=(15, 30)),
    "small_cnn_28_1": small_cnn_work(28, 1),
    "small_cnn_28_2": small_cnn_work(28, 2),
    "small_cnn_8_1": small_cnn_work(8, 1),
    "small_cnn_8_2": small_cnn_work(8, 2),
}
CHUNKS = [0, 65_536, 262_144, 1_048_576, 4_194_304]


@dataclass
class Store:
    """peers.json: for this processor and this PyTorch; anything else starts anew."""

    context: Context

    @property
    def path(self) -> Path:
        return self.context.build / "peers.json"

    def load(self) -> dict:
        key = {"processor": self.context.machine.processor,
               "torch": self.context.memo.get("torch", "")}
        try:
            stored = json.loads(self.path.read_text())
        except (OSError, ValueError):
            stored = {}
        same = stored.get("processor") == key["processor"] and (
            not key["torch"] or stored.get("torch") in ("", key["torch"]))
        return {**stored, **key} if same else {**key, "works": {}}

    def get(self, name: str) -> dict | None:
        return self.load()["works"].get(name)

    def put(self, name: str, found: dict) -> None:
        stored = self.load()
        stored["works"][name] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(stored, indent=1) + "\n")
        new.rename(self.path)


def measured_alone(context: Context, side: Side, times: int) -> list[dict]:
    """What the side measures on a machine that nobody else uses; it is started and stopped."""
    results: list[dict] = []
    try:
        side.start(context)
        for _ in range(3 * times):
            busy = context.why_not_idle()
            if busy:
                raise Missing(busy)
            watch = Watch(context.machine, context.processes.own_s())
            measured = side.measure(context)
            if not watch.others(context.processes.own_s()).spoils:
                results.append(measured)
            if len(results) == times:
                return results
    finally:
        side.stop()
    raise Missing("other load on the machine, again and again, while the peers were tried")


def rate_of(context: Context, work: Work, variant: dict) -> float:
    try:
        measured = measured_alone(context, work.side(context, variant), 2)
    except Failed as failed:
        say(f"    {variant}: failed: {failed}")
        return 0.0
    rate = max(entry["samples_per_s"] for entry in measured)
    say(f"    {rate:10.2f} samples/s  {variant}")
    return rate


def entry_of(variant: dict | None, tried: dict[str, float]) -> dict:
    """Of peers.json; no variant: the search is not at its end."""
    return {"variant": variant,
            "tried": [{"variant": json.loads(k), "samples_per_s": v} for k, v in tried.items()]}


def find_variant(context: Context, name: str, store: Store) -> dict:
    """Goes on where an earlier search was stopped."""
    work = WORKS[name]
    tried = {json.dumps(entry["variant"], sort_keys=True): entry["samples_per_s"]
             for entry in (store.get(name) or {"tried": []})["tried"]}
    best = dict(work.start)
    for stage in [[{}], *work.stages]:
        for change in stage:
            variant = {**best, **change}
            key = json.dumps(variant, sort_keys=True)
            if key not in tried:
                tried[key] = rate_of(context, work, variant)
                store.put(name, entry_of(None, tried))
        best = json.loads(max(tried, key=lambda key: tried[key]))
    if not any(tried.values()):
        raise Missing("no variant of the peer works: see the lines above")
    return entry_of(best, tried)


def best_variant(context: Context, name: str) -> dict:
    """Of PyTorch for WORKS[name]; searched for where peers.json does not have it."""
    require_torch(context)
    store = Store(context)
    found = store.get(name)
    if found is None or found["variant"] is None:
        context.require_bytes(WORKS[name].bytes)
        say(f"  looking for PyTorch's best settings for {name}")
        found = find_variant(context, name, store)
        store.put(name, found)
    return found["variant"]


def mpi_program(context: Context, sizes: list[int], chunks: list[int], in_place: list[int],
                milliseconds: int, read) -> Program:
    argv = [str(context.programs / "bench_peer_allreduce_mpi"),
            *(",".join(map(str, values)) for values in (sizes, chunks, in_place)),
            str(milliseconds)]
    return Program([context.mpirun(2, argv, context.cpus(2), "core")], read)


def best_chunk(context: Context, size: int) -> dict:
    """{chunk_bytes, in_place} of MPI_Allreduce for a size in bytes."""
    store, name = Store(context), f"mpi_allreduce_{size}"
    found = store.get(name)
    if found is None:
        say(f"  looking for the best chunks of MPI_Allreduce for {size} bytes")
        side = mpi_program(context, [size], CHUNKS, [0, 1], 300,
                           lambda outputs: {"lines": json_lines(outputs[0])})
        rounds = measured_alone(context, side, 2)
        lines = [line for measured in rounds for line in measured["lines"]]
        best = min(lines, key=lambda line: line["time_s"])
        found = {"variant": {"chunk_bytes": best["chunk_bytes"], "in_place": best["in_place"]},
                 "tried": lines}
        store.put(name, found)
    return found["variant"]
