#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare on a pretended machine with pretended programs."""
import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from compare_lib import checks, compute_rows, exchange_rows, install, report  # noqa: E402
from compare_lib import sides, variants  # noqa: E402
from compare_lib import statistics as figures  # noqa: E402
from compare_lib.cli import main  # noqa: E402
from compare_lib.context import Context, Missing  # noqa: E402
from compare_lib.groups import Check, Group  # noqa: E402
from compare_lib.machine import Machine, Watch, why_not_idle  # noqa: E402
from compare_lib.measure import Run  # noqa: E402
from compare_lib.processes import Command, Failed, Processes  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
AVX512 = "fpu avx2 avx512f avx512bw avx512dq avx512vl"
IDLE = "cpu  100 0 50 1000 0 7 7 0 0 0\n"


def step_json(step_s: float, data_s: float) -> str:
    def part(value: float) -> dict:
        return {"median": value, "min": value, "max": value, "mean": value}
    return json.dumps({"samples_per_s": 16 / step_s, "step_s": part(step_s), "data_s": part(data_s),
                       "peak_rss_bytes": 1_000_000})


class Pretended(unittest.TestCase):
    """A machine of two idle cores, and a folder for programs."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.proc = self.folder / "proc"
        self.proc.mkdir()
        self.kernel(cpuinfo=f"model name\t: Test CPU\nflags\t\t: {AVX512}\n", stat=IDLE,
                    meminfo="MemAvailable:   64000000 kB\n", loadavg="0.00 0.00 0.00 1/100 1\n")
        # Processors may be others than 0 and 1 where the tests run.
        self.program("taskset", 'shift 2; exec "$@"')
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{self.folder}:{path}"
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        self.processes = Processes()
        self.addCleanup(self.processes.close)
        self.machine = Machine(self.proc, self.folder / "sys", {0, 1})
        self.context = Context(self.folder, self.machine, self.processes, self.folder / "annulus",
                               quick=True, patience_s=0, look_s=0.01)

    def kernel(self, **files: str) -> None:
        for name, text in files.items():
            (self.proc / name).write_text(text)

    def program(self, name: str, body: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run_group(self, group: Group):
        with contextlib.redirect_stderr(io.StringIO()):
            return Run(self.context, group, group.figures).run()

    def step_group(self) -> Group:
        """The row of the loader on digits: annulus on both sides."""
        return next(group for group in compute_rows.compute_groups(True)
                    if group.name == "digits_loader")


class Rows(Pretended):
    def test_B76_an_input_bound_step_says_so(self) -> None:
        self.program("annulus", f"""
