"""The loop and its history: drivers, stop rules, callbacks, exceptions, Ctrl-C, many tasks."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import gc
import html.parser
import itertools
import json
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testgrad import (
    AgentTestLoop,
    Binary,
    CodeSubmission,
    Curriculum,
    FeedbackEntry,
    Gated,
    History,
    MultiSignal,
    PassRate,
    Progression,
    RewardSignal,
    RewardWeights,
    SeverityWeighted,
    StoreError,
    SuiteResult,
    TestResult,
    build_feedback,
    learning_curve,
)

LIMIT_S = 120


def suite_of(passed: int, tests: int = 4) -> SuiteResult:
    return SuiteResult(
        TestResult(f"test_{i}", "passed" if i < passed else "failed", message=f"no {i}")
        for i in range(tests)
    )


def agent(history: Sequence[FeedbackEntry], task: object) -> str:
    """One more test passes with each iteration."""
    return str(len(history))


def run_tests(code: str) -> SuiteResult:
    return suite_of(int(code))


async def async_agent(history: Sequence[FeedbackEntry], task: object) -> str:
    await asyncio.sleep(0)
    return agent(history, task)


async def run_async_tests(code: str) -> SuiteResult:
    await asyncio.sleep(0)
    return run_tests(code)


class AsyncAgent:
    async def __call__(self, history: Sequence[FeedbackEntry], task: object) -> str:
        return await async_agent(history, task)


class PlainAgent:
    def __call__(self, history: Sequence[FeedbackEntry], task: object) -> str:
        return agent(history, task)


WHOLE = AgentTestLoop(run_tests, agent).run("pass four")


def scripted(*passed: int) -> Callable[[str], SuiteResult]:
    """A runner with given pass counts, whatever the code."""
    counts = iter(passed)
    return lambda code: suite_of(next(counts))


def run(loop: AgentTestLoop, task: object = None) -> History:
    return loop.run(task)


def arun(loop: AgentTestLoop, task: object = None) -> History:
    async def within_limit() -> History:
        return await asyncio.wait_for(loop.arun(task), LIMIT_S)

    return asyncio.run(within_limit())


both_drivers = pytest.mark.parametrize("drive", [run, arun])

# -- drivers --------------------------------------------------------------------------------------


@both_drivers
def test_plain_callables_run_to_the_end(drive: Callable[..., History]) -> None:
    assert drive(AgentTestLoop(run_tests, agent)).stopped_by == "all_passed"


@pytest.mark.parametrize(
    "agent_fn",
    [
        async_agent,
        AsyncAgent(),
        PlainAgent(),
        functools.partial(async_agent),
        lambda history, task: async_agent(history, task),
    ],
    ids=["async", "async __call__", "plain __call__", "partial", "lambda with a coroutine"],
)
@pytest.mark.parametrize("test_runner", [run_tests, run_async_tests])
def test_arun_takes_every_kind_of_callable(
    agent_fn: Callable[..., Any], test_runner: Callable[..., Any]
) -> None:
    assert arun(AgentTestLoop(test_runner, agent_fn)) == WHOLE


@pytest.mark.parametrize(
    "agent_fn",
    [agent, async_agent, AsyncAgent(), PlainAgent(), functools.partial(async_agent)],
    ids=["plain", "async", "async __call__", "plain __call__", "partial"],
)
@pytest.mark.parametrize("test_runner", [run_tests, run_async_tests])
def test_run_many_takes_plain_and_async_callables(
    agent_fn: Callable[..., Any], test_runner: Callable[..., Any]
) -> None:
    assert AgentTestLoop(test_runner, agent_fn).run_many([1, 2, 3]) == [WHOLE] * 3


def test_run_takes_an_object_that_can_be_called() -> None:
    assert AgentTestLoop(run_tests, PlainAgent()).run() == WHOLE


@pytest.mark.parametrize("callables", [(run_tests, async_agent), (run_async_tests, agent)])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_run_points_async_callables_to_arun(callables: tuple[Any, Any]) -> None:
    with pytest.raises(TypeError, match=r"use `await loop\.arun\(task\)`"):
        AgentTestLoop(*callables).run()


def test_arun_keeps_the_event_loop_free_while_a_plain_callable_blocks() -> None:
    other_ran = threading.Event()

    def blocking_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        assert other_ran.wait(LIMIT_S)
        return "4"

    async def both() -> History:
        loop = AgentTestLoop(run_tests, blocking_agent)
        running = asyncio.create_task(loop.arun())
        await asyncio.sleep(0)
        other_ran.set()
        return await running

    assert asyncio.run(both()).stopped_by == "all_passed"


def test_arun_hands_context_variables_to_plain_callables() -> None:
    import contextvars

    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    seen = []

    def looking_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        seen.append(who.get())
        return "4"

    async def main() -> None:
        who.set("me")
        await AgentTestLoop(run_tests, looking_agent).arun()

    asyncio.run(main())
    assert seen == ["me"]


def test_arun_that_is_cancelled_ends_as_interrupted() -> None:
    loop = AgentTestLoop(run_tests, agent)

    async def forever(history: Sequence[FeedbackEntry], task: object) -> str:
        if len(history) == 2:
            raise asyncio.CancelledError
        return str(len(history))

    loop = AgentTestLoop(run_tests, forever)
    with pytest.raises(asyncio.CancelledError):
        arun(loop)
    assert (loop.history.stopped_by, len(loop.history)) == ("interrupted", 2)


@both_drivers
def test_the_agent_gets_the_task_itself(drive: Callable[..., History]) -> None:
    task, got = object(), []

    def noting_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        got.append(task)
        return "4"

    drive(AgentTestLoop(run_tests, noting_agent), task)
    assert got[0] is task


@both_drivers
def test_the_history_has_the_task_itself(drive: Callable[..., History]) -> None:
    task = object()
    assert drive(AgentTestLoop(run_tests, agent), task).task is task


def test_the_runner_gets_the_code_as_the_agent_gave_it() -> None:
    got = []

    def noting_tests(code: str) -> SuiteResult:
        got.append(code)
        return suite_of(4)

    AgentTestLoop(noting_tests, lambda history, task: "x = 'ü\x00\r\n'").run()
    assert got == ["x = 'ü\x00\r\n'"]


def test_submissions_are_counted_from_one() -> None:
    assert [entry.submission.iteration for entry in WHOLE] == [1, 2, 3, 4, 5]


def test_submissions_say_what_they_were_for() -> None:
    assert [e.submission.strategy for e in WHOLE] == ["initial", *["fix_failures"] * 4]


def test_failing_tests_reach_the_entry_with_their_messages() -> None:
    assert WHOLE[2].failing_tests == (("test_2", "no 2"), ("test_3", "no 3"))


def test_a_loop_can_run_again() -> None:
    loop = AgentTestLoop(run_tests, agent)
    assert loop.run() == loop.run()


def test_a_loop_remembers_its_last_history() -> None:
    loop = AgentTestLoop(run_tests, agent)
    loop.run()
    assert loop.run() is loop.history


def test_a_loop_that_never_ran_has_no_history() -> None:
    assert AgentTestLoop(run_tests, agent).history is None


def test_wall_time_is_measured() -> None:
    assert 0 < WHOLE.duration_ms < LIMIT_S * 1000


def test_a_loop_pickles_with_its_settings() -> None:
    loop = AgentTestLoop(run_tests, agent, 3, RewardWeights(speed=0.0), patience=2)
    assert pickle.loads(pickle.dumps(loop)).run() == loop.run()


def test_two_loops_run_at_once_in_threads() -> None:
    meet = threading.Barrier(2, timeout=LIMIT_S)

    def meeting_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        meet.wait()
        return agent(history, task)

    loops = [AgentTestLoop(run_tests, meeting_agent) for _ in range(2)]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert [loop.history for loop in loops] == [WHOLE, WHOLE]


def test_one_loop_runs_twice_at_once_in_threads() -> None:
    meet, done = threading.Barrier(2, timeout=LIMIT_S), []

    def meeting_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        meet.wait()
        return agent(history, task)

    loop = AgentTestLoop(run_tests, meeting_agent)
    threads = [threading.Thread(target=lambda: done.append(loop.run())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert done == [WHOLE, WHOLE]


def test_an_agent_may_run_a_loop_of_its_own() -> None:
    def delegating_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        inner = AgentTestLoop(run_tests, agent).run()
        return inner.best.submission.code

    assert len(AgentTestLoop(run_tests, delegating_agent).run()) == 1


# -- stop rules -----------------------------------------------------------------------------------


def test_it_stops_when_all_tests_pass() -> None:
    assert (WHOLE.stopped_by, len(WHOLE)) == ("all_passed", 5)


def test_it_stops_after_max_iterations() -> None:
    history = AgentTestLoop(run_tests, agent, 3).run()
    assert (history.stopped_by, len(history)) == ("max_iterations", 3)


def test_ten_iterations_are_the_default() -> None:
    assert len(AgentTestLoop(scripted(*[1] * 11), agent).run()) == 10


def test_success_in_the_last_iteration_is_success() -> None:
    assert AgentTestLoop(run_tests, agent, 5).run().stopped_by == "all_passed"


def test_a_suite_that_only_skips_is_no_success() -> None:
    skipped = SuiteResult([TestResult("test", "skipped")])
    assert AgentTestLoop(lambda code: skipped, agent, 2).run().stopped_by == "max_iterations"


def test_a_suite_with_problems_is_no_success() -> None:
    odd = SuiteResult([TestResult("test", "passed")], problems=["it exited early"])
    assert AgentTestLoop(lambda code: odd, agent, 2).run().stopped_by == "max_iterations"


def test_it_stops_when_patience_is_at_its_end() -> None:
    history = AgentTestLoop(scripted(1, 2, 1, 1), agent, patience=2, strategy=PassRate()).run()
    assert (history.stopped_by, len(history)) == ("patience", 4)


def test_an_equal_total_is_no_gain_for_patience() -> None:
    history = AgentTestLoop(scripted(2, 2), agent, patience=1, strategy=PassRate()).run()
    assert (history.stopped_by, len(history)) == ("patience", 2)


def test_a_gain_renews_patience() -> None:
    runner = scripted(1, 1, 2, 2, 3, 3, 3)
    history = AgentTestLoop(runner, agent, patience=2, strategy=PassRate()).run()
    assert len(history) == 7


def test_it_stops_when_the_wall_time_is_used_up() -> None:
    def busy_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        until = time.monotonic() + 0.03
        while time.monotonic() < until:
            pass
        return "1"

    history = AgentTestLoop(run_tests, busy_agent, 50, max_time_s=0.02).run()
    assert (history.stopped_by, len(history)) == ("max_time", 1)


@both_drivers
def test_it_stops_when_the_predicate_says_so(drive: Callable[..., History]) -> None:
    history = drive(AgentTestLoop(run_tests, agent, stop_when=lambda history: len(history) == 2))
    assert (history.stopped_by, len(history)) == ("stop_when", 2)


def test_success_is_success_even_when_the_predicate_says_stop() -> None:
    history = AgentTestLoop(run_tests, agent, stop_when=lambda history: len(history) == 5).run()
    assert history.stopped_by == "all_passed"


def test_the_predicate_sees_the_history_itself() -> None:
    seen = []

    def looking(history: History) -> bool:
        seen.append(history)
        return False

    history = AgentTestLoop(run_tests, agent, stop_when=looking).run()
    assert all(one is history for one in seen)


def test_the_predicate_is_asked_after_each_iteration() -> None:
    lengths: list[int] = []
    AgentTestLoop(run_tests, agent, stop_when=lambda h: bool(lengths.append(len(h)))).run()
    assert lengths == [1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_async_predicate_is_refused() -> None:
    async def never(history: History) -> bool:
        return False

    with pytest.raises(TypeError, match="stop_when"):
        AgentTestLoop(run_tests, agent, stop_when=never).run()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_iterations", 0),
        ("max_iterations", -1),
        ("patience", 0),
        ("patience", -1),
        ("max_time_s", 0.0),
        ("max_time_s", -1.0),
        ("max_time_s", float("nan")),
        ("max_time_s", float("inf")),
        ("target_ms", 0.0),
        ("target_ms", float("nan")),
    ],
)
def test_a_number_out_of_range_is_a_value_error_that_names_it(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{option} must be"):
        AgentTestLoop(run_tests, agent, **{option: value})


@pytest.mark.parametrize("concurrency", [0, -1])
def test_a_concurrency_out_of_range_is_a_value_error(concurrency: int) -> None:
    with pytest.raises(ValueError, match="concurrency must be >= 1"):
        AgentTestLoop(run_tests, agent).run_many([1], concurrency=concurrency)


@pytest.mark.parametrize(
    "option", ["test_runner", "agent_fn", "strategy", "stop_when", "on_iteration"]
)
def test_what_cannot_be_called_is_a_type_error_that_names_it(option: str) -> None:
    callables: dict[str, Any] = {"test_runner": run_tests, "agent_fn": agent, option: 3}
    with pytest.raises(TypeError, match=f"{option} must be callable, got int"):
        AgentTestLoop(**callables)


# -- callbacks and strategies ---------------------------------------------------------------------


@both_drivers
def test_everyone_is_asked_in_the_same_order_each_iteration(drive: Callable[..., History]) -> None:
    order: list[str] = []

    def noting(word: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: order.append(word) or function(*args)

    drive(
        AgentTestLoop(
            noting("tests", run_tests),
            noting("agent", agent),
            2,
            strategy=noting("strategy", PassRate()),
            on_iteration=noting("told", lambda entry: None),
            stop_when=noting("stop?", lambda history: False),
        )
    )
    assert order == ["agent", "tests", "strategy", "told", "stop?"] * 2


@both_drivers
def test_on_iteration_gets_each_entry(drive: Callable[..., History]) -> None:
    told: list[FeedbackEntry] = []
    history = drive(AgentTestLoop(run_tests, agent, on_iteration=told.append))
    assert told == list(history)


def test_the_entry_is_in_the_history_when_on_iteration_is_told() -> None:
    lengths: list[int] = []
    loop = AgentTestLoop(
        run_tests, agent, on_iteration=lambda entry: lengths.append(len(loop.history))
    )
    loop.run()
    assert lengths == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "strategy",
    [
        Binary(),
        PassRate(),
        SeverityWeighted(),
        Progression(),
        MultiSignal(RewardWeights(speed=0.0)),
        Gated(),
        Curriculum(0.5),
    ],
    ids=lambda strategy: strategy.name,
)
def test_each_strategy_makes_the_totals(strategy: Any) -> None:
    history = AgentTestLoop(run_tests, agent, strategy=strategy).run()
    suites = [entry.suite_result for entry in history]
    wanted = [strategy(now, before) for before, now in itertools.pairwise([None, *suites])]
    assert [entry.reward for entry in history] == wanted


def test_without_a_strategy_the_weights_make_the_totals() -> None:
    weights = RewardWeights(1.0, 0.0, 0.0, 0.0, 0.0)
    history = AgentTestLoop(run_tests, agent, 3, weights).run()
    assert [entry.reward.total for entry in history] == [0.0, 0.25, 0.5]


def test_an_own_strategy_makes_the_totals() -> None:
    def by_count(suite: SuiteResult, previous: SuiteResult | None) -> RewardSignal:
        return RewardSignal(0.0, 0.0, 0.0, 0.0, 0.0, suite.passed * 10.0)

    history = AgentTestLoop(run_tests, agent, strategy=by_count).run()
    assert [entry.reward.total for entry in history] == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_an_own_strategy_gets_the_suite_before() -> None:
    seen: list[int | None] = []

    def looking(suite: SuiteResult, previous: SuiteResult | None) -> RewardSignal:
        seen.append(None if previous is None else previous.passed)
        return PassRate()(suite, previous)

    AgentTestLoop(run_tests, agent, 3, strategy=looking).run()
    assert seen == [None, 0, 1]


def test_patience_goes_by_the_totals_of_an_own_strategy() -> None:
    def falling(suite: SuiteResult, previous: SuiteResult | None) -> RewardSignal:
        return RewardSignal(0.0, 0.0, 0.0, 0.0, 0.0, -float(suite.passed))

    history = AgentTestLoop(run_tests, agent, patience=2, strategy=falling).run()
    assert (history.stopped_by, len(history)) == ("patience", 3)


# -- wrong answers and exceptions -----------------------------------------------------------------


@both_drivers
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"agent_fn": lambda h, t: None}, "agent_fn must return str, got NoneType"),
        ({"agent_fn": lambda h, t: b"4"}, "agent_fn must return str, got bytes"),
        ({"test_runner": lambda code: True}, "test_runner must return SuiteResult, got bool"),
        ({"test_runner": lambda code: []}, "test_runner must return SuiteResult, got list"),
        ({"strategy": lambda s, p: 0.5}, "strategy returns must be RewardSignal, got float"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_answer_is_a_type_error_that_says_whose(
    options: dict[str, Any], problem: str, drive: Callable[..., History]
) -> None:
    callables: dict[str, Any] = {"test_runner": run_tests, "agent_fn": agent, **options}
    with pytest.raises(TypeError, match=problem):
        drive(AgentTestLoop(**callables))


class OwnError(Exception):
    pass


def raising_on_the_third(option: str, error: BaseException) -> AgentTestLoop:
    """A loop in which one callable raises in its third iteration."""
    calls = itertools.count(1)

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: object) -> Any:
            if next(calls) == 3:
                raise error
            return function(*args)

        return call

    callables: dict[str, Callable[..., Any]] = {
        "test_runner": run_tests,
        "agent_fn": agent,
        "strategy": PassRate(),
        "stop_when": lambda history: False,
        "on_iteration": lambda entry: None,
    }
    callables[option] = wrapped(callables[option])
    return AgentTestLoop(**callables)


CALLABLES = {"agent_fn": 2, "test_runner": 2, "strategy": 2, "on_iteration": 3, "stop_when": 3}
each_callable = pytest.mark.parametrize("option", CALLABLES)


@both_drivers
@each_callable
def test_an_exception_reaches_the_caller_as_it_is(
    option: str, drive: Callable[..., History]
) -> None:
    error = OwnError("no")
    with pytest.raises(OwnError) as caught:
        drive(raising_on_the_third(option, error))
    assert caught.value is error


@both_drivers
@each_callable
def test_an_exception_carries_the_history_so_far(
    option: str, drive: Callable[..., History]
) -> None:
    with pytest.raises(OwnError) as caught:
        drive(raising_on_the_third(option, OwnError()))
    assert len(caught.value.history) == CALLABLES[option]


@both_drivers
@each_callable
def test_after_an_exception_the_loop_has_the_same_history(
    option: str, drive: Callable[..., History]
) -> None:
    loop = raising_on_the_third(option, OwnError())
    with pytest.raises(OwnError) as caught:
        drive(loop)
    assert loop.history is caught.value.history


@both_drivers
@each_callable
def test_the_history_has_the_exception(option: str, drive: Callable[..., History]) -> None:
    error, loop = OwnError(), None
    loop = raising_on_the_third(option, error)
    with pytest.raises(OwnError):
        drive(loop)
    assert (loop.history.stopped_by, loop.history.error) == ("exception", error)


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), StopIteration(), MemoryError()])
def test_exceptions_of_every_kind_reach_the_caller_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        raising_on_the_third("agent_fn", error).run()
    assert caught.value is error


def test_an_exception_that_takes_no_attributes_still_reaches_the_caller() -> None:
    class ClosedError(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = ClosedError()
    with pytest.raises(ClosedError) as caught:
        raising_on_the_third("agent_fn", error).run()
    assert caught.value is error


def test_the_traceback_shows_where_the_callable_raised() -> None:
    with pytest.raises(OwnError) as caught:
        raising_on_the_third("agent_fn", OwnError()).run()
    assert caught.traceback[-1].name == "call"


def test_stop_iteration_from_a_plain_agent_ends_arun_and_does_not_hang_it() -> None:
    # Python turns it into a RuntimeError where it leaves a coroutine.
    with pytest.raises(RuntimeError) as caught:
        arun(raising_on_the_third("agent_fn", StopIteration()))
    assert len(caught.value.history) == 2


@both_drivers
def test_keyboard_interrupt_in_a_callable_ends_as_interrupted(
    drive: Callable[..., History],
) -> None:
    loop = raising_on_the_third("test_runner", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        drive(loop)
    assert (loop.history.stopped_by, len(loop.history)) == ("interrupted", 2)


# -- Ctrl-C ---------------------------------------------------------------------------------------

# Nothing is imported beforehand that a user's program would not have.
CTRL_C = """
import json, sys, threading, time
from testgrad import AgentTestLoop, SuiteResult, TestResult

