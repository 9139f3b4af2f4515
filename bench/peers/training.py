# SPDX-License-Identifier: Apache-2.0
"""Training steps and inference in PyTorch, in the variants that bench/compare chooses from."""
from __future__ import annotations

import time
from typing import Callable

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from models import make_model

Spec = dict  # model, shape, batch, label_smoothing, variant {layout, compile, fused, ...}


def layout_of(variant: dict) -> torch.memory_format:
    channels_last = variant.get("layout") == "channels_last"
    return torch.channels_last if channels_last else torch.contiguous_format


def make_batch(spec: Spec) -> tuple[Tensor, Tensor]:
    """One batch of random images and labels, made once: PyTorch pays for no input pipeline."""
    torch.manual_seed(2)
    images = torch.rand(spec["batch"], *spec["shape"]).contiguous(
        memory_format=layout_of(spec["variant"]))
    classes = 1000 if spec["model"] == "resnet50" else 10
    return images, torch.randint(classes, (spec["batch"],))


def make_optimizer(model: nn.Module, variant: dict, lr: float = 1e-3) -> torch.optim.SGD:
    """As in the configs: momentum 0.9, decay of weights but not of biases and norms."""
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 1e-4}, {"params": others, "weight_decay": 0.0}]
    fused = True if variant.get("fused") else None
    return torch.optim.SGD(groups, lr=lr, momentum=0.9, fused=fused)


class Trainer:
    """wrap: what stands around the model (DistributedDataParallel)."""

    def __init__(self, spec: Spec, wrap: Callable[[nn.Module], nn.Module] = lambda m: m) -> None:
        self.spec = spec
        variant = spec["variant"]
        raw = make_model(spec["model"], spec["shape"]).to(memory_format=layout_of(variant)).train()
        self.raw = raw
        self.model = wrap(raw)
        if variant.get("compile"):
            self.model = torch.compile(self.model)
        self.optimizer = make_optimizer(raw, variant, spec.get("lr", 1e-3))
        self.loss = nn.CrossEntropyLoss(label_smoothing=spec.get("label_smoothing", 0.0))

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def measure(self, warmup: int, steps: int) -> dict:
        """Samples/s over `steps` steps of one batch."""
        images, labels = make_batch(self.spec)
        for _ in range(warmup):
            self.step(images, labels)
        start = time.perf_counter()
        for _ in range(steps):
            self.step(images, labels)
        wall_s = time.perf_counter() - start
        return {"samples_per_s": self.spec["batch"] * steps / wall_s, "wall_s": wall_s}


class Predictor:
    """Inference: variant {mode: eager, optimize or compile; layout}."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.layout = layout_of(spec["variant"])
        self.raw = make_model(spec["model"], spec["shape"]).to(memory_format=self.layout).eval()
        self.model: Callable[[Tensor], Tensor] | None = None

    def prepare(self, images: Tensor) -> None:
        """After the weights are set: freezing takes them as constants."""
        mode = self.spec["variant"]["mode"]
        with torch.inference_mode(mode == "eager"), torch.no_grad():
            if mode == "optimize":
                traced = torch.jit.freeze(torch.jit.trace(self.raw, images))
                self.model = torch.jit.optimize_for_inference(traced)
            elif mode == "compile":
                import torch._inductor.config as inductor
                inductor.freezing = True
                self.model = torch.compile(self.raw)
            else:
                self.model = self.raw
            for _ in range(3):  # compiles
                self.model(images)

    def outputs(self, images: Tensor) -> Tensor:
        images = images.contiguous(memory_format=self.layout)
        if self.model is None:
            self.prepare(images)
        with torch.no_grad():
            return self.model(images)

    def measure(self, warmup: int, steps: int) -> dict:
        images, _ = make_batch(self.spec)
        if self.model is None:
            self.prepare(images)
        eager = self.spec["variant"]["mode"] == "eager"
        times: list[float] = []
        with torch.inference_mode(eager), torch.no_grad():
            for k in range(warmup + steps):
                start = time.perf_counter()
                self.model(images)
                if k >= warmup:
                    times.append(time.perf_counter() - start)
        times.sort()
        return {"samples_per_s": self.spec["batch"] * steps / sum(times),
                "p50_s": times[len(times) // 2],
                "p99_s": times[min(len(times) - 1, (99 * len(times)) // 100)]}

    def loss(self, images: Tensor, labels: Tensor) -> float:
        smoothing = self.spec.get("label_smoothing", 0.0)
        return functional.cross_entropy(self.outputs(images), labels,
                                        label_smoothing=smoothing).item()
