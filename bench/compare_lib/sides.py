# SPDX-License-Identifier: Apache-2.0
"""The sides of a comparison: annulus, programs, and peers in PyTorch that stay warm."""
from __future__ import annotations

import json
import socket
from typing import Callable

from .context import AVX2_ENV, Context, Missing
from .processes import Command, Failed, Worker, json_lines, only_json

RUN_TIMEOUT_S = 300.0
START_TIMEOUT_S = 900.0  # torch.compile on a slow machine

TUNED_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184",
                "MALLOC_TOP_PAD_": "268435456"}
MALLOCS = {
    "default": {},
    "tuned": TUNED_MALLOC,
    "tuned, huge pages": {**TUNED_MALLOC, "THP_MEM_ALLOC_ENABLE": "1",
                          "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
}


class Side:
    """One that is measured in every round."""

    text = ""  # what is run, for the page

    def start(self, context: Context) -> None:
        """Before the first round. Throws Missing or Failed."""

    def measure(self, context: Context) -> dict:
        """Values by name."""
        raise NotImplementedError

    def stop(self) -> None:
        pass


class Program(Side):
    """Programs that are started in each round, all at the same time."""

    def __init__(self, commands: list[Command], read: Callable[[list[str]], dict],
                 require: Callable[[Context], None] = lambda context: None) -> None:
        self._commands = commands
        self._read = read
        self._require = require
        self.text = " & ".join(" ".join(command.argv) for command in commands)

    def start(self, context: Context) -> None:
        self._require(context)

    def measure(self, context: Context) -> dict:
        return self._read(context.processes.run(self._commands, RUN_TIMEOUT_S))


def read_steps(outputs: list[str]) -> dict:
    """`annulus bench step` of one job, or of several that ran at once."""
    jobs = [only_json(output) for output in outputs]
    first = jobs[0]
    return {"samples_per_s": sum(job["samples_per_s"] for job in jobs),
            "step_s": first["step_s"]["mean"],
            "data_share": first["data_s"]["mean"] / first["step_s"]["mean"],
            "peak_rss_bytes": first["peak_rss_bytes"]}


def read_one(outputs: list[str]) -> dict:
    return only_json(outputs[0])


def read_allreduce(outputs: list[str]) -> dict:
    """Times by size; several lines of a size (chunks) are kept apart by the caller."""
    lines = json_lines(outputs[0])
    if not lines:
        raise Failed("no JSON in the output of the all-reduce")
    wrong = sum(line["wrong"] for line in lines)
    if wrong:
        raise Failed(f"{wrong} sums of the all-reduce are wrong")
    return {f"time_s/{line['bytes']}": line["time_s"] for line in lines}


def bench_step(context: Context, config: str, sets: list[str], *, ranks: int = 1, threads: int,
               copies: int = 1, steps: int, warmup: int, avx2: bool = False) -> Program:
    """annulus on cores of its own: ranks in one job, or copies of a job of one rank."""
    argv = [str(context.annulus), "bench", "step", str(context.root / config), "--json",
            "--steps", str(steps), "--warmup", str(warmup)]
    for setting in [f"threads={threads}", *sets]:
        argv += ["--set", setting]
    env = {"ONEDNN_MAX_CPU_ISA": AVX2_ENV["ONEDNN_MAX_CPU_ISA"]} if avx2 else {}
    cpus = context.cpus(ranks * threads * copies)
    if ranks > 1:
        return Program([context.mpirun(ranks, argv, cpus, env=env)], read_steps)
    shares = [cpus[k * threads:(k + 1) * threads] for k in range(copies)]
    return Program([Command(argv, env, share) for share in shares], read_steps)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Torch(Side):
    """PyTorch in one process, or one a rank; each has its own cores. They stay alive between
    rounds, so that PyTorch is measured warm."""

    def __init__(self, context: Context, kind: str, spec: dict, *, threads: int, ranks: int = 1,
                 warmup: int, steps: int, avx2: bool = False) -> None:
        variant = spec.get("variant", {})
        self._kind = kind
        self._request = {"warmup": warmup, "steps": steps}
        self._workers: list[Worker] = []
        cpus = context.cpus(ranks * threads)
        env = {"OMP_NUM_THREADS": str(threads), **MALLOCS[variant.get("malloc", "default")],
               **(AVX2_ENV if avx2 else {})}
        argv = [str(context.python), str(context.peers / "worker.py"), kind, json.dumps(spec)]
        self._commands = [Command(argv, {**env, **self._rank_env(rank, ranks)},
                                  cpus[rank * threads:(rank + 1) * threads])
                          for rank in range(ranks)]
        self.text = "PyTorch: " + ", ".join(f"{key} {value}" for key, value in variant.items())

    @staticmethod
    def _rank_env(rank: int, ranks: int) -> dict[str, str]:
        if ranks == 1:
            return {}
        return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                "GLOO_SOCKET_IFNAME": "lo"}

    def start(self, context: Context) -> None:
        if not context.python.exists():
            raise Missing(context.memo.get("no torch", "no PyTorch"))
        port = {"MASTER_PORT": str(free_port())}
        self._workers = [
            context.processes.start_worker(Command(c.argv, {**c.env, **port}, c.cpus))
            for c in self._commands]
        self._receive(START_TIMEOUT_S)

    def _receive(self, timeout_s: float) -> list[dict]:
        return [worker.receive(timeout_s) for worker in self._workers]

    def measure(self, context: Context) -> dict:
        for worker in self._workers:
            worker.send(self._request)
        answers = self._receive(RUN_TIMEOUT_S)
        result = dict(answers[0])
        for key in result:
            if key.startswith("time_s/") or key in ("wrong", "peak_rss_bytes"):
                result[key] = max(answer[key] for answer in answers)
        if result.get("wrong"):
            raise Failed(f"{result['wrong']} sums of gloo's all-reduce are wrong")
        return result

    def stop(self) -> None:
        for worker in self._workers:
            worker.close()
        self._workers = []