if [[ "$*" == *synthetic* ]]; then echo '{step_json(0.02, 0.0)}'; else
echo '{step_json(0.08, 0.06)}'; fi""")
        outcome = self.run_group(self.step_group())
        self.assertEqual(outcome.left_out, [])
        (entry,) = outcome.figures
        self.assertEqual(entry["note"], "input bound: 75% of step time waiting for data")
        self.assertAlmostEqual(entry["ratio"], 4.0)
        self.assertEqual(entry["verdict"], "below")
        self.assertEqual((entry["ours"], entry["peer"], entry["unit"]), (80.0, 20.0, "ms"))

    def test_B76_a_loader_that_keeps_up_is_not_called_input_bound(self) -> None:
        self.program("annulus", f"echo '{step_json(0.1, 0.001)}'")
        (entry,) = self.run_group(self.step_group()).figures
        self.assertEqual(entry["note"], "data wait 1.0% of the step")
        self.assertEqual(entry["verdict"], "reached, and the aim")

    def test_a_row_that_the_build_cannot_run_is_left_out(self) -> None:
        self.program("annulus", "printf 'Subcommands:\\n  step  a step\\n'")
        outcome = self.run_group(exchange_rows.node_group())
        self.assertEqual(outcome.figures, [])
        self.assertEqual({entry["why"] for entry in outcome.left_out},
                         {"this build has no 'bench allreduce'"})
        self.assertEqual([entry["row"] for entry in outcome.left_out], ["C7", "C7", "C8", "C8"])

    def test_a_side_that_fails_takes_its_figures_only(self) -> None:
        outcome = self.run_group(Group(
            "x", [figures.Figure("C1", "a", "ours v", "good v", "rate", 1.0, None),
                  figures.Figure("C2", "b", "ours v", "bad v", "rate", 1.0, None)],
            {"ours": lambda c: Fixed({"v": 2.0}), "bad": lambda c: Fixed(Failed("it broke")),
             "good": lambda c: Fixed({"v": 1.0})}))
        self.assertEqual([entry["work"] for entry in outcome.figures], ["a"])
        self.assertEqual(outcome.left_out, [{"row": "C2", "work": "b", "why": "failed: it broke"}])

    def test_the_order_of_rounds_alternates(self) -> None:
        order: list[str] = []
        self.run_group(Group(
            "x", [figures.Figure("C1", "a", "ours v", "peer v", "rate", 1.0, None)],
            {"ours": lambda c: Fixed({"v": 1.0}, order, "o"),
             "peer": lambda c: Fixed({"v": 1.0}, order, "p")}))
        self.assertEqual("".join(order), "oppooppoop")

    def test_sides_that_compute_different_things_get_no_verdict(self) -> None:
        def different(context: Context) -> str:
            raise checks.Different("annulus 1.0; PyTorch 2.0")
        (entry,) = self.run_group(Group(
            "x", [figures.Figure("C1", "a", "ours v", "peer v", "rate", 1.0, None)],
            {"ours": lambda c: Fixed({"v": 2.0}), "peer": lambda c: Fixed({"v": 1.0})},
            [Check("peer", different)])).figures
        self.assertEqual(entry["verdict"], "no verdict: annulus 1.0; PyTorch 2.0")


class Variants(Pretended):
    """The search for a peer's best settings, with pretended speeds."""

    NAME = "small_cnn_28_1"

    def setUp(self) -> None:
        super().setUp()
        self.context.memo["torch"] = "9.9"
        self.tried: list[dict] = []

    def find(self, speed) -> dict:
        def rate_of(context: Context, work: variants.Work, variant: dict) -> float:
            self.tried.append(variant)
            return speed(variant)
        with contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(variants, "rate_of", rate_of):
            return variants.best_variant(self.context, self.NAME)

    @staticmethod
    def speed(variant: dict) -> float:
        """Compiled fails; contiguous, not fused, huge pages is the best."""
        if variant["compile"]:
            return 0.0
        return (100 + 10 * (variant["layout"] == "contiguous") + 5 * (not variant["fused"])
                + 2 * (variant["malloc"] == "tuned, huge pages"))

    def test_each_stage_starts_from_the_best_so_far(self) -> None:
        self.assertEqual(self.find(self.speed),
                         {"layout": "contiguous", "compile": False, "fused": False,
                          "malloc": "tuned, huge pages"})
        self.assertEqual(len(self.tried), 6)

    def test_what_was_found_is_kept_for_this_processor_and_version(self) -> None:
        found = self.find(self.speed)
        self.tried.clear()
        self.assertEqual(self.find(self.speed), found)
        self.assertEqual(self.tried, [])
        self.kernel(cpuinfo="model name\t: Other CPU\n")
        self.find(self.speed)
        self.assertEqual(len(self.tried), 6)
        self.context.memo["torch"] = "10.0"
        self.find(self.speed)
        self.assertEqual(len(self.tried), 12)

    def test_a_search_that_was_stopped_goes_on(self) -> None:
        def stop(variant: dict) -> float:
            if len(self.tried) == 4:
                raise Missing("other load")
            return self.speed(variant)
        with self.assertRaises(Missing):
            self.find(stop)
        self.assertEqual(self.find(self.speed)["malloc"], "tuned, huge pages")
        self.assertEqual(len(self.tried), 4 + 3)

    def test_a_peer_that_never_works_is_not_to_be_had(self) -> None:
        with self.assertRaisesRegex(Missing, "no variant of the peer works"):
            self.find(lambda variant: 0.0)


