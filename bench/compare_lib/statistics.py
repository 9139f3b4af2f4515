# SPDX-License-Identifier: Apache-2.0
"""Medians, spreads and verdicts."""
from __future__ import annotations

import statistics
from dataclasses import dataclass

LARGEST_SPREAD = 0.15
LEAST_ROUNDS = 5


@dataclass(frozen=True)
class Figure:
    """One line of the table. ours and peer: 'SIDE value' of a measurement.

    kind: rate (ours / peer, the more the better), time (peer / ours, the more the better), cost
    (ours / peer, the less the better).
    """

    row: str
    work: str
    ours: str
    peer: str
    kind: str
    must: float
    aim: float | None
    scale: float = 1.0
    unit: str = "samples/s"

    @property
    def sides(self) -> tuple[str, str]:
        return self.ours.split()[0], self.peer.split()[0]


def spread(values: list[float]) -> float:
    """From the least to the most, as a share of the median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle > 0 else float("inf")


def ratios(figure: Figure, ours: list[float], peer: list[float]) -> list[float]:
    """Of each round."""
    if figure.kind == "time":
        return [b / a for a, b in zip(ours, peer)]
    return [a / b for a, b in zip(ours, peer)]


def verdict(figure: Figure, ours: list[float], peer: list[float]) -> str:
    if len(ours) < LEAST_ROUNDS:
        return f"no verdict: fewer than {LEAST_ROUNDS} rounds"
    for name, values in (("ours", ours), ("the peer", peer)):
        if spread(values) > LARGEST_SPREAD:
            return f"no verdict: {name} alone spreads {100 * spread(values):.0f} %"
    ratio = statistics.median(ratios(figure, ours, peer))

    def passes(limit: float) -> bool:
        return ratio <= limit if figure.kind == "cost" else ratio >= limit

    if not passes(figure.must):
        return "below"
    return "reached, and the aim" if figure.aim is not None and passes(figure.aim) else "reached"


def result(figure: Figure, rounds: list[dict[str, dict]], note: str) -> dict:
    """A figure's entry of the JSON file. rounds: what each side measured, by round."""
    def values(place: str) -> list[float]:
        side, value = place.split()
        return [float(measured[side][value]) for measured in rounds]

    ours, peer = values(figure.ours), values(figure.peer)
    each = ratios(figure, ours, peer)
    return {
        "row": figure.row, "work": figure.work, "kind": figure.kind, "unit": figure.unit,
        "ours": statistics.median(ours) * figure.scale,
        "peer": statistics.median(peer) * figure.scale,
        "ours_spread": spread(ours), "peer_spread": spread(peer),
        "ratio": statistics.median(each), "ratios": each, "rounds": len(rounds),
        "must": figure.must, "aim": figure.aim,
        "verdict": verdict(figure, ours, peer), "note": note,
    }
