# SPDX-License-Identifier: Apache-2.0
"""Whether both sides compute the same thing: losses from one checkpoint on the same samples."""
from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from .context import Context
from .install import data_file, require_torch
from .processes import Command, Failed, only_json
from .sides import MALLOCS, RUN_TIMEOUT_S

LARGEST_DIFFERENCE = 1e-3  # relative, of a loss
STEPS = 3


class Different(Exception):
    """The sides do not compute the same; the text shows both."""


@dataclass(frozen=True)
class Net:
    """A network in both worlds. size: of the square images that it is checked on."""

    model: str
    config: str
    channels: int
    size: int
    classes: int
    batch: int
    data: dict  # scale, mean and std of the config
    label_smoothing: float = 0.0
    sets: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.model}_{self.size}"


RESNET50 = Net("resnet50", "configs/imagenet_resnet50.toml", 3, 64, 1000, 4,
               {"scale": 1 / 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}, 0.1,
               ("optimizer.schedule.kind=constant", "optimizer.schedule.warmup_epochs=0",
                "data.train.augment.flip=false", "data.train.augment.crop_padding=0"))
SMALL_CNN_28 = Net("small_cnn", "bench/configs/small_cnn.toml", 1, 28, 10, 64,
                   {"scale": 1 / 255, "mean": [0.0], "std": [1.0]}, sets=("data.synthetic=false",))
SMALL_CNN_8 = Net("small_cnn", "bench/configs/small_cnn.toml", 1, 8, 10, 64,
                  {"scale": 1 / 255, "mean": [0.0], "std": [1.0]}, sets=("data.synthetic=false",))


def settings(context: Context, net: Net) -> tuple[Path, list[str]]:
    """The data file, and what makes annulus compute on it in the file's order."""
    size = f"{net.channels}x{net.size}x{net.size}"
    file = data_file(context, f"check_{net.key}",
                     f"samples={net.batch * (STEPS + 1)},shape={size},classes={net.classes},"
                     f"test={net.batch}")
    sets = [f"data.train.file={file}", f"data.test.file={file}", "data.train.shuffle=false",
            f"batch.global={net.batch}", "threads=2",
            f"model.input=[{size.replace('x', ',')}]", *net.sets]
    return file, [part for setting in sets for part in ("--set", setting)]


def run_annulus(context: Context, argv: list[str], avx2: bool) -> str:
    env = {"ONEDNN_MAX_CPU_ISA": "AVX2"} if avx2 else {}
    command = Command([str(context.annulus), *argv], env, context.cpus(2))
    return context.processes.run([command], RUN_TIMEOUT_S)[0]


def losses_of_annulus(context: Context, net: Net, avx2: bool) -> dict:
    """training: of updates 2, 3 ...; test: of the checkpoint after update 1; and the paths."""
    run = context.build / "check" / net.key
    shutil.rmtree(run, ignore_errors=True)
    run.parent.mkdir(parents=True, exist_ok=True)
    file, sets = settings(context, net)
    config = str(context.root / net.config)
    length = [f"train.steps={STEPS + 1}", "train.save_every=1", "train.log_every=1"]
    lengths = [part for setting in length for part in ("--set", setting)]
    run_annulus(context, ["train", config, "--run-dir", str(run), *sets, *lengths], avx2)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    training = {line["update"]: line for line in lines if "loss" in line}
    checkpoint = run / "checkpoints" / "step_0000000001"
    tested = run_annulus(
        context, ["eval", config, "--weights", str(checkpoint), "--json", *sets], avx2)
    return {"training": [training[k + 2]["loss"] for k in range(STEPS)], "lr": training[2]["lr"],
            "test": [only_json(tested)["loss"]], "file": str(file),
            "checkpoint": str(checkpoint / "tensors.h5")}


def losses_of_torch(context: Context, net: Net, ours: dict, variant: dict, kind: str,
                    avx2: bool) -> list[float]:
    spec = {"model": net.model, "shape": [net.channels, net.size, net.size], "batch": net.batch,
            "label_smoothing": net.label_smoothing, "variant": variant, "data": net.data,
            "file": ours["file"], "checkpoint": ours["checkpoint"], "lr": ours["lr"],
            "first": net.batch, "steps": STEPS}
    env = {"OMP_NUM_THREADS": "2", **MALLOCS[variant.get("malloc", "default")],
           **({"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"} if avx2 else {})}
    command = Command([str(context.python), str(context.peers / "worker.py"), kind,
                       json.dumps(spec)], env, context.cpus(2))
    return only_json(context.processes.run([command], RUN_TIMEOUT_S)[0])["losses"]


def compare(name: str, ours: list[float], theirs: list[float]) -> str:
    """A line that says how close they are. Throws Different."""
    differences = [abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True)]
    both = (f"annulus {', '.join(f'{x:.6f}' for x in ours)}; "
            f"PyTorch {', '.join(f'{x:.6f}' for x in theirs)}")
    # A NaN is not <= anything.
    if not all(difference <= LARGEST_DIFFERENCE for difference in differences):
        raise Different(f"the sides do not compute the same, {name}: {both}")
    return f"{name} agree to {max(differences):.1e} ({both})"


def same_losses(context: Context, net: Net, variant: dict, inference: bool = False,
                avx2: bool = False) -> str:
    """Trains both from one checkpoint; for inference, the loss of the test part."""
    require_torch(context)
    key = ("losses", net.key, avx2)
    if key not in context.memo:
        context.memo[key] = losses_of_annulus(context, net, avx2)
    ours = context.memo[key]
    kind, part, name = (("test_loss", "test", "test losses") if inference else
                        ("losses", "training", f"losses of {STEPS} steps"))
    try:
        theirs = losses_of_torch(context, net, ours, variant, kind, avx2)
    except Failed as failed:
        raise Different(f"the check of what the sides compute failed: {failed}") from None
    return compare(name, ours[part], theirs)
