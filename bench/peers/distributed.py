# SPDX-License-Identifier: Apache-2.0
"""PyTorch's data parallelism and all-reduce over gloo, one process a rank."""
from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from training import Trainer, make_batch


def join() -> None:
    """Ranks and their meeting point come from the environment (RANK, WORLD_SIZE, MASTER_*)."""
    dist.init_process_group("gloo")


def wrapper(variant: dict):
    def wrap(model: nn.Module) -> nn.Module:
        return DistributedDataParallel(
            model, bucket_cap_mb=variant.get("bucket_mb", 25),
            gradient_as_bucket_view=variant.get("bucket_view", True),
            static_graph=variant.get("static_graph", True))
    return wrap


class DistributedTrainer(Trainer):
    """Each rank has a batch of its own of spec["batch"] samples."""

    def __init__(self, spec: dict) -> None:
        join()
        super().__init__(spec, wrapper(spec["variant"]))

    def measure(self, warmup: int, steps: int) -> dict:
        """Samples/s of all ranks together."""
        images, labels = make_batch(self.spec)
        for _ in range(warmup):
            self.step(images, labels)
        dist.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            self.step(images, labels)
        dist.barrier()
        wall_s = time.perf_counter() - start
        samples = self.spec["batch"] * steps * dist.get_world_size()
        return {"samples_per_s": samples / wall_s, "wall_s": wall_s}


class AllReduce:
    """spec: bytes, the sizes of the messages of 32-bit floats."""

    def __init__(self, spec: dict) -> None:
        join()
        self.tensors = [torch.zeros(size // 4) for size in spec["bytes"]]

    def time_of(self, tensor: torch.Tensor, repeats: int) -> float:
        dist.barrier()
        start = time.perf_counter()
        for _ in range(repeats):
            dist.all_reduce(tensor)
        return (time.perf_counter() - start) / repeats

    def wrong(self, tensor: torch.Tensor) -> int:
        tensor.fill_(dist.get_rank() + 1)
        dist.all_reduce(tensor)
        ranks = dist.get_world_size()
        return int((tensor != ranks * (ranks + 1) // 2).sum())

    def measure(self, warmup: int, steps: int) -> dict:
        """Seconds of one all-reduce by size."""
        result: dict = {"wrong": 0}
        for tensor in self.tensors:
            result["wrong"] += self.wrong(tensor)
            tensor.zero_()
            self.time_of(tensor, warmup)
            result[f"time_s/{4 * tensor.numel()}"] = self.time_of(tensor, steps)
        return result
