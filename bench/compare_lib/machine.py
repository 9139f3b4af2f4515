# SPDX-License-Identifier: Apache-2.0
"""What the machine is, and whether somebody else works on it."""
from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class Spoiled(Exception):
    """Somebody else worked on the machine while it was measured."""


def cpu_numbers(text: str) -> list[int]:
    """'0-2,5' as the kernel writes lists of processors."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def physical_cores(allowed: set[int], sys: Path) -> list[int]:
    """One allowed processor of each core, in order."""
    cores: list[int] = []
    taken: set[int] = set()
    for cpu in sorted(allowed):
        siblings = sys / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        if cpu not in taken:
            cores.append(cpu)
        taken |= set(cpu_numbers(siblings.read_text())) if siblings.exists() else {cpu}
    return cores


@dataclass
class Machine:
    """proc and sys: where the kernel tells about itself (tests give their own)."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    allowed: set[int] = field(default_factory=lambda: os.sched_getaffinity(0))

    @property
    def cores(self) -> list[int]:
        return physical_cores(self.allowed, self.sys)

    def _cpuinfo(self, key: str) -> str:
        for line in (self.proc / "cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
        return ""

    @property
    def processor(self) -> str:
        return self._cpuinfo("model name") or "unknown processor"

    @property
    def has_avx512(self) -> bool:
        """As oneDNN asks for it (avx512_core), unless the environment caps it."""
        flags = set(self._cpuinfo("flags").split())
        capped = os.environ.get("ONEDNN_MAX_CPU_ISA", "ALL").upper() in ("SSE41", "AVX", "AVX2")
        return {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags and not capped

    @property
    def available_bytes(self) -> int:
        for line in (self.proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return 0

    def busy_s(self) -> float:
        """Processor seconds that all processes and other virtual machines have had since the
        start. Interrupts are left out: they are the work of whoever is measured, too."""
        fields = (self.proc / "stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system = (int(x) for x in fields[:3])
        steal = int(fields[7]) if len(fields) > 7 else 0
        return (user + nice + system + steal) * TICK_S

    def load(self) -> str:
        return (self.proc / "loadavg").read_text().strip()

    def process_times(self) -> dict[int, tuple[str, float]]:
        """Name and processor seconds of each process."""
        times: dict[int, tuple[str, float]] = {}
        for stat in self.proc.glob("[0-9]*/stat"):
            try:
                text = stat.read_text()
            except OSError:
                continue  # it has ended
            name = text[text.index("(") + 1:text.rindex(")")]
            fields = text[text.rindex(")") + 2:].split()
            times[int(stat.parent.name)] = (name, (int(fields[11]) + int(fields[12])) * TICK_S)
        return times


# Cores that others may use: of the kernel's own threads there is always a little.
ALLOWED_CORES = 0.1
# What ticks of 10 ms hide in a short measurement, in processor seconds.
ALLOWED_S = 0.08


@dataclass(frozen=True)
class Busy:
    """Cores that others kept busy for wall_s seconds."""

    cores: float
    wall_s: float

    @property
    def spoils(self) -> bool:
        return self.cores * self.wall_s > ALLOWED_CORES * self.wall_s + ALLOWED_S


class Watch:
    """Watches others from its construction on. own_s: processor seconds of us and our children
    so far."""

    def __init__(self, machine: Machine, own_s: float) -> None:
        self._machine = machine
        self._start = (time.monotonic(), machine.busy_s() - own_s)

    def others(self, own_s: float) -> Busy:
        wall_s = max(time.monotonic() - self._start[0], TICK_S)
        used = self._machine.busy_s() - own_s - self._start[1]
        return Busy(max(0.0, used / wall_s), wall_s)


def busiest(before: dict[int, tuple[str, float]], after: dict[int, tuple[str, float]]) -> str:
    """The name of the process that took most processor time in between, for a message."""
    used = {pid: (name, seconds - before.get(pid, ("", 0.0))[1])
            for pid, (name, seconds) in after.items() if pid != os.getpid()}
    name, seconds = max(used.values(), key=lambda entry: entry[1], default=("", 0.0))
    return f", most of it '{name}'" if seconds > 0 else ""


def why_not_idle(machine: Machine, own_s: Callable[[], float], patience_s: float,
                 look_s: float = 0.5) -> str | None:
    """None as soon as the machine is idle for look_s; else, after patience_s, what goes on. own_s:
    gives our own processor seconds."""
    deadline = time.monotonic() + patience_s
    while True:
        processes = machine.process_times()
        watch = Watch(machine, own_s())
        time.sleep(look_s)
        busy = watch.others(own_s())
        if not busy.spoils:
            return None
        if time.monotonic() >= deadline:
            return (f"other load on the machine: {busy.cores:.1f} cores are busy"
                    f"{busiest(processes, machine.process_times())}"
                    f" (load average {machine.load()})")
