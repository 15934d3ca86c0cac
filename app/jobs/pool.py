"""A small pool of ready processes for quick experiments, shared by all sessions of a server.

The threads here only wait for pipes: computing in them would hold the interpreter that draws
the pages. Each owns one process, starts it when there is work and ends it after some idle
minutes. It must be this thread that starts the process and outlives it: Linux sends the
parent's death signal when the starting thread ends, not when the server does.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any, Literal

from wordlm_core.errors import WordLMError

State = Literal["queued", "running", "finished", "failed", "cancelled"]
Progress = tuple[int, int, float]

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS, IDLE_SECONDS = 90.0, 300.0
MAX_QUEUE, MAX_RESULTS, ATTEMPTS = 60, 64, 2
_DIED = "its process ended twice before its result: ask for it again, or for something smaller"
_BROKEN = "a mistake in the app ended it: the server's log has it"
_LATE = "it took more than {limit:.0f} seconds and was ended: take fewer steps or a smaller model"


class QuickError(WordLMError):
    """A quick experiment was not run to its end."""


class Ticket:
    """One request, and what has become of it."""

    def __init__(self, pool: "Pool", person: str, lane: str, line: str) -> None:
        self.person, self.lane, self.line = person, lane, line
        self.key = hashlib.sha256(line.encode()).hexdigest()
        self.state: State = "queued"
        self.progress: Progress | None = None
        self._pool = pool
        self._done = threading.Event()
        self._result: dict[str, Any] = {}
        self._reason = ""

    @property
    def place(self) -> int:
        """Return the place in the queue, from 1; 0 where it does not wait."""
        return self._pool.place(self)

    @property
    def over(self) -> bool:
        """Return whether it has come to its end."""
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end, but not longer; return whether it has come."""
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Take it out of the queue, or end its run."""
        self._pool.cancel(self)

    def result(self) -> dict[str, Any]:
        """Return the result of a finished request.

        Raises:
            QuickError: It has none; the message says why.
        """
        if self.state != "finished":
            raise QuickError(self._reason or f"it is still {self.state}")
        return self._result

    def settle(self, state: State, *, result: Any = None, reason: str = "") -> None:
        """Set what has become of it; for the pool, which holds its lock."""
        self._result, self._reason, self.state = result or {}, reason, state
        self._done.set()


class Pool:
    """Processes that answer requests; one at a time for a person, equal ones from memory."""

    def __init__(
        self,
        size: int,
        *,
        limit: float = LIMIT_SECONDS,
        idle: float = IDLE_SECONDS,
        longest: int = MAX_QUEUE,
    ) -> None:
        """Start nothing yet.

        Args:
            size: How many processes there may be.
            limit: Seconds that a run may take.
            idle: Seconds after which a process without work is ended.
            longest: How many requests may wait.
        """
        self._size, self._limit, self._idle, self._longest = size, limit, idle, longest
        self._changed = threading.Condition()
        self._queue: list[Ticket] = []
        self._running: dict[str, Ticket] = {}
        self._workers: dict[Ticket, _Worker] = {}
        self._results: OrderedDict[str, Any] = OrderedDict()
        self._threads: set[threading.Thread] = set()
        self._waiting = 0
        self._closed = False

    def submit(self, person: str, lane: str, request: dict[str, Any]) -> Ticket:
        """Put a request into the queue, in the place of the person's waiting one of its lane.

        Args:
            person: Whose it is. Of all that a person asks for, one runs at a time.
            lane: What it is for: a newer request takes the place of a waiting one for the same.
            request: JSON, as `quick` reads it; equal requests have equal results.

        Raises:
            QuickError: Too many are waiting.
        """
        ticket = Ticket(self, person, lane, json.dumps(request, sort_keys=True))
        with self._changed:
            if self._from_memory(ticket):
                return ticket
            waiting = [each for each in self._queue if each.person == person]
            for same in (*waiting, *filter(None, [self._running.get(person)])):
                if (same.lane, same.key) == (lane, ticket.key) and not same.over:
                    return same
            older = next((each for each in waiting if each.lane == lane), None)
            if older is not None:
                self._queue[self._queue.index(older)] = ticket
                older.settle("cancelled", reason="a newer experiment took its place")
            elif len(self._queue) >= self._longest:
                raise QuickError(
                    f"{self._longest} experiments are waiting already: try again in a moment"
                )
            else:
                self._queue.append(ticket)
            self._hire()
            self._changed.notify_all()
        return ticket

    def place(self, ticket: Ticket) -> int:
        """Return a ticket's place in the queue, from 1; 0 where it does not wait."""
        with self._changed:
            return self._queue.index(ticket) + 1 if ticket in self._queue else 0

    def cancel(self, ticket: Ticket) -> None:
        """Take a ticket out of the queue, or end its process; what has ended stays as it is."""
        with self._changed:
            if ticket.over:
                return
            if ticket in self._queue:
                self._queue.remove(ticket)
            if ticket in self._workers:
                self._workers[ticket].kill()
            ticket.settle("cancelled", reason="it was cancelled")

    def processes(self) -> list[int]:
        """Return the ids of the processes that are running a request."""
        with self._changed:
            return [worker.pid for worker in self._workers.values()]

    def close(self) -> None:
        """Cancel everything, end all processes and wait for that."""
        with self._changed:
            self._closed = True
            threads = list(self._threads)
            for ticket in [*self._queue, *self._running.values()]:
                self.cancel(ticket)
            self._changed.notify_all()
        for thread in threads:
            thread.join()

    # -- one thread and its process

    def _hire(self) -> None:
        """Start a thread if more is waiting than the idle ones take; the lock is held."""
        if len(self._queue) > self._waiting and len(self._threads) < self._size:
            thread = threading.Thread(target=self._serve, name="quick", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _serve(self) -> None:
        worker = _Worker()
        try:
            while (ticket := self._next()) is not None:
                try:
                    self._attempt(ticket, worker)
                finally:
                    self._leave(ticket)
        finally:
            worker.close()
            with self._changed:  # after a mistake another thread takes what is waiting
                self._threads.discard(threading.current_thread())
                if not self._closed:
                    self._hire()

    def _attempt(self, ticket: Ticket, worker: "_Worker") -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                worker.start()
            except OSError as error:
                with self._changed:
                    reason = f"no process can be started: {error.strerror}"
                    ticket.settle("failed", reason=reason)
                return
            if self._has_ended(ticket, worker, last=attempt == ATTEMPTS):
                return

    def _leave(self, ticket: Ticket) -> None:
        """Make room for the person's next request, whatever happened to this one."""
        with self._changed:
            self._workers.pop(ticket, None)
            if not ticket.over:
                ticket.settle("failed", reason=_BROKEN)
            del self._running[ticket.person]
            self._changed.notify_all()

    def _next(self) -> Ticket | None:
        """Wait for a request whose person has none running; None after the idle time."""
        end = time.monotonic() + self._idle
        with self._changed:
            while not self._closed:
                ready = (each for each in self._queue if each.person not in self._running)
                ticket = next(ready, None)
                if ticket is not None:
                    self._queue.remove(ticket)
                    if self._from_memory(ticket):  # a neighbour's has come meanwhile
                        continue
                    self._running[ticket.person] = ticket
                    ticket.state = "running"
                    return ticket
                left = end - time.monotonic()
                if left <= 0:
                    break
                self._waiting += 1
                self._changed.wait(left)
                self._waiting -= 1
            self._threads.discard(threading.current_thread())
            return None

    def _has_ended(self, ticket: Ticket, worker: "_Worker", *, last: bool) -> bool:
        """Run a ticket once; return False if the process died and another one may try."""
        with self._changed:
            if ticket.over:
                return True
            self._workers[ticket] = worker
        answer = worker.ask(ticket, self._limit)
        with self._changed:
            del self._workers[ticket]
            if ticket.over:
                return True
            if answer is not None:
                self._note(ticket, answer)
            elif last:
                ticket.settle("failed", reason=_DIED)
            return ticket.over

    def _note(self, ticket: Ticket, answer: dict[str, Any]) -> None:
        if "error" in answer:
            ticket.settle("failed", reason=answer["error"])
            return
        self._results[ticket.key] = answer["result"]
        while len(self._results) > MAX_RESULTS:
            self._results.popitem(last=False)
        ticket.settle("finished", result=answer["result"])

    def _from_memory(self, ticket: Ticket) -> bool:
        if ticket.key not in self._results:
            return False
        self._results.move_to_end(ticket.key)
        ticket.settle("finished", result=self._results[ticket.key])
        return True


class _Worker:
    """One ready process, and the next one after its end."""

    def __init__(self) -> None:
        self._started: subprocess.Popen[str] | None = None
        self._ended = False

    def start(self) -> None:
        """Have a process that can be asked.

        Raises:
            OSError: The system starts none.
        """
        if self._started is not None and not self._ended and self._started.poll() is None:
            return
        self.close()
        command = [sys.executable, "-m", "app.jobs.quick", str(os.getpid())]
        self._started = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._ended = False

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self._process.pid

    def ask(self, ticket: Ticket, limit: float) -> dict[str, Any] | None:
        """Return the answer to a ticket, or None if the process ended before it."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(limit, end)
        timer.start()
        try:
            answer = self._answer(ticket)
        finally:
            timer.cancel()
            timer.join()  # it may have rung just now: the next process is not for it to end
        if answer is None and late.is_set():
            return {"error": _LATE.format(limit=limit)}
        return answer

    def kill(self) -> None:
        """End the process at once; `close` is still to be called."""
        self._ended = True  # before the system says so
        self._process.kill()

    def close(self) -> None:
        """End the process, if there is one, and wait for its end."""
        if self._started is None:
            return
        # A request that it did not read to its end breaks the pipe at the closing.
        with contextlib.suppress(BrokenPipeError), self._process:
            self.kill()
        self._started = None

    @property
    def _process(self) -> "subprocess.Popen[str]":
        assert self._started is not None
        return self._started

    def _answer(self, ticket: Ticket) -> dict[str, Any] | None:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        try:
            requests.write(ticket.line + "\n")
            requests.flush()
            for line in answers:
                record = _record(line)
                if "progress" not in record:
                    return record
                step, steps, loss = record["progress"]
                ticket.progress = (step, steps, loss)
        except (OSError, ValueError):
            pass  # it died while it read, or wrote, a line; or what it says cannot be trusted
        self.kill()
        return None


def _record(line: str) -> dict[str, Any]:
    """Return a line of a process.

    Raises:
        ValueError: It has not the form of an answer.
    """
    match json.loads(line):
        case (
            {"progress": [int(), int(), float()]} | {"result": {}} | {"error": str()}
        ) as record if len(record) == 1:
            return record
        case _:
            raise ValueError("no answer has this form")
