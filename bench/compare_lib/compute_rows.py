# SPDX-License-Identifier: Apache-2.0
"""Rows of training and inference: C1 to C6, C11 to C13."""
from __future__ import annotations

from functools import partial

from .checks import RESNET50, SMALL_CNN_28, SMALL_CNN_8, same_losses
from .context import Context, Missing
from .groups import Check, Group, data_wait
from .install import data_file, require_torch
from .processes import Command
from .sides import Program, Side, bench_step, read_one
from .statistics import Figure
from .variants import WORKS, best_variant

IMAGENET = "configs/imagenet_resnet50.toml"
RATE = "samples_per_s"
GB = 1_000_000_000


def torch_side(name: str, context: Context) -> Side:
    """PyTorch with its best settings for WORKS[name]."""
    return WORKS[name].side(context, best_variant(context, name))


def check_tuned(net, name: str, context: Context) -> str:
    work = WORKS[name]
    return same_losses(context, net, best_variant(context, name), work.kind == "infer", work.avx2)


def torch_default(avx2: bool, context: Context) -> Side:
    """What a user gets who knows of channels_last only: malloc as it is."""
    require_torch(context)
    work = WORKS["resnet50_train_avx2" if avx2 else "resnet50_train"]
    return work.side(context, {"layout": "channels_last", "compile": False, "fused": False,
                               "malloc": "default"})


def ceiling(avx2: bool, context: Context) -> Side:
    program = str(context.programs / "bench_ceiling_convolutions")
    env = {"OMP_NUM_THREADS": "2", **({"ONEDNN_MAX_CPU_ISA": "AVX2"} if avx2 else {})}
    argv = [program, "16", "224", str(context.steps(3, 6)), "1"]
    return Program([Command(argv, env, context.cpus(2))], read_one)


def train_ours(avx2: bool, context: Context) -> Side:
    return bench_step(context, IMAGENET, ["data.synthetic=true", "batch.global=16"], threads=2,
                      steps=context.steps(3, 6), warmup=2, avx2=avx2)


def train_figures(tail: str, with_others: bool) -> list[Figure]:
    work = f"ResNet-50 training, 224x224, batch 16, 2 threads{tail}"
    figures = [
        Figure("C1", f"{work} / PyTorch tuned", f"ours {RATE}", f"tuned {RATE}", "rate", 1.40, 1.6),
        Figure("C1", f"{work} / PyTorch default", f"ours {RATE}", f"default {RATE}", "rate", 1.8,
               2.2)]
    if not with_others:
        return figures
    return figures + [
        Figure("C2", f"{work} / oneDNN's direct convolutions alone", f"ours {RATE}",
               f"ceiling {RATE}", "rate", 1.00, 1.12),
        Figure("C13", f"peak resident memory, {work} / PyTorch tuned", "ours peak_rss_bytes",
               "tuned peak_rss_bytes", "cost", 0.70, 0.6, 1e-6, "MB")]


def train_group(avx2: bool, has_avx512: bool) -> Group:
    name = "resnet50_train_avx2" if avx2 else "resnet50_train"

    def require(context: Context) -> None:
        context.require_bytes(10 * GB)
        if not avx2 and not context.machine.has_avx512:
            raise Missing("no AVX-512 on this processor: see the figures with AVX2")

    return Group(
        name, train_figures(", AVX2" if avx2 else "", with_others=avx2 != has_avx512),
        {"ours": partial(train_ours, avx2), "tuned": partial(torch_side, name),
         "default": partial(torch_default, avx2), "ceiling": partial(ceiling, avx2)},
        [Check("tuned", partial(check_tuned, RESNET50, name))], require)


def infer_ours(batch: int, context: Context) -> Side:
    """`annulus bench infer` on random inputs."""
    context.require_command("bench", "infer")
    warmup, steps = (2, context.steps(10, 30)) if batch > 1 else (5, context.steps(60, 150))
    argv = [str(context.annulus), "bench", "infer", str(context.root / IMAGENET), "--json",
            "--set", "data.synthetic=true", "--set", f"batch.global={batch}", "--set",
            "threads=2", "--steps", str(steps), "--warmup", str(warmup)]
    return Program([Command(argv, {}, context.cpus(2))], read_one)


def infer_group(batch: int, must: float, aim: float) -> Group:
    name = f"resnet50_infer_{batch}"
    figure = Figure("C3", f"ResNet-50 inference, 224x224, batch {batch}, 2 threads / PyTorch tuned",
                    f"ours {RATE}", f"tuned {RATE}", "rate", must, aim)
    return Group(name, [figure],
                 {"ours": partial(infer_ours, batch), "tuned": partial(torch_side, name)},
                 [Check("tuned", partial(check_tuned, RESNET50, name))],
                 lambda context: context.require_bytes(4 * GB))


def two_ranks(config: str, sets: list[str], batch: int, steps: tuple[int, int], copies: bool,
              context: Context) -> Side:
    """batch: of a rank. Two ranks in one job, or two jobs of one rank at the same time."""
    whole = batch if copies else 2 * batch
    return bench_step(context, config, ["data.synthetic=true", f"batch.global={whole}", *sets],
                      ranks=1 if copies else 2, copies=2 if copies else 1, threads=1,
                      steps=context.steps(*steps), warmup=3)


