# SPDX-License-Identifier: Apache-2.0
"""Measures a group of sides in interleaved rounds on a machine that nobody else uses."""
from __future__ import annotations

import time
from dataclasses import dataclass, field

from .checks import Different
from .context import Context, Missing, say
from .groups import Group
from .machine import Spoiled, Watch
from .processes import Failed
from .sides import Side
from .statistics import Figure, result


@dataclass
class Outcome:
    """figures: entries of the JSON file; left_out: {row, work, why}."""

    figures: list[dict] = field(default_factory=list)
    left_out: list[dict] = field(default_factory=list)

    def leave_out(self, figures: list[Figure], why: str) -> None:
        for figure in figures:
            say(f"  left out: {figure.row}, {figure.work}: {why}")
            self.left_out.append({"row": figure.row, "work": figure.work, "why": why})

    def add(self, other: Outcome) -> None:
        self.figures += other.figures
        self.left_out += other.left_out


class Run:
    """One group, for the rows that were asked for."""

    def __init__(self, context: Context, group: Group, figures: list[Figure]) -> None:
        self.context = context
        self.group = group
        self.figures = figures
        self.sides: dict[str, Side] = {}
        self.notes: dict[str, str] = {}
        self.different: dict[str, str] = {}
        self.outcome = Outcome()

    def needed(self) -> list[str]:
        """Sides of the figures that are left, in the group's order."""
        wanted = {side for figure in self.figures for side in figure.sides}
        return [name for name in self.group.sides if name in wanted]

    def drop(self, side: str, why: str) -> None:
        self.outcome.leave_out([f for f in self.figures if side in f.sides], why)
        self.figures = [f for f in self.figures if side not in f.sides]
        if side in self.sides:
            self.sides.pop(side).stop()

    def make(self) -> None:
        """Ours first: without it there is nothing to compare, nor to prepare."""
        for name in self.needed():
            if name not in self.needed():
                continue  # its figures went with another side
            try:
                side = self.group.sides[name](self.context)
                side.start(self.context)
                self.sides[name] = side
            except (Missing, Failed) as problem:
                self.drop(name, str(problem))
        for name in set(self.sides) - set(self.needed()):
            self.sides.pop(name).stop()

    def check(self) -> None:
        for check in self.group.checks:
            if check.side not in self.sides:
                continue
            try:
                self.notes[check.side] = check.run(self.context)
                say(f"  check: {self.notes[check.side]}")
            except Different as different:
                self.different[check.side] = str(different)
                say(f"  check: {different}")
            except (Missing, Failed) as problem:
                self.drop(check.side, f"what the sides compute cannot be checked: {problem}")

    def measure_once(self, name: str) -> dict:
        own_s = self.context.processes.own_s
        watch = Watch(self.context.machine, own_s())
        measured = self.sides[name].measure(self.context)
        busy = watch.others(own_s())
        if busy.spoils:
            raise Spoiled(f"others kept {busy.cores:.2f} cores busy while {name} was measured")
        return measured

    def one_round(self, number: int) -> dict[str, dict]:
        """The order alternates, so that no side always comes after the same one."""
        order = [name for name in self.group.sides if name in self.sides]
        measured: dict[str, dict] = {}
        for name in order if number % 2 == 0 else reversed(order):
            try:
                measured[name] = self.measure_once(name)
            except Failed as failed:
                self.drop(name, f"failed: {failed}")
        return measured

    def rounds(self) -> list[dict[str, dict]]:
        """Throws Missing where others keep spoiling rounds."""
        done: list[dict[str, dict]] = []
        spoiled = 0
        while len(done) < self.context.rounds and self.figures:
            busy = self.context.why_not_idle()
            if busy:
                raise Missing(busy)
            try:
                done.append(self.one_round(len(done)))
                say(f"  round {len(done)} of {self.context.rounds}")
            except Spoiled as problem:
                spoiled += 1
                say(f"  a round is thrown away: {problem}")
                if spoiled > self.context.rounds:
                    raise Missing(f"other load on the machine: {spoiled} rounds were spoiled; "
                                  f"{problem}") from None
        return done

    def entry(self, figure: Figure, rounds: list[dict]) -> dict:
        ours, peer = figure.sides
        notes = [self.group.note(figure, rounds), self.notes.get(peer, "")]
        entry = result(figure, rounds, "; ".join(note for note in notes if note))
        if peer in self.different:
            entry["verdict"] = f"no verdict: {self.different[peer]}"
        return {**entry, "ours_command": self.sides[ours].text, "peer_is": self.sides[peer].text}

    def run(self) -> Outcome:
        try:
            self.group.require(self.context)
            with self.group.around(self.context):
                self.make()
                self.check()
                rounds = self.rounds()
            self.outcome.figures += [self.entry(figure, rounds) for figure in self.figures]
        except Missing as missing:
            self.outcome.leave_out(self.figures, str(missing))
        finally:
            for side in self.sides.values():
                side.stop()
        return self.outcome


def measure(context: Context, groups: list[Group], rows: set[str], limit_s: float) -> Outcome:
    """All figures of the rows; none of them: all. Groups that would begin after limit_s are left
    out."""
    outcome = Outcome()
    start = time.monotonic()
    for group in groups:
        figures = [f for f in group.figures if not rows or f.row in rows]
        if not figures:
            continue
        spent_s = time.monotonic() - start
        say(f"{group.name}: {', '.join(sorted({f.row for f in figures}))}  [{spent_s / 60:.0f} min]")
        if spent_s > limit_s:
            late = Outcome()
            late.leave_out(figures, f"the time is up ({limit_s / 60:.0f} minutes)")
            outcome.add(late)
            continue
        outcome.add(Run(context, group, figures).run())
    return outcome
