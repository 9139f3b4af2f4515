# SPDX-License-Identifier: Apache-2.0
"""The table, the JSON file and the part of docs/performance.md that is written from it."""
from __future__ import annotations

import json
import platform
import subprocess
import time
from pathlib import Path

from .context import Context
from .measure import Outcome

BEGIN = "<!-- figures: written by bench/compare --write-docs -->"
END = "<!-- figures: end -->"


def row_key(entry: dict) -> int:
    return int(entry["row"][1:])


def number(value: float) -> str:
    """Three significant digits or more, never an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def must_text(entry: dict) -> str:
    sign = "<=" if entry["kind"] == "cost" else ">="
    return f"{sign} {entry['must']:.2f}"


def cells(entry: dict) -> list[str]:
    unit = entry["unit"]
    return [entry["row"], entry["work"], f"{number(entry['ours'])} {unit}",
            f"{number(entry['peer'])} {unit}", f"{entry['ratio']:.2f}",
            f"{100 * entry['ours_spread']:.0f} % {100 * entry['peer_spread']:.0f} %",
            must_text(entry), "" if entry["aim"] is None else f"{entry['aim']:.2f}",
            entry["verdict"]]


HEAD = ["row", "work", "ours", "peer", "ratio", "spread", "must reach", "aim", "verdict"]


def notes(report: dict) -> dict[str, str]:
    """Each note once, with the rows that it belongs to."""
    rows: dict[str, list[str]] = {}
    for entry in report["figures"]:
        if entry["note"]:
            rows.setdefault(entry["note"], []).append(entry["row"])
    return {note: ", ".join(dict.fromkeys(names)) for note, names in rows.items()}


def table(report: dict) -> str:
    """For a terminal."""
    lines = [HEAD, *(cells(entry) for entry in report["figures"])]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines]
    text += [f"note: {rows}: {note}" for note, rows in notes(report).items()]
    text += [f"left out: {entry['row']}, {entry['work']}: {entry['why']}"
             for entry in report["left_out"]]
    return "\n".join(text)


def versions(context: Context) -> dict[str, str]:
    def first_line(argv: list[str]) -> str:
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except OSError:
            return "none"
        return (done.stdout.strip().splitlines() or ["unknown"])[0]

    return {"annulus": first_line([str(context.annulus), "--version"]),
            "PyTorch": context.memo.get("torch", "none"),
            "MPI": first_line(["mpirun", "--version"]), "kernel": platform.release()}


def make_report(context: Context, outcome: Outcome, command: str) -> dict:
    return {
        "date": time.strftime("%Y-%m-%d"), "command": command, "rounds": context.rounds,
        "quick": context.quick, "processor": context.machine.processor,
        "cores": len(context.machine.cores), "avx512": context.machine.has_avx512,
        "versions": versions(context),
        "figures": sorted(outcome.figures, key=row_key),
        "left_out": sorted(outcome.left_out, key=row_key),
    }


# ---------------------------------------------------------------- docs/performance.md
def markdown_table(head: list[str], lines: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines]]


def as_in_the_tree(command: str, root: Path) -> str:
    """Without the paths of the machine."""
    return command.replace(str(root) + "/", "")


def page_lines(report: dict, root: Path) -> list[str]:
    isa = "with AVX-512" if report["avx512"] else "without AVX-512"
    lines = [
        BEGIN, "",
        f"Measured {report['date']} on {report['processor']}, {report['cores']} cores, {isa}, with "
        f"`{as_in_the_tree(report['command'], root)}`: medians of {report['rounds']} interleaved "
        "rounds; the spread is that of ours and of the peer, from least to most. "
        + "; ".join(f"{name}: {text}" for name, text in report["versions"].items()) + ".", ""]
    lines += markdown_table(HEAD, [cells(entry) for entry in report["figures"]])
    if report["left_out"]:
        lines += ["", "Left out:", ""]
        lines += [f"- {entry['row']}, {entry['work']}: {entry['why']}"
                  for entry in report["left_out"]]
    if notes(report):
        lines += ["", "Notes:", ""]
        lines += [f"- {rows}: {note}" for note, rows in notes(report).items()]
    lines += ["", "What was run:", ""]
    lines += [f"- {entry['row']}, {entry['work']}: "
              f"`{as_in_the_tree(entry['ours_command'], root)}`; "
              f"{as_in_the_tree(entry['peer_is'], root)}" for entry in report["figures"]]
    return [*lines, "", END]


def page_of(root: Path) -> Path:
    return root / "docs" / "performance.md"


def parts_of_page(page: Path) -> tuple[str, str]:
    """What stands before and after the two marks. Throws ValueError where they are missing."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} lacks the lines '{BEGIN}' and '{END}'")
    return before, after


def write_page(page: Path, report: dict, root: Path) -> None:
    """Replaces what stands between the two marks."""
    before, after = parts_of_page(page)
    page.write_text(before + "\n".join(page_lines(report, root)) + after)


def write_json(path: Path, report: dict) -> None:
    path.write_text(json.dumps(report, indent=1) + "\n")
