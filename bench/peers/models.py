# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/compare in PyTorch, with the layers' names of annulus's checkpoints."""
from __future__ import annotations

import torch
from torch import Tensor, nn


class Bottleneck(nn.Module):
    """Residual block of ResNet-50 v1.5 (the stride is in the 3x3 convolution)."""

    def __init__(self, inputs: int, width: int, stride: int, project: bool) -> None:
        super().__init__()
        outputs = 4 * width
        if project:
            self.project = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(inputs, width, 1, bias=False)
        self.batch_norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.batch_norm3 = nn.BatchNorm2d(width)
        self.conv4 = nn.Conv2d(width, outputs, 1, bias=False)
        self.batch_norm4 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.projects = project

    def forward(self, x: Tensor) -> Tensor:
        shortcut = self.shortcut(self.project(x)) if self.projects else x
        y = self.relu(self.batch_norm2(self.conv2(x)))
        y = self.relu(self.batch_norm3(self.conv3(y)))
        y = self.batch_norm4(self.conv4(y))
        y += shortcut
        return self.relu(y)


def stage(inputs: int, width: int, repeat: int, stride: int) -> nn.Sequential:
    first = Bottleneck(inputs, width, stride, project=True)
    return nn.Sequential(first, *(Bottleneck(4 * width, width, 1, False) for _ in range(repeat - 1)))


class ResNet50(nn.Module):
    """configs/imagenet_resnet50.toml."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.batch_norm1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.max_pool = nn.MaxPool2d(3, 2, padding=1)
        self.stage1 = stage(64, 64, 3, 1)
        self.stage2 = stage(256, 128, 4, 2)
        self.stage3 = stage(512, 256, 6, 2)
        self.stage4 = stage(1024, 512, 3, 2)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.linear1 = nn.Linear(2048, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.max_pool(self.relu(self.batch_norm1(self.conv1(x))))
        x = self.stage4(self.stage3(self.stage2(self.stage1(x))))
        return self.linear1(torch.flatten(self.average(x), 1))


class SmallCnn(nn.Module):
    """bench/configs/small_cnn.toml, for square images of one channel."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.max_pool = nn.MaxPool2d(2)
        self.linear1 = nn.Linear(64 * (size // 4) ** 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.max_pool(self.relu(self.conv1(x)))
        x = self.max_pool(self.relu(self.conv2(x)))
        return self.linear1(torch.flatten(x, 1))


def make_model(name: str, shape: list[int]) -> nn.Module:
    """name: resnet50 or small_cnn; shape: [channels, height, width] of an image."""
    torch.manual_seed(1)
    if name == "resnet50":
        return ResNet50()
    if name == "small_cnn":
        return SmallCnn(shape[1])
    raise ValueError(f"no model '{name}'")