TASKS = 8
blocked = threading.Semaphore(0)

def suite(code):
    return SuiteResult([TestResult("a", "passed"), TestResult("b", "failed")])

def block():
    blocked.release()
    time.sleep(60)

def ready_when_blocked(count):
    def wait():
        for _ in range(count):
            blocked.acquire()
        print("ready", flush=True)
    threading.Thread(target=wait, daemon=True).start()

def agent(history, task):
    if len(history) == 2:
        block()
    return "code"

def runner(code):
    if code == "block":
        block()
    return suite(code)

def agent_before_blocking_runner(history, task):
    return "block" if len(history) == 2 else "code"

def on_iteration(entry):
    if entry.iteration == 2:
        block()

def report(began, *histories):
    print(json.dumps({
        "at": time.monotonic(),
        "done": [len(history) for history in histories],
        "stopped_by": sorted({str(history.stopped_by) for history in histories}),
    }), flush=True)

def run(loop):
    ready_when_blocked(1)
    try:
        loop.run("task")
    except KeyboardInterrupt as error:
        report(0, error.history)

def run_many(loop):
    ready_when_blocked(TASKS)
    try:
        loop.run_many(range(TASKS), concurrency=TASKS)
    except KeyboardInterrupt as error:
        report(0, *error.histories)

