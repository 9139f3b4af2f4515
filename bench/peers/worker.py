# SPDX-License-Identifier: Apache-2.0
"""A peer that stays warm: worker.py KIND SPEC, both of bench/compare. Prints a line when it is
ready, then answers each line {"warmup": n, "steps": n} on its input with one JSON line."""
from __future__ import annotations

import json
import os
import resource
import sys

import torch


def make(kind: str, spec: dict):
    if kind == "train":
        from training import Trainer
        return Trainer(spec)
    if kind == "infer":
        from training import Predictor
        return Predictor(spec)
    if kind == "ddp":
        from distributed import DistributedTrainer
        return DistributedTrainer(spec)
    if kind == "allreduce":
        from distributed import AllReduce
        return AllReduce(spec)
    raise ValueError(f"no peer '{kind}'")


def answer(kind: str, spec: dict) -> dict:
    """What is asked once: losses."""
    import losses
    return {"losses": losses.training_losses(spec) if kind == "losses" else losses.test_loss(spec)}


def peak_rss_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    # Libraries print what they like; answers have a stream of their own.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    kind, spec = sys.argv[1], json.loads(sys.argv[2])
    threads = int(os.environ["OMP_NUM_THREADS"])
    torch.set_num_threads(threads)
    if kind in ("losses", "test_loss"):
        print(json.dumps(answer(kind, spec)), file=answers)
        return
    peer = make(kind, spec)
    print(json.dumps({"ready": True, "torch": torch.__version__}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        result = peer.measure(request["warmup"], request["steps"])
        print(json.dumps({**result, "peak_rss_bytes": peak_rss_bytes()}), file=answers)


if __name__ == "__main__":
    main()
