# SPDX-License-Identifier: Apache-2.0
"""Runs programs pinned to processors, and counts the processor time they took."""
from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .machine import TICK_S


class Failed(Exception):
    """A program did not do its work; the text is one line."""


@dataclass(frozen=True)
class Command:
    """cpus: the processors it may use; none: all that this process may."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    cpus: list[int] = field(default_factory=list)

    def pinned(self) -> list[str]:
        if not self.cpus:
            return self.argv
        return ["taskset", "-c", ",".join(map(str, self.cpus)), *self.argv]

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.env}


def adopt_orphans() -> None:
    """Processes whose parents end become children of this one, so that their time is counted."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"


def end_group(process: subprocess.Popen) -> None:
    """Ends a process that leads a session, and all that belongs to it."""
    for stop in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, stop)
        except ProcessLookupError:
            return
        try:
            process.wait(5)
            if stop == signal.SIGTERM:
                continue  # children of its may be left
        except subprocess.TimeoutExpired:
            continue


class Job:
    """A program that runs once, with its output in files: no pipe fills up."""

    def __init__(self, command: Command, files: ExitStack) -> None:
        self.text = " ".join(command.argv)
        self._out = files.enter_context(tempfile.TemporaryFile("w+"))
        self._err = files.enter_context(tempfile.TemporaryFile("w+"))
        self.process = subprocess.Popen(command.pinned(), env=command.environment(), text=True,
                                        stdin=subprocess.DEVNULL, stdout=self._out,
                                        stderr=self._err, start_new_session=True)

    def output(self) -> str:
        """Of a program that has ended. Throws Failed."""
        for file in (self._out, self._err):
            file.seek(0)
        output, errors = self._out.read(), self._err.read()
        if self.process.returncode != 0:
            raise Failed(f"{self.text}: exit code {self.process.returncode}: "
                         f"{last_line(errors or output)}")
        return output


class Processes:
    """All programs of one comparison."""

    def __init__(self) -> None:
        adopt_orphans()
        self._workers: list[Worker] = []

    def own_s(self) -> float:
        """Processor seconds of this process and all its children, those that live included."""
        self._reap_orphans()
        spent = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            spent += usage.ru_utime + usage.ru_stime
        return spent + sum(worker.cpu_s() for worker in self._workers)

    def _reap_orphans(self) -> None:
        known = {worker.process.pid for worker in self._workers}
        for task in Path("/proc/self/task").glob("*/children"):
            for pid in map(int, task.read_text().split()):
                if pid in known:
                    continue
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def run(self, commands: list[Command], timeout_s: float) -> list[str]:
        """Runs them at the same time; returns their outputs. Throws Failed."""
        with ExitStack() as files:
            running = [Job(command, files) for command in commands]
            deadline = time.monotonic() + timeout_s
            try:
                for job in running:
                    job.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failed(f"{job.text}: no end after {timeout_s:.0f} s") from None
            finally:
                for job in running:
                    if job.process.poll() is None:
                        end_group(job.process)
            return [job.output() for job in running]

    def start_worker(self, command: Command) -> Worker:
        worker = Worker(command, self)
        self._workers.append(worker)
        return worker

    def forget(self, worker: Worker) -> None:
        if worker in self._workers:
            self._workers.remove(worker)

    def close(self) -> None:
        for worker in list(self._workers):
            worker.close()


class Worker:
    """A program that answers each line on its input with one line of JSON."""

    def __init__(self, command: Command, owner: Processes) -> None:
        self.command = command
        self._owner = owner
        self._errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command.pinned(), env=command.environment(), text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            start_new_session=True)

    def cpu_s(self) -> float:
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return 0.0
        fields = text[text.rindex(")") + 2:].split()
        return sum(int(x) for x in fields[11:15]) * TICK_S

    def send(self, request: dict) -> None:
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
        except OSError:
            self._fail("it has ended")

    def receive(self, timeout_s: float) -> dict:
        """An answer is written as one line, so that a line is there as soon as anything is."""
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        if not ready:
            self._fail(f"no answer after {timeout_s:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            self._fail("it has ended")
        return json.loads(line)

    def _fail(self, what: str) -> None:
        self._errors.seek(0)
        message = last_line(self._errors.read())
        self.close()
        raise Failed(f"{' '.join(self.command.argv[:3])}: {what}: {message}")

    def close(self) -> None:
        if self.process.poll() is None:
            end_group(self.process)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass
        self._errors.close()
        self._owner.forget(self)


def json_lines(output: str) -> list[dict]:
    """The JSON objects among the lines of an output."""
    found = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                raise Failed(f"not JSON: {line[:100]}") from None
    return found


def only_json(output: str) -> dict:
    found = json_lines(output)
    if not found:
        raise Failed(f"no JSON in the output: {last_line(output)}")
    return found[-1]