class Fixed(sides.Side):
    """Measures always the same, or fails."""

    def __init__(self, value, order: list[str] | None = None, name: str = "") -> None:
        self.value, self.order, self.name = value, order, name

    def measure(self, context: Context) -> dict:
        if self.order is not None:
            self.order.append(self.name)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class BadMachines(Pretended):
    def test_rounds_that_others_spoil_give_no_figure(self) -> None:
        # While it runs, others use both cores for ten seconds.
        self.program("annulus", f"""
read -r _ user rest <'{self.proc}/stat'
echo "cpu  $((user + 1000)) $rest" >'{self.proc}/stat'
echo '{step_json(0.1, 0.0)}'""")
        outcome = self.run_group(self.step_group())
        self.assertEqual(outcome.figures, [])
        (left_out,) = outcome.left_out
        self.assertIn("other load on the machine: 6 rounds were spoiled", left_out["why"])

    def test_a_busy_machine_is_refused_before_a_row(self) -> None:
        self.program("annulus", f"echo '{step_json(0.1, 0.0)}'")
        machine = BusyMachine(self.proc, self.folder / "sys", {0, 1})
        self.context.machine = machine
        (left_out,) = self.run_group(self.step_group()).left_out
        self.assertRegex(left_out["why"], r"^other load on the machine: [0-9.]+ cores are busy")
        self.assertIn("load average 0.00", left_out["why"])

    def test_our_own_time_is_not_other_load(self) -> None:
        watch = Watch(self.machine, own_s=5.0)
        self.kernel(stat="cpu  1100 0 50 1000 0 7 7 0 0 0\n")  # ten seconds more
        self.assertFalse(watch.others(own_s=15.0).spoils)
        self.assertTrue(watch.others(own_s=5.0).spoils)

    def test_time_taken_by_other_virtual_machines_is_load(self) -> None:
        watch = Watch(self.machine, own_s=0.0)
        self.kernel(stat="cpu  100 0 50 1000 0 7 7 500 0 0\n")
        self.assertTrue(watch.others(own_s=0.0).spoils)

    def test_an_idle_machine_is_idle(self) -> None:
        self.assertIsNone(why_not_idle(self.machine, lambda: 0.0, 0.0, 0.01))

    def test_the_time_of_children_is_counted_as_our_own(self) -> None:
        before = self.processes.own_s()
        busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        # It outlives its parent, as a launcher's daemon does.
        self.processes.run([Command(["bash", "-c", '"$@" &', "bash", sys.executable, "-c", busy])],
                           60)
        deadline = time.monotonic() + 60
        while self.processes.own_s() - before < 0.3 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertGreaterEqual(self.processes.own_s() - before, 0.3)

    def test_one_core_measures_nothing(self) -> None:
        self.machine.allowed = {0}
        self.program("annulus", f"echo '{step_json(0.1, 0.0)}'")
        (left_out,) = self.run_group(self.step_group()).left_out
        self.assertEqual(left_out["why"], "it needs 2 cores, and this process may use 1")

    def test_two_threads_of_a_core_are_one_core(self) -> None:
        for cpu in (0, 1):
            topology = self.folder / f"sys/devices/system/cpu/cpu{cpu}/topology"
            topology.mkdir(parents=True)
            (topology / "thread_siblings_list").write_text("0-1\n")
        self.assertEqual(self.machine.cores, [0])

    def test_too_little_memory_leaves_the_row_out(self) -> None:
        self.kernel(meminfo="MemAvailable:   2000000 kB\n")
        outcome = self.run_group(compute_rows.train_group(False, True))
        self.assertEqual(outcome.figures, [])
        self.assertEqual({entry["why"] for entry in outcome.left_out},
                         {"it needs 10.0 GB of memory, and 2.0 GB are available"})

    def test_without_pytorch_the_rows_that_need_it_say_so(self) -> None:
        self.program("build/compare/venv/bin/python", "echo 'no route to the index' >&2; exit 1")
        self.program("annulus", f"echo '{step_json(0.1, 0.0)}'")
        outcome = self.run_group(compute_rows.small_cnn_group(28, 1, 1.2, 1.6))
        self.assertEqual(outcome.figures, [])
        self.assertEqual([entry["why"] for entry in outcome.left_out],
                         ["no PyTorch to be had: pip install: no route to the index"])
        with self.assertRaisesRegex(Missing, "no route to the index"):
            install.require_torch(self.context)

    def test_without_avx512_the_figures_with_avx2_stand_in(self) -> None:
        self.kernel(cpuinfo="model name\t: Old CPU\nflags\t\t: fpu avx2\n")
        self.assertFalse(self.machine.has_avx512)
        outcome = self.run_group(compute_rows.train_group(False, False))
        self.assertEqual({entry["why"] for entry in outcome.left_out},
                         {"no AVX-512 on this processor: see the figures with AVX2"})
        rows = [figure.row for figure in compute_rows.train_group(True, False).figures]
        self.assertEqual(rows, ["C1", "C1", "C2", "C13"])

    def test_no_figure_at_all_is_an_exit_code_of_its_own(self) -> None:
        empty = self.folder / "empty.json"
        empty.write_text(json.dumps({"figures": [], "left_out": [
            {"row": "C1", "work": "training", "why": "one core"}]}))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(main(self.folder, ["--from", str(empty)]), 5)
        self.assertIn("left out: C1, training: one core", out.getvalue())

    def test_what_cannot_be_done_is_said_before_anything_is_measured(self) -> None:
        broken = self.folder / "broken.json"
        broken.write_text("{")
        for arguments, message in (
                (["C14"], "no row 'C14'"), (["--rounds", "0"], "--rounds 0: 1 at least"),
                (["--annulus", "nowhere"], "--annulus nowhere: no such program"),
                (["--json", "no/such/folder/x.json"], "no folder no/such/folder"),
                (["--from", str(broken)], "broken.json is not a file of --json"),
                (["--write-docs", "C1"], "--write-docs needs all rows"),
                (["--write-docs"], "performance.md")):
            with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()) as errors:
                with self.assertRaises(SystemExit) as end:
                    main(self.folder, arguments)
                self.assertEqual(end.exception.code, 2)
                self.assertIn(message, errors.getvalue())