def run_many_with_some_waiting(loop):
    ready_when_blocked(TASKS // 2)
    try:
        loop.run_many(range(TASKS), concurrency=TASKS // 2)
    except KeyboardInterrupt as error:
        report(0, *error.histories)

def arun(loop):
    import asyncio
    ready_when_blocked(1)
    try:
        asyncio.run(loop.arun("task"))
    except KeyboardInterrupt:
        report(0, loop.history)

async def async_agent(history, task):
    import asyncio
    if len(history) == 2:
        blocked.release()
        await asyncio.sleep(60)
    return "code"

async def async_runner(code):
    import asyncio
    if code == "block":
        blocked.release()
        await asyncio.sleep(60)
    return suite(code)

drive, arguments = sys.argv[1].split(":")
eval(drive)(eval(f"AgentTestLoop({arguments})"))
"""

IN_AGENT, IN_TESTS = "suite, agent", "runner, agent_before_blocking_runner"
IN_ASYNC_AGENT = "suite, async_agent"
IN_ASYNC_TESTS = "async_runner, agent_before_blocking_runner"
CTRL_C_CASES = {
    "run, agent": f"run:{IN_AGENT}",
    "run, tests": f"run:{IN_TESTS}",
    "run, callback": "run:suite, agent, on_iteration=on_iteration",
    "run_many, agents": f"run_many:{IN_AGENT}",
    "run_many, tests": f"run_many:{IN_TESTS}",
    "run_many, async agents": f"run_many:{IN_ASYNC_AGENT}",
    "run_many, async tests": f"run_many:{IN_ASYNC_TESTS}",
    "arun, plain agent": f"arun:{IN_AGENT}",
    "arun, plain tests": f"arun:{IN_TESTS}",
    "arun, async agent": f"arun:{IN_ASYNC_AGENT}",
}


def wait_until_asleep(pid: int) -> None:
    """Wait for the main thread to be in the system call in which it blocks.

    A signal just before the call is seen by Python only after it; nothing of ours can change that.
    """
    status, asleep, give_up = Path(f"/proc/{pid}/stat"), 0, time.monotonic() + LIMIT_S
    while status.exists() and asleep < 100 and time.monotonic() < give_up:
        state = status.read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0


def after_ctrl_c(case: str) -> dict[str, Any]:
    """What a fresh process says after Ctrl-C, and `latency_s` from the signal until it was back."""
    command = [sys.executable, "-c", CTRL_C, case]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            wait_until_asleep(child.pid)
            pressed_at = time.monotonic()
            child.send_signal(signal.SIGINT)
            report: dict[str, Any] = json.loads(child.stdout.readline())
            child.wait(LIMIT_S)
        finally:
            child.kill()
    # The clock is the system's, the same in both processes.
    return {**report, "latency_s": report["at"] - pressed_at, "code": child.returncode}


@pytest.mark.parametrize("case", CTRL_C_CASES)
def test_ctrl_c_is_back_within_100_ms(case: str) -> None:
    tries = []
    for _ in range(3):  # a busy machine may be late once
        tries.append(after_ctrl_c(CTRL_C_CASES[case])["latency_s"])
        if tries[-1] < 0.1:
            break
    assert min(tries) < 0.1


@pytest.fixture(scope="module", params=CTRL_C_CASES)
def interrupted(request: pytest.FixtureRequest) -> dict[str, Any]:
    return after_ctrl_c(CTRL_C_CASES[request.param])


def test_ctrl_c_keeps_what_is_done(interrupted: dict[str, Any]) -> None:
    assert set(interrupted["done"]) == {2}


def test_ctrl_c_is_the_reason_on_the_history(interrupted: dict[str, Any]) -> None:
    assert interrupted["stopped_by"] == ["interrupted"]


def test_after_ctrl_c_the_process_can_end(interrupted: dict[str, Any]) -> None:
    assert interrupted["code"] == 0


def test_ctrl_c_leaves_an_empty_history_for_tasks_that_never_began() -> None:
    report = after_ctrl_c(f"run_many_with_some_waiting:{IN_AGENT}")
    assert report["done"] == [2] * 4 + [0] * 4


# -- many tasks at once ---------------------------------------------------------------------------

MANY = 64


@pytest.fixture
def meet() -> threading.Barrier:
    """Opens when all tasks are there at once; else it breaks, and their histories say so."""
    return threading.Barrier(MANY, timeout=LIMIT_S)


def test_run_many_overlaps_slow_agents(meet: threading.Barrier) -> None:
    def meeting_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        meet.wait()
        return "4"

    loop = AgentTestLoop(run_tests, meeting_agent)
    histories = loop.run_many(range(MANY), concurrency=MANY)
    assert [history.error for history in histories] == [None] * MANY


def test_run_many_overlaps_slow_tests(meet: threading.Barrier) -> None:
    def meeting_tests(code: str) -> SuiteResult:
        meet.wait()
        return suite_of(4)

    loop = AgentTestLoop(meeting_tests, agent)
    histories = loop.run_many(range(MANY), concurrency=MANY)
    assert [history.error for history in histories] == [None] * MANY


def test_run_many_overlaps_slow_plain_tests_of_async_agents(meet: threading.Barrier) -> None:
    def meeting_tests(code: str) -> SuiteResult:
        meet.wait()
        return suite_of(4)

    loop = AgentTestLoop(meeting_tests, async_agent)
    histories = loop.run_many(range(MANY), concurrency=MANY)
    assert [history.error for history in histories] == [None] * MANY


def test_run_many_overlaps_slow_async_agents() -> None:
    waiting: list[object] = []

    async def meeting_agent(history: Sequence[FeedbackEntry], task: object) -> str:
        waiting.append(task)
        async with asyncio.timeout(LIMIT_S):
            while len(waiting) < MANY:
                await asyncio.sleep(0)
        return "4"

    loop = AgentTestLoop(run_tests, meeting_agent)
    histories = loop.run_many(range(MANY), concurrency=MANY)
    assert [history.error for history in histories] == [None] * MANY


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_run_many_runs_no_more_at_once_than_asked(kind: str) -> None:
    meet = threading.Barrier(3, timeout=LIMIT_S)
    lock, running, most = threading.Lock(), 0, 0

    def counting_tests(code: str) -> SuiteResult:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meet.wait()
        with lock:
            running -= 1
        return suite_of(4)

    loop = AgentTestLoop(counting_tests, agent if kind == "plain" else async_agent)
    loop.run_many(range(9), concurrency=3)
    assert most == 3


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_histories_come_back_in_the_order_of_the_tasks(kind: str) -> None:
    """The last task is done first, and each lets the one before it go on."""
    turns = [threading.Event() for _ in range(9)]
    turns[-1].set()

    def agent_in_turn(history: Sequence[FeedbackEntry], task: int) -> str:
        assert turns[task].wait(LIMIT_S)
        if task:
            turns[task - 1].set()
        return "4"

    async def async_agent_in_turn(history: Sequence[FeedbackEntry], task: int) -> str:
        return await asyncio.to_thread(agent_in_turn, history, task)

    agent_fn = agent_in_turn if kind == "plain" else async_agent_in_turn
    # Nine may block at once, more than asyncio's own threads on a small machine.
    tasks = range(9) if kind == "plain" else range(4, 9)
    histories = AgentTestLoop(run_tests, agent_fn).run_many(tasks, concurrency=9)
    assert [history.task for history in histories] == list(tasks)


def refusing_agent(history: Sequence[FeedbackEntry], task: int) -> str:
    if task == 1 and len(history) == 2:
        raise OwnError(task)
    return agent(history, task)


async def async_refusing_agent(history: Sequence[FeedbackEntry], task: int) -> str:
    return refusing_agent(history, task)


@pytest.fixture(params=[refusing_agent, async_refusing_agent], ids=["plain", "async"])
def one_refused(request: pytest.FixtureRequest) -> list[History]:
    """Three tasks, of which the second raises in its third iteration."""
    return AgentTestLoop(run_tests, request.param).run_many(range(3))


def test_an_exception_in_one_task_leaves_the_others_alone(one_refused: list[History]) -> None:
    assert [one_refused[0], one_refused[2]] == [WHOLE, WHOLE]


def test_the_task_that_raised_keeps_its_history(one_refused: list[History]) -> None:
    assert list(one_refused[1]) == list(WHOLE[:2])


def test_the_task_that_raised_says_so(one_refused: list[History]) -> None:
    assert one_refused[1].stopped_by == "exception"


def test_the_task_that_raised_has_the_exception(one_refused: list[History]) -> None:
    assert isinstance(one_refused[1].error, OwnError)


def test_no_tasks_give_no_histories() -> None:
    assert AgentTestLoop(run_tests, agent).run_many([]) == []


def test_tasks_may_come_from_a_generator() -> None:
    histories = AgentTestLoop(run_tests, agent).run_many(str(i) for i in range(3))
    assert [history.task for history in histories] == ["0", "1", "2"]


def test_run_many_works_where_an_event_loop_runs_already() -> None:
    async def main() -> list[History]:
        return AgentTestLoop(run_tests, async_agent).run_many([1, 2])

    assert asyncio.run(main()) == [WHOLE, WHOLE]


def test_run_many_keeps_a_journal_for_each_task(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "for it"
    AgentTestLoop(run_tests, agent).run_many("ab", journal_dir=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["task-0000.jsonl", "task-0001.jsonl"]


@pytest.mark.parametrize("agents", [(refusing_agent, agent), (async_refusing_agent, async_agent)])
def test_run_many_goes_on_from_its_journals(agents: tuple[Any, Any], tmp_path: Path) -> None:
    AgentTestLoop(run_tests, agents[0]).run_many(range(3), journal_dir=tmp_path)
    again = AgentTestLoop(run_tests, agents[1]).run_many(range(3), journal_dir=tmp_path)
    assert again == [WHOLE] * 3


def test_run_many_does_not_do_again_what_is_in_its_journals(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def noting_agent(history: Sequence[FeedbackEntry], task: int) -> str:
        asked.append((task, len(history)))
        return agent(history, task)

    AgentTestLoop(run_tests, refusing_agent).run_many(range(3), journal_dir=tmp_path)
    AgentTestLoop(run_tests, noting_agent).run_many(range(3), journal_dir=tmp_path)
    assert asked == [(1, 2), (1, 3), (1, 4)]


def test_a_broken_journal_of_one_task_leaves_the_others_alone(tmp_path: Path) -> None:
    (tmp_path / "task-0001.jsonl").write_text("no journal\n")
    histories = AgentTestLoop(run_tests, agent).run_many(range(3), journal_dir=tmp_path)
    assert [type(history.error) for history in histories] == [type(None), StoreError, type(None)]


def test_run_many_refuses_the_single_journal_of_its_loop(tmp_path: Path) -> None:
    loop = AgentTestLoop(run_tests, agent, journal=tmp_path / "run.jsonl")
    with pytest.raises(ValueError, match=r"run_many\(journal_dir=\.\.\.\)"):
        loop.run_many([1])


# -- history --------------------------------------------------------------------------------------


def test_the_agent_sees_the_history_grow() -> None:
    seen: list[History] = []

    def keeping_agent(history: History, task: object) -> str:
        seen.append(history)
        return agent(history, task)

    AgentTestLoop(run_tests, keeping_agent).run()
    assert [len(history) for history in seen] == [5] * 5


def test_the_agent_sees_a_history_that_is_under_way() -> None:
    seen: list[str | None] = []

    def looking_agent(history: History, task: object) -> str:
        seen.append(history.stopped_by)
        return "4"

    AgentTestLoop(run_tests, looking_agent).run()
    assert seen == [None]


def test_the_agent_cannot_change_the_history() -> None:
    with pytest.raises((AttributeError, TypeError)):
        WHOLE[0] = WHOLE[1]


def test_a_history_is_read_like_a_tuple() -> None:
    assert [WHOLE[i].iteration for i in (0, 4, -1, -5)] == [1, 5, 5, 1]


@pytest.mark.parametrize("place", [5, -6])
def test_a_place_outside_the_history_is_an_index_error(place: int) -> None:
    with pytest.raises(IndexError):
        WHOLE[place]


def test_a_place_that_is_no_number_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        WHOLE["0"]


@pytest.mark.parametrize(
    "part", [slice(2), slice(1, -1), slice(None, None, -2), slice(9, 12), slice(-2, None)], ids=str
)
def test_a_slice_is_a_tuple_of_entries(part: slice) -> None:
    assert WHOLE[part] == tuple(WHOLE)[part]


def test_a_history_is_a_sequence() -> None:
    assert isinstance(WHOLE, Sequence)


def test_a_history_can_be_read_backwards() -> None:
    assert [entry.iteration for entry in reversed(WHOLE)] == [5, 4, 3, 2, 1]


def test_a_history_can_be_matched() -> None:
    match WHOLE:
        case [first, *_]:
            assert first.iteration == 1
        case _:
            pytest.fail("not seen as a sequence")


def test_an_entry_can_be_looked_for() -> None:
    assert WHOLE[3] in WHOLE


def test_an_iterator_keeps_to_what_was_there_when_it_began() -> None:
    lengths: list[int] = []

    def iterating_agent(history: History, task: object) -> str:
        lengths.append(sum(1 for _ in history))
        return agent(history, task)

    AgentTestLoop(run_tests, iterating_agent).run()
    assert lengths == [0, 1, 2, 3, 4]


def test_to_numpy_has_a_row_an_iteration() -> None:
    rows = [
        (r.pass_rate, r.severity_score, r.progression, r.coverage_score, r.speed_score, r.total)
        for r in (entry.reward for entry in WHOLE)
    ]
    np.testing.assert_array_equal(WHOLE.to_numpy(), rows)


def test_to_numpy_is_float64() -> None:
    assert WHOLE.to_numpy().dtype == np.float64


def test_to_numpy_of_nothing_keeps_its_columns() -> None:
    assert History().to_numpy().shape == (0, len(History.COLUMNS))


def test_the_learning_curve_is_that_of_the_entries() -> None:
    assert WHOLE.learning_curve() == learning_curve(list(WHOLE))


def test_the_convergence_rate_is_the_mean_gain() -> None:
    assert WHOLE.convergence_rate() == 0.25


def test_the_reward_trend_is_that_of_the_last_iterations() -> None:
    history = AgentTestLoop(run_tests, agent, strategy=PassRate()).run()
    assert history.reward_trend(window=3) == pytest.approx(0.25)


def test_best_is_the_highest_total() -> None:
    history = AgentTestLoop(scripted(1, 3, 2), agent, 3, strategy=PassRate()).run()
    assert history.best.iteration == 2


def test_best_is_the_first_of_equals() -> None:
    history = AgentTestLoop(scripted(1, 2, 2), agent, 3, strategy=PassRate()).run()
    assert history.best.iteration == 2


def test_there_is_no_best_of_nothing() -> None:
    assert History().best is None


def test_histories_with_the_same_entries_and_end_are_equal() -> None:
    assert History(WHOLE, stopped_by="all_passed") == WHOLE


def test_histories_that_ended_otherwise_differ() -> None:
    assert History(WHOLE, stopped_by="max_iterations") != WHOLE


def test_histories_with_other_entries_differ() -> None:
    assert History(WHOLE[:4], stopped_by="all_passed") != WHOLE


def test_a_history_equals_no_list() -> None:
    assert list(WHOLE) != WHOLE


def test_a_history_cannot_be_hashed_since_it_grows() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(WHOLE)


@pytest.mark.parametrize(
    ("history", "text"),
    [
        (WHOLE, "<History of 5 iterations, best reward 0.750, all_passed>"),
        (History(), "<History of 0 iterations, under way>"),
    ],
)
def test_the_repr_is_a_short_line_with_the_counts(history: History, text: str) -> None:
    assert repr(history) == text


def test_the_repr_of_a_loop_is_a_short_line() -> None:
    assert repr(AgentTestLoop(run_tests, agent, 7)) == "<AgentTestLoop of at most 7 iterations>"


COPIES = {
    "pickle": lambda history: pickle.loads(pickle.dumps(history)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "json": lambda history: History.from_json(history.to_json()),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_has_the_same_entries_and_end(way: str) -> None:
    assert COPIES[way](WHOLE) == WHOLE


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_has_the_same_task_and_time(way: str) -> None:
    copied = COPIES[way](WHOLE)
    assert (copied.task, copied.duration_ms) == (WHOLE.task, WHOLE.duration_ms)


def test_an_unknown_end_is_a_value_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match="stopped_by must be one of all_passed, max_iterations"):
        History(stopped_by="tired")


def test_what_is_no_entry_is_a_type_error_that_says_where() -> None:
    with pytest.raises(TypeError, match=r"history\[1\] must be FeedbackEntry, got str"):
        History([WHOLE[0], "second"])


# -- figures --------------------------------------------------------------------------------------


@pytest.fixture
def plt() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_a_plot_shows_the_learning_curve(plt: Any) -> None:
    shown = {line.get_label(): list(line.get_ydata()) for line in WHOLE.plot().get_lines()[:2]}
    curve = WHOLE.learning_curve()
    assert shown == {
        "pass rate": [point.pass_rate for point in curve],
        "reward": [point.total_reward for point in curve],
    }


def test_a_plot_is_drawn_where_asked(plt: Any) -> None:
    _, ax = plt.subplots()
    assert WHOLE.plot(ax) is ax


def test_a_plot_of_nothing_can_be_drawn(plt: Any) -> None:
    History().plot().figure.canvas.draw()


def test_a_plot_of_a_long_run_can_be_drawn(plt: Any) -> None:
    AgentTestLoop(scripted(*[1, 2, 1] * 40), agent, 120).run().plot().figure.canvas.draw()


def test_a_plot_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'testgrad\[plot\]'"):
        WHOLE.plot()


# -- what a notebook shows ------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Reads strictly: every element is closed, in order; keeps elements, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "unclosed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes.extend(name for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


HOSTILE = [
    "<script>alert(1)</script>",
    "</td></tr></table></div><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    "&lt;b&gt; &amp; &#60;b>",
    "<!-- ",
    "<![CDATA[",
    "<svg/onload=alert(1)>",
    "\x00\x1b[31m\udcff\u202e",
]
ELEMENTS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
CURVE = {"svg", "line", "polyline", "g", "text", "tspan"}
ATTRIBUTES = {
    *("viewbox", "width", "height", "role", "aria-label", "style", "x1", "y1", "x2", "y2"),
    *("stroke", "points", "fill", "stroke-width", "font-size", "font-family", "x", "y"),
    *("text-anchor", "colspan"),
}


def hostile_suite(text: str) -> SuiteResult:
    test = TestResult(text, "failed", message=text, details=text, reason=text)
    return SuiteResult([test], text, problems=[text], warnings=[text])


def hostile_history(text: str) -> History:
    entry = build_feedback(CodeSubmission(text, 1, text), hostile_suite(text))
    name = text.encode("ascii", "ignore").decode().replace("\x00", "")
    error = type(name, (Exception,), {})(text)
    return History([entry], task=text, stopped_by="exception", error=error)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("made", [hostile_suite, hostile_history])
def test_hostile_text_brings_no_element_into_the_page(
    made: Callable[[str], Any], hostile: str
) -> None:
    assert set(Page(made(hostile)._repr_html_()).elements) <= ELEMENTS | CURVE


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("made", [hostile_suite, hostile_history])
def test_hostile_text_brings_no_attribute_into_the_page(
    made: Callable[[str], Any], hostile: str
) -> None:
    assert set(Page(made(hostile)._repr_html_()).attributes) <= ATTRIBUTES


@pytest.mark.parametrize("hostile", HOSTILE[:-1])
@pytest.mark.parametrize("made", [hostile_suite, hostile_history])
def test_hostile_text_is_shown_as_it_is(made: Callable[[str], Any], hostile: str) -> None:
    assert any(hostile in text for text in Page(made(hostile)._repr_html_()).texts)


def test_an_exception_without_a_message_to_show_is_shown_by_its_name() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    page = Page(History(stopped_by="exception", error=MuteError())._repr_html_())
    assert any("MuteError" in text for text in page.texts)


def test_a_history_is_shown_with_a_row_an_iteration() -> None:
    assert Page(WHOLE._repr_html_()).elements.count("tr") == 1 + len(WHOLE)


def test_a_history_is_shown_with_its_curve() -> None:
    assert Page(WHOLE._repr_html_()).elements.count("polyline") == 2


def test_a_history_is_shown_with_the_first_failing_test() -> None:
    assert "test_2: no 2" in Page(WHOLE._repr_html_()).texts


def test_a_history_of_nothing_is_shown_without_a_curve() -> None:
    assert "svg" not in Page(History()._repr_html_()).elements


def test_a_history_of_one_iteration_is_shown_with_its_curve() -> None:
    assert "svg" in Page(History(WHOLE[:1])._repr_html_()).elements


@pytest.fixture(scope="module")
def long_page() -> str:
    """Ten thousand iterations, with messages of a megabyte."""
    test = TestResult("t" * 1_000_000, "failed", message="m" * 1_000_000)
    suite = SuiteResult([test])
    entries = [build_feedback(CodeSubmission("code", i + 1), suite) for i in range(10_000)]
    history = History(entries, stopped_by="exception", error=ValueError("e" * 1_000_000))
    return history._repr_html_()


def test_a_long_history_is_shown_cut(long_page: str) -> None:
    assert len(long_page) < 50_000


def test_a_long_history_says_how_much_is_left_out(long_page: str) -> None:
    assert "… 9940 more …" in long_page


def test_a_long_history_is_shown_with_both_ends(long_page: str) -> None:
    assert all(f"<td>{iteration}</td>" in long_page for iteration in (1, 10_000))


def test_a_large_suite_is_shown_cut() -> None:
    suite = suite_of(900, tests=1_000)
    assert len(Page(suite._repr_html_()).texts) < 500


def test_a_large_suite_is_shown_with_its_failing_tests_first() -> None:
    assert "test_999" in Page(suite_of(999, tests=1_000)._repr_html_()).texts


# -- memory and re-entry --------------------------------------------------------------------------


class Watched:
    """A task that can be watched for being let go of."""


def test_a_run_that_raised_is_let_go_of() -> None:
    def broken(history: Sequence[FeedbackEntry], task: object) -> str:
        raise ConnectionError

    task = Watched()
    watch = weakref.ref(task)
    with contextlib.suppress(ConnectionError):
        AgentTestLoop(run_tests, broken).run(task)
    del task
    gc.collect()
    assert watch() is None


def test_an_agent_that_holds_its_loop_is_let_go_of() -> None:
    class Holder(Watched):
        loop: AgentTestLoop | None = None

        def __call__(self, history: Sequence[FeedbackEntry], task: object) -> str:
            return str(len(history))

    holder = Holder()
    holder.loop = AgentTestLoop(run_tests, holder)
    holder.loop.run()
    watch = weakref.ref(holder)
    del holder
    gc.collect()
    assert watch() is None


def test_a_finaliser_of_a_task_may_look_at_the_loop() -> None:
    seen: list[object] = []

    class Curious:
        def __del__(self) -> None:
            seen.append(loop.history)

    loop = AgentTestLoop(run_tests, agent)
    loop.run(Curious())
    loop.run()
    gc.collect()
    assert len(seen) == 1


def test_weights_beside_a_strategy_are_refused() -> None:
    with pytest.raises(ValueError, match="reward_weights and target_ms make the default strategy"):
        AgentTestLoop(run_tests, agent, reward_weights=RewardWeights(), strategy=Gated())


def test_a_strategy_given_as_a_class_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"did you mean Gated\(\)"):
        AgentTestLoop(run_tests, agent, strategy=Gated)


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_run_many_refuses_journals_of_other_tasks(kind: str, tmp_path: Path) -> None:
    agent_fn = agent if kind == "plain" else async_agent
    AgentTestLoop(run_tests, agent_fn).run_many(["a", "b"], journal_dir=tmp_path)
    again = AgentTestLoop(run_tests, agent_fn).run_many(["b", "b"], journal_dir=tmp_path)
    assert [type(history.error) for history in again] == [StoreError, type(None)]


def test_a_task_that_json_would_change_is_refused(tmp_path: Path) -> None:
    loop = AgentTestLoop(run_tests, agent, journal=tmp_path / "run.jsonl")
    with pytest.raises(TypeError, match="plain JSON data"):
        loop.run({1: (1, 2)})
