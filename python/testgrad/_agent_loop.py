"""The loop's drivers that are better in Python: with await, and over many tasks at once.

The plain driver is in Rust. Each step here is `LoopRun.need`, fetch, hand in; the rules are in
the core.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import inspect
import queue
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ._progress import TasksBar
from ._testgrad import AgentTestLoop, History, LoopRun, _cancel_runs
from .errors import StoreError

_POLL_S = 0.02

# Runs of tests in daemon threads would outlive the interpreter, and their directories with them.
atexit.register(_cancel_runs, 2.0)


async def arun(loop: AgentTestLoop, task: object = None) -> History:
    """Run the loop to its end with async or plain callables; plain ones run in threads."""
    return await _drive(loop, loop._begin(task))


async def _drive(loop: AgentTestLoop, run: LoopRun) -> History:
    agent_fn, test_runner = loop.agent_fn, loop.test_runner
    try:
        while True:
            what, detail = run.need()
            hand_in: Callable[[object], object]
            if what == "code":
                hand_in, answer = run.code, await _call(agent_fn, run.history, run.history.task)
            elif what == "tests":
                hand_in, answer = run.suite, await _call(test_runner, detail)
            else:
                break
            if _has_stopped(run):  # interrupted meanwhile: the history is with the caller already
                return run.history
            hand_in(answer)
        run.close()
    except BaseException as error:
        if run.history.stopped_by != "interrupted":
            run.fail(error)
        raise
    return run.history


def _has_stopped(run: LoopRun) -> bool:
    return run.history.stopped_by is not None


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method, not whether there is one
    )


async def _call(function: Callable[..., Any], *args: object) -> Any:
    if _is_async(function):
        return await function(*args)
    result = await _in_thread(function, *args)
    return await result if inspect.isawaitable(result) else result


async def _in_thread(function: Callable[..., Any], *args: object) -> Any:
    """Like `asyncio.to_thread`, but in a daemon thread of its own.

    So Ctrl-C waits for nobody, and as many calls block at once as there are runs.
    """
    event_loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = event_loop.create_future()
    context = contextvars.copy_context()

    def hand_in(value: Any, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((value, error))

    def call() -> None:
        value, error = None, None
        try:
            value = context.run(function, *args)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the event loop is closed, nobody waits any more
            event_loop.call_soon_threadsafe(hand_in, value, error)

    threading.Thread(target=call, daemon=True).start()
    value, error = await outcome
    if error is not None:
        raise error
    return value


class _Many:
    """The runs of many tasks: begun in order, each with its own history."""

    def __init__(
        self, loop: AgentTestLoop, tasks: Iterable[object], journal_dir: Path | None
    ) -> None:
        self.loop = loop
        self.tasks = list(tasks)
        self.journal_dir = journal_dir
        self.runs: list[LoopRun | None] = [None] * len(self.tasks)
        self.failed_to_begin: dict[int, History] = {}
        self.cancelled = threading.Event()
        self.cancel_awaits: Callable[[], object] = lambda: None
        self.done = threading.Event()

    def begin(self, place: int) -> LoopRun | None:
        """Begin a task's run, or go on with its journal; None when that is refused."""
        try:
            self.runs[place] = run = self._begin(self.tasks[place], place)
        except Exception as error:
            history = History(task=self.tasks[place], stopped_by="exception", error=error)
            self.failed_to_begin[place] = history
            return None
        return run

    def _begin(self, task: object, place: int) -> LoopRun:
        if self.journal_dir is None:
            return self.loop._begin(task, one_of_many=True)
        journal = self.journal_dir / f"task-{place:04}.jsonl"
        if journal.exists() and b"\n" in journal.read_bytes():  # its header is complete
            run = self.loop._resume(journal, one_of_many=True)
            if run.history.task != task:
                run.interrupt()
                raise StoreError(
                    f"journal {journal}: of another task; give other tasks another journal_dir",
                    path=journal,
                )
            return run
        return self.loop._begin(task, journal, one_of_many=True)

    def histories(self) -> list[History]:
        """One history a task, in order; of a task that was never begun an empty one."""
        out = []
        for place, (task, run) in enumerate(zip(self.tasks, self.runs, strict=True)):
            if run is not None:
                out.append(run.history)
            elif place in self.failed_to_begin:
                out.append(self.failed_to_begin[place])
            else:
                out.append(History(task=task, stopped_by="interrupted"))
        return out

    def interrupt(self) -> None:
        """Stop all runs at their next step; those under way end as interrupted now."""
        self.cancelled.set()
        for run in self.runs:
            if run is not None:
                run.interrupt()
        _cancel_runs()  # after the histories have ended: what it makes runners raise is no reason
        with contextlib.suppress(RuntimeError):  # the event loop has closed meanwhile
            self.cancel_awaits()


def run_many(
    loop: AgentTestLoop, tasks: Iterable[object], concurrency: int, journal_dir: Path | None
) -> list[History]:
    """Run one loop a task, many at once; see `AgentTestLoop.run_many`."""
    if loop.journal is not None:
        raise ValueError(
            "one journal cannot hold many runs; give run_many(journal_dir=...) instead"
        )
    if journal_dir is not None:
        Path(journal_dir).mkdir(parents=True, exist_ok=True)
    many = _Many(loop, tasks, None if journal_dir is None else Path(journal_dir))
    if not many.tasks:
        return []
    work = _in_event_loop if any(map(_is_async, (loop.agent_fn, loop.test_runner))) else _in_threads
    # Daemon threads, so that Ctrl-C comes back at once even while a callable blocks.
    threading.Thread(target=work, args=(many, concurrency), daemon=True).start()
    bar = TasksBar(len(many.tasks)) if loop.progress else None
    try:
        while not many.done.wait(_POLL_S):
            if bar is not None:
                bar.update(many.histories())
    except KeyboardInterrupt as error:
        many.interrupt()
        error.histories = many.histories()  # type: ignore[attr-defined]
        raise
    finally:
        if bar is not None:
            bar.update(many.histories())
            bar.close()
    return many.histories()


def _in_threads(many: _Many, concurrency: int) -> None:
    places: queue.SimpleQueue[int] = queue.SimpleQueue()
    for place in range(len(many.tasks)):
        places.put(place)

    def work() -> None:
        while not many.cancelled.is_set():
            try:
                place = places.get_nowait()
            except queue.Empty:
                return
            run = many.begin(place)
            if run is not None:
                # What it raises is on the history, where the caller looks.
                with contextlib.suppress(BaseException):
                    run.drive()

    workers = [
        threading.Thread(target=work, daemon=True) for _ in range(min(concurrency, len(many.tasks)))
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        many.done.set()


def _in_event_loop(many: _Many, concurrency: int) -> None:
    async def one(place: int, places_free: asyncio.Semaphore) -> None:
        async with places_free:
            if many.cancelled.is_set():
                return
            run = many.begin(place)
            if run is not None:
                with contextlib.suppress(BaseException):  # as above
                    await _drive(many.loop, run)

    async def everything() -> None:
        event_loop, this = asyncio.get_running_loop(), asyncio.current_task()
        if this is not None:
            many.cancel_awaits = lambda: event_loop.call_soon_threadsafe(this.cancel)
        places_free = asyncio.Semaphore(concurrency)
        await asyncio.gather(*(one(place, places_free) for place in range(len(many.tasks))))

    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(everything())
    finally:
        many.done.set()
