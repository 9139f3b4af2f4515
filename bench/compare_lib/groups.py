# SPDX-License-Identifier: Apache-2.0
"""Sides that are measured in the same rounds, and the figures that come from them."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Callable

from .context import Context
from .sides import Side
from .statistics import Figure


@dataclass(frozen=True)
class Check:
    """Whether a side computes what ours does; gives a line that says so, or throws Different."""

    side: str
    run: Callable[[Context], str]


@dataclass
class Group:
    """sides: makers by name; a maker throws Missing where its side is not to be had."""

    name: str
    figures: list[Figure]
    sides: dict[str, Callable[[Context], Side]]
    checks: list[Check] = field(default_factory=list)
    require: Callable[[Context], None] = lambda context: None
    around: Callable[[Context], AbstractContextManager] = lambda context: nullcontext()
    note: Callable[[Figure, list[dict]], str] = lambda figure, rounds: ""


def data_wait(figure: Figure, rounds: list[dict]) -> str:
    """What the loader costs, in the engine's own words."""
    shares = sorted(measured[figure.sides[0]]["data_share"] for measured in rounds)
    share = 100 * shares[len(shares) // 2]
    if share >= 10:
        return f"input bound: {share:.0f}% of step time waiting for data"
    return f"data wait {share:.1f}% of the step"