def small_job_group() -> Group:
    job = (IMAGENET, ["model.input=[3,64,64]"], 2, (30, 60))
    work = "ResNet-50, 64x64, batch 2 a rank, 2 ranks x 1 thread"
    return Group(
        "resnet50_two_ranks",
        [Figure("C4", f"{work} / PyTorch DDP over gloo, tuned", f"ours {RATE}", f"ddp {RATE}",
                "rate", 1.8, 2.2),
         Figure("C5", f"{work} / two independent jobs of one rank", f"ours {RATE}",
                f"apart {RATE}", "rate", 0.90, 0.96)],
        {"ours": partial(two_ranks, *job, False), "apart": partial(two_ranks, *job, True),
         "ddp": partial(torch_side, "resnet50_ddp")},
        [Check("ddp", partial(check_tuned, RESNET50, "resnet50_ddp"))],
        lambda context: context.require_bytes(4 * GB))


def efficiency_group(name: str, work: str, config: str, batch: int, steps: tuple[int, int],
                     must: float, needed: int) -> Group:
    job = (config, [], batch, steps)
    figure = Figure("C6", f"efficiency of 2 ranks x 1 thread, {work} / two independent jobs",
                    f"ours {RATE}", f"apart {RATE}", "rate", must, 0.99)
    return Group(name, [figure], {"ours": partial(two_ranks, *job, False),
                                  "apart": partial(two_ranks, *job, True)},
                 require=lambda context: context.require_bytes(needed))


def from_file(config: str, sets: list[str], file: tuple[str, str] | None,
              steps: tuple[int, int], context: Context) -> Side:
    """file: name and spec of the data; none: the config's own."""
    sets = list(sets)
    if file is not None:
        path = data_file(context, *file)
        sets += [f"data.train.file={path}", f"data.test.file={path}"]
    return bench_step(context, config, sets, threads=2, steps=context.steps(*steps), warmup=3)


def synthetic(config: str, sets: list[str], steps: tuple[int, int], context: Context) -> Side:
    return bench_step(context, config, [*sets, "data.synthetic=true"], threads=2,
                      steps=context.steps(*steps), warmup=3)


def loader_group(name: str, work: str, config: str, sets: list[str],
                 file: tuple[str, str] | None, steps: tuple[int, int], needed: int) -> Group:
    figure = Figure("C11", f"step with the real loader, {work} / on synthetic data", "ours step_s",
                    "synthetic step_s", "cost", 1.03, 1.01, 1e3, "ms")
    return Group(name, [figure], {"ours": partial(from_file, config, sets, file, steps),
                                  "synthetic": partial(synthetic, config, sets, steps)},
                 require=lambda context: context.require_bytes(needed), note=data_wait)


def small_cnn_ours(size: int, threads: int, context: Context) -> Side:
    steps = context.steps(100, 300) if size == 28 else context.steps(800, 2000)
    return bench_step(context, "bench/configs/small_cnn.toml", [f"model.input=[1,{size},{size}]"],
                      threads=threads, steps=steps, warmup=20)


def small_cnn_group(size: int, threads: int, must: float, aim: float) -> Group:
    name = f"small_cnn_{size}_{threads}"
    net = SMALL_CNN_28 if size == 28 else SMALL_CNN_8
    plural = "s" if threads > 1 else ""
    figure = Figure("C12", f"small CNN, {size}x{size}, batch 64, {threads} thread{plural} / "
                    "PyTorch tuned", f"ours {RATE}", f"tuned {RATE}", "rate", must, aim)
    return Group(name, [figure], {"ours": partial(small_cnn_ours, size, threads),
                                  "tuned": partial(torch_side, name)},
                 [Check("tuned", partial(check_tuned, net, name))])


def compute_groups(has_avx512: bool) -> list[Group]:
    return [
        train_group(False, has_avx512), train_group(True, has_avx512),
        infer_group(16, 1.15, 1.4), infer_group(1, 1.20, 1.5),
        small_job_group(),
        efficiency_group("resnet20_efficiency", "ResNet-20, 32x32, batch 32 a rank",
                         "configs/cifar10_resnet20.toml", 32, (60, 150), 0.95, GB),
        efficiency_group("resnet50_efficiency", "ResNet-50, 224x224, batch 8 a rank", IMAGENET, 8,
                         (4, 8), 0.97, 4 * GB),
        loader_group("digits_loader", "digits", "configs/digits.toml", [], None, (400, 1000), GB),
        loader_group("images_loader", "ResNet-50, batch 16, 224x224 uint8 with augmentation",
                     IMAGENET, ["batch.global=16"],
                     ("images_512", "samples=512,shape=3x224x224,classes=1000,test=16"), (4, 8),
                     4 * GB),
        small_cnn_group(28, 1, 1.2, 1.6), small_cnn_group(28, 2, 1.2, 1.6),
        small_cnn_group(8, 1, 1.8, 3.0), small_cnn_group(8, 2, 1.8, 3.0)]