class BusyMachine(Machine):
    """Others use its two cores all the time."""

    def busy_s(self) -> float:
        self.calls = getattr(self, "calls", 0) + 1
        return 100.0 * self.calls


class Programs(Pretended):
    def test_a_program_that_fails_is_quoted(self) -> None:
        program = self.program("broken", "echo 'disk is full' >&2; exit 4")
        with self.assertRaisesRegex(Failed, "exit code 4: disk is full"):
            self.processes.run([Command([str(program)])], 60)

    def test_a_program_that_does_not_end_is_ended(self) -> None:
        program = self.program("stuck", "sleep 1000")
        with self.assertRaisesRegex(Failed, "no end after 0 s"):
            self.processes.run([Command([str(program)])], 0.2)

    def test_a_worker_that_dies_is_quoted(self) -> None:
        program = self.program("dying", "echo '{\"ready\": true}'; read -r; echo 'oh no' >&2; exit 1")
        worker = self.processes.start_worker(Command([str(program)]))
        self.assertEqual(worker.receive(60), {"ready": True})
        worker.send({"steps": 1})
        with self.assertRaisesRegex(Failed, "it has ended: oh no"):
            worker.receive(60)

    def test_wrong_sums_are_a_failure(self) -> None:
        line = {"bytes": 8, "time_s": 1e-6, "wrong": 0}
        self.assertEqual(sides.read_allreduce([json.dumps(line)]), {"time_s/8": 1e-6})
        with self.assertRaisesRegex(Failed, "3 sums"):
            sides.read_allreduce([json.dumps({**line, "wrong": 3})])

    def test_losses_must_agree(self) -> None:
        self.assertIn("agree to 5.0e-04", checks.compare("losses", [2.001], [2.0]))
        for ours in (2.003, float("nan")):
            with self.assertRaises(checks.Different):
                checks.compare("losses", [2.0, ours], [2.0, 2.0])


