# SPDX-License-Identifier: Apache-2.0
"""Losses of PyTorch from a checkpoint of annulus on the same samples in the same order."""
from __future__ import annotations

import h5py
import numpy
import torch
from torch import Tensor, nn

from training import Predictor, Trainer

# Ends of names in a checkpoint, and in PyTorch.
ENDS = {"weight": "weight", "bias": "bias", "scale": "weight", "shift": "bias",
        "running_mean": "running_mean", "running_variance": "running_var"}


def read_tensors(path: str) -> dict[str, Tensor]:
    """All tensors of tensors.h5 by name."""
    tensors: dict[str, Tensor] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
            tensors[name] = torch.from_numpy(numpy.asarray(item[()]))

    with h5py.File(path) as file:
        file.visititems(visit)
    return tensors


def name_in_torch(name: str) -> str:
    layer, end = name.rsplit("/", 1)
    return f"{layer}.{ENDS[end]}"


def load(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    state = {name_in_torch(name): value for name, value in tensors.items()
             if not name.startswith("optimizer/")}
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or unexpected:
        raise ValueError(f"the networks differ: missing {missing}, unexpected {unexpected}")


def load_velocity(trainer: Trainer, tensors: dict[str, Tensor]) -> None:
    prefix = "optimizer/velocity/"
    velocity = {name_in_torch(name[len(prefix):]): value for name, value in tensors.items()
                if name.startswith(prefix)}
    for name, parameter in trainer.raw.named_parameters():
        buffer = torch.empty_like(parameter).copy_(velocity[name])
        trainer.optimizer.state[parameter]["momentum_buffer"] = buffer


def read_samples(path: str, part: str, first: int, count: int) -> tuple[Tensor, Tensor]:
    with h5py.File(path) as file:
        images = torch.from_numpy(file[f"{part}/images"][first:first + count].astype("float32"))
        labels = torch.from_numpy(file[f"{part}/labels"][first:first + count].astype("int64"))
    return images, labels


def normalised(images: Tensor, data: dict) -> Tensor:
    """data: scale, and mean and std of each channel, as in the config."""
    mean = torch.tensor(data["mean"]).view(1, -1, 1, 1)
    std = torch.tensor(data["std"]).view(1, -1, 1, 1)
    return (images * data["scale"] - mean) / std


def training_losses(spec: dict) -> list[float]:
    """spec: a Trainer's, and checkpoint, file, data, first (sample), steps."""
    trainer = Trainer(spec)
    tensors = read_tensors(spec["checkpoint"])
    load(trainer.raw, tensors)
    load_velocity(trainer, tensors)
    losses = []
    for k in range(spec["steps"]):
        images, labels = read_samples(spec["file"], "train", spec["first"] + k * spec["batch"],
                                      spec["batch"])
        images = normalised(images, spec["data"]).contiguous(
            memory_format=torch.channels_last if spec["variant"].get("layout") == "channels_last"
            else torch.contiguous_format)
        losses.append(trainer.step(images, labels).item())
    return losses


def test_loss(spec: dict) -> list[float]:
    """spec: a Predictor's, and checkpoint, file, data; the first batch of the test part."""
    predictor = Predictor(spec)
    load(predictor.raw, read_tensors(spec["checkpoint"]))
    images, labels = read_samples(spec["file"], "test", 0, spec["batch"])
    return [predictor.loss(normalised(images, spec["data"]), labels)]
