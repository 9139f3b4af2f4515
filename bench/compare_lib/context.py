# SPDX-License-Identifier: Apache-2.0
"""What all parts of one comparison share."""
from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .machine import Machine, why_not_idle
from .processes import Command, Processes

# As scripts/env sets it: mpirun as root. Placement is left to annulus, or given by each row.
MPI_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
AVX2_ENV = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}


class Missing(Exception):
    """Something that a row needs is not to be had; the text says what and why."""


def say(text: str) -> None:
    """Progress goes to standard error, the table to standard output."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Context:
    root: Path
    machine: Machine
    processes: Processes
    annulus: Path
    quick: bool = False
    rounds: int = 5
    patience_s: float = 60.0  # to wait for an idle machine
    look_s: float = 0.5  # how long it must be idle
    memo: dict = field(default_factory=dict)

    @property
    def build(self) -> Path:
        """Everything that bench/compare makes."""
        return self.root / "build" / "compare"

    @property
    def programs(self) -> Path:
        return self.build / "programs" / "bench"

    @property
    def python(self) -> Path:
        return self.build / "venv" / "bin" / "python"

    @property
    def peers(self) -> Path:
        return self.root / "bench" / "peers"

    def cpus(self, count: int) -> list[int]:
        cores = self.machine.cores
        if len(cores) < count:
            raise Missing(f"it needs {count} cores, and this process may use {len(cores)}")
        return cores[:count]

    def steps(self, quick: int, full: int) -> int:
        return quick if self.quick else full

    def require_bytes(self, needed: int) -> None:
        available = self.machine.available_bytes
        if available < needed:
            raise Missing(f"it needs {needed / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB "
                          "are available")

    def require_command(self, *words: str) -> None:
        """annulus's sub-command of that name: what a build may not have yet."""
        if words[-1] not in self._commands(words[:-1]):
            raise Missing(f"this build has no '{' '.join(words)}'")

    def _commands(self, group: tuple[str, ...]) -> set[str]:
        key = ("commands", group)
        if key not in self.memo:
            text = subprocess.run([str(self.annulus), *group, "--help"], capture_output=True,
                                  text=True, check=False).stdout
            _, _, listed = text.partition("Subcommands:")
            self.memo[key] = {line.split()[0] for line in listed.splitlines() if line.strip()}
        return self.memo[key]

    def why_not_idle(self) -> str | None:
        return why_not_idle(self.machine, self.processes.own_s, self.patience_s, self.look_s)

    def mpirun(self, ranks: int, argv: list[str], cpus: list[int], binding: str = "none",
               env: dict[str, str] | None = None) -> Command:
        """Ranks on this node, as many slots as ranks: nobody has to yield."""
        return Command(["mpirun", "-n", str(ranks), "--host", f"localhost:{ranks}", "--bind-to",
                        binding, *argv], {**MPI_ENV, **(env or {})}, cpus)
