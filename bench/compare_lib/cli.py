# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/compare."""
from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from pathlib import Path

from .compute_rows import compute_groups
from .context import Context, Missing, say
from .exchange_rows import LARGE, exchange_groups
from .groups import Group
from .install import build, require_torch
from .machine import Machine
from .measure import measure
from .processes import Failed, Processes
from .report import make_report, page_of, parts_of_page, table, write_json, write_page
from .variants import WORKS, best_chunk, best_variant

ROWS = [f"C{k}" for k in range(1, 14)]
QUICK_LIMIT_S = 37 * 60.0  # the last group takes up to 3 minutes
EPILOG = """
Rows: C1 training, C2 against convolutions alone, C3 inference, C4 two ranks, C5 C6 their
efficiency, C7 C8 all-reduce, C9 across two hosts and small messages, C10 reading HDF5, C11 the
loader, C12 small networks, C13 memory. docs/performance.md explains each.

Exit codes: 0 measured (whatever the verdicts), 2 usage, 5 nothing could be measured.
Example: bench/compare --quick --json build/compare/figures.json --write-docs
"""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/compare", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures annulus against its best peers, side by side in one run.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="C1 to C13; none: all")
    parser.add_argument("--prepare", action="store_true",
                        help="only install, compile and look for each peer's best settings")
    parser.add_argument("--quick", action="store_true",
                        help="fewer steps: all rows in less than 40 minutes, once prepared")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="5 by default; fewer give no verdict")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--write-docs", action="store_true",
                        help="write the figures into docs/performance.md")
    parser.add_argument("--from", type=Path, dest="source", metavar="FILE",
                        help="show, or write the docs from, figures of an earlier run")
    parser.add_argument("--annulus", type=Path, metavar="PROGRAM",
                        help="measure this one instead of building one")
    parser.add_argument("--patience", type=float, default=60.0, metavar="S",
                        help="seconds to wait for an idle machine (60)")
    return parser


def read_report(parser: argparse.ArgumentParser, path: Path) -> dict:
    try:
        report = json.loads(path.read_text())
        return {**report, "figures": report["figures"], "left_out": report["left_out"]}
    except (OSError, ValueError, KeyError, TypeError):
        parser.error(f"--from: {path} is not a file of --json")


def parse(arguments: list[str], root: Path) -> argparse.Namespace:
    """Finds what cannot work before an hour of measuring."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    unknown = [row for row in options.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row '{unknown[0]}': rows are C1 to C13")
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: 1 at least")
    if options.annulus and not os.access(options.annulus, os.X_OK):
        parser.error(f"--annulus {options.annulus}: no such program")
    if options.write_docs and options.rows and not options.source:
        parser.error("--write-docs needs all rows: name none")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    if options.source:
        options.source = read_report(parser, options.source)
    if options.write_docs:
        try:
            parts_of_page(page_of(root))
        except (OSError, ValueError) as error:
            parser.error(str(error))
    return options


def make_context(root: Path, options: argparse.Namespace) -> Context:
    annulus = options.annulus or root / "build/compare/programs/annulus"
    return Context(root, Machine(), Processes(), annulus.resolve(), options.quick, options.rounds,
                   options.patience)


def prepare(context: Context, rows: set[str], groups: list[Group]) -> None:
    """All that measuring would otherwise have to do first."""
    require_torch(context)
    used = {group.name for group in groups for figure in group.figures
            if not rows or figure.row in rows}
    works = {"resnet50_two_ranks": "resnet50_ddp"}
    for group in sorted(used):
        name = works.get(group, group)
        try:
            if name in WORKS:
                best_variant(context, name)
            if group == "allreduce_node":
                for size in LARGE:
                    best_chunk(context, size)
        except (Missing, Failed) as problem:
            say(f"  not prepared: {name}: {problem}")


def compare(context: Context, options: argparse.Namespace, command: str) -> dict | None:
    """The report; none where the machine is only prepared."""
    rows = set(options.rows)
    context.cpus(2)  # with one core there is no figure at all
    build(context, with_annulus=options.annulus is None)
    groups = compute_groups(context.machine.has_avx512) + exchange_groups()
    if options.prepare:
        prepare(context, rows, groups)
        return None
    limit_s = QUICK_LIMIT_S if options.quick else float("inf")
    return make_report(context, measure(context, groups, rows, limit_s), command)


def finish(root: Path, options: argparse.Namespace, report: dict) -> int:
    print(table(report))
    if options.json:
        write_json(options.json, report)
    if options.write_docs:
        write_page(page_of(root), report, root)
    return 0 if report["figures"] else 5


def interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(root: Path, arguments: list[str]) -> int:
    options = parse(arguments, root)
    # So that programs and hosts that were started end with this one.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    if options.source:
        return finish(root, options, options.source)
    context = make_context(root, options)
    try:
        report = compare(context, options, shlex.join(["bench/compare", *arguments]))
        return 0 if report is None else finish(root, options, report)
    except (Missing, Failed) as problem:
        print(f"compare: nothing was measured: {problem}", file=sys.stderr)
        return 5
    except KeyboardInterrupt:
        print("compare: interrupted; nothing was written", file=sys.stderr)
        return 130
    finally:
        context.processes.close()