class Verdicts(unittest.TestCase):
    def verdict(self, kind: str, ours: list[float], peer: list[float], must: float,
                aim: float | None) -> str:
        return figures.verdict(figures.Figure("C1", "w", "a v", "b v", kind, must, aim), ours, peer)

    def test_rates_times_and_costs(self) -> None:
        two, three = [2.0] * 5, [3.0] * 5
        self.assertEqual(self.verdict("rate", three, two, 1.5, 1.6), "reached")
        self.assertEqual(self.verdict("rate", three, two, 1.51, 1.6), "below")
        self.assertEqual(self.verdict("rate", three, two, 1.4, 1.5), "reached, and the aim")
        self.assertEqual(self.verdict("time", two, three, 1.5, None), "reached")
        self.assertEqual(self.verdict("time", three, two, 0.7, 0.8), "below")
        self.assertEqual(self.verdict("cost", two, three, 0.7, 0.6), "reached")
        self.assertEqual(self.verdict("cost", three, two, 0.7, 0.6), "below")

    def test_a_side_that_spreads_more_than_15_percent_gives_no_verdict(self) -> None:
        steady, wild = [100.0] * 5, [100.0, 100.0, 100.0, 92.0, 108.0]
        self.assertEqual(self.verdict("rate", wild, steady, 0.5, None),
                         "no verdict: ours alone spreads 16 %")
        self.assertEqual(self.verdict("rate", steady, wild, 0.5, None),
                         "no verdict: the peer alone spreads 16 %")
        self.assertEqual(self.verdict("rate", [100.0, 100, 100, 93, 108], steady, 0.5, None),
                         "reached")

    def test_few_rounds_give_no_verdict(self) -> None:
        self.assertEqual(self.verdict("rate", [3.0] * 4, [2.0] * 4, 1.0, None),
                         "no verdict: fewer than 5 rounds")

    def test_the_ratio_is_the_median_of_the_rounds(self) -> None:
        figure = figures.Figure("C7", "w", "ours t", "peer t", "time", 1.0, None, 1e3, "ms")
        rounds = [{"ours": {"t": a}, "peer": {"t": b}}
                  for a, b in ((1.0, 2.0), (1.0, 3.0), (2.0, 2.0))]
        entry = figures.result(figure, rounds, "")
        self.assertEqual((entry["ratios"], entry["ratio"]), ([2.0, 3.0, 1.0], 2.0))
        self.assertEqual((entry["ours"], entry["peer"]), (1000.0, 2000.0))


class Page(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "performance.md"
        figure = figures.Figure("C1", "training", "ours v", "peer v", "rate", 1.4, 1.6)
        entry = figures.result(figure, [{"ours": {"v": 3.0}, "peer": {"v": 2.0}}] * 5, "a note")
        self.report = {
            "date": "2026-01-02", "command": "bench/compare --quick", "rounds": 5, "quick": True,
            "processor": "Test CPU", "cores": 2, "avx512": False, "versions": {"MPI": "4.1"},
            "figures": [{**entry, "ours_command": "/tree/build/annulus", "peer_is": "PyTorch"}],
            "left_out": [{"row": "C9", "work": "hosts", "why": "not root"}]}

    def test_only_what_is_between_the_marks_is_written(self) -> None:
        self.page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
        report.write_page(self.page, self.report, Path("/tree"))
        text = self.page.read_text()
        self.assertTrue(text.startswith(f"before\n{report.BEGIN}\n"))
        self.assertTrue(text.endswith(f"{report.END}\nafter\n"))
        for part in ("2026-01-02 on Test CPU, 2 cores, without AVX-512", "`bench/compare --quick`",
                     "| C1 | training | 3.00 samples/s | 2.00 samples/s | 1.50 | 0 % 0 % | >= 1.40 "
                     "| 1.60 | reached |", "C9, hosts: not root", "MPI: 4.1", "`build/annulus`",
                     "a note"):
            self.assertIn(part, text)
        self.assertNotIn("old", text)
        report.write_page(self.page, self.report, Path("/tree"))
        self.assertEqual(self.page.read_text(), text)

    def test_a_page_without_marks_is_left_alone(self) -> None:
        self.page.write_text("nothing here\n")
        with self.assertRaisesRegex(ValueError, "lacks the lines"):
            report.write_page(self.page, self.report, Path("/tree"))
        self.assertEqual(self.page.read_text(), "nothing here\n")

    def test_the_page_of_the_tree_has_its_marks(self) -> None:
        text = (ROOT / "docs" / "performance.md").read_text()
        self.assertEqual((text.count(report.BEGIN), text.count(report.END)), (1, 1))


if __name__ == "__main__":
    unittest.main()
