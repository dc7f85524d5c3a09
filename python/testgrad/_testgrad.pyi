"""
The binary half of testgrad; use the package `testgrad`, which re-exports it.
"""

from _typeshed import SupportsGetItem
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from numpy import float64
from numpy.typing import ArrayLike, NDArray
from os import PathLike
from pathlib import Path
from testgrad.enums import TestSeverity, TestStatus
from testgrad.errors import NoVerdict
from typing import Any, Final, SupportsFloat, SupportsIndex, final

__all__ = ["ABSENT", "DEBUG_BUILD", "NO_VERDICT", "__version__", "AgentTestLoop", "Binary", "CodeSubmission", "CommandRunner", "Containment", "Curriculum", "FeedbackEntry", "FunctionRunner", "Gated", "GroupSignal", "History", "Layer", "LearningPoint", "Limits", "LoopRun", "Mark", "MultiSignal", "PassRate", "Progression", "PytestRunner", "RewardSignal", "RewardWeights", "SeverityWeighted", "StdioRunner", "SuiteResult", "Task", "TestResult", "_TaskReader", "_cancel_runs", "_encode_value", "_end", "_idle_workers", "_is_sound", "_launch", "_parse_value", "advantages", "binary_reward", "build_feedback", "close", "compute_reward_signal", "convergence_rate", "decoupled_advantages", "difficulty_score", "difficulty_weights", "extract_failing_tests", "group_signal", "infer_strategy", "learning_curve", "leave_one_out_baseline", "pass_rate_reward", "progression_reward", "reward_trend", "rewards", "rewards_from_arrays", "run_many", "run_pytest", "severity_weighted_reward", "speed_score"]

ABSENT: Final[int]
"""
Status code of a test that a suite does not have (padding).
"""

DEBUG_BUILD: Final[bool]
"""
True when this is a debug build, which no speed should be judged by.
"""

NO_VERDICT: Final[int]
"""
Status code of a suite that could not be judged: its row becomes NaN.
"""

__version__: Final[str]
"""
The version of the package.
"""

@final
class AgentTestLoop:
    """
    The agent-test loop: an agent proposes code, tests judge it, reward and feedback go back to the agent.

    An exception in a callable reaches the caller as it is, with the history so far as its attribute `history`;
    so does Ctrl-C. The last history is also `loop.history`.

    Args:
        test_runner: `test_runner(code) -> SuiteResult`, plain or async.
        agent_fn: `agent_fn(history, task) -> str`, plain or async.
        max_iterations: The most iterations, >= 1.
        reward_weights: How much each component counts; None means `RewardWeights()`.
        strategy: One of testgrad's strategies or any `strategy(suite, previous) -> RewardSignal`; None means
            `MultiSignal(reward_weights, target_ms)`.
        target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
        patience: Stop after that many iterations in a row without a better total.
        max_time_s: Stop after that many seconds of wall time; checked between iterations.
        stop_when: `stop_when(history) -> bool`, asked after each iteration.
        on_iteration: `on_iteration(entry)`, called after each iteration.
        progress: Show a bar, in a terminal and in a notebook.
        journal: A file that gets each iteration before the next begins; see `resume`.

    Raises:
        ValueError: A number out of range, named.
        TypeError: Something that is not callable where a callable belongs.

    Example:
        >>> from testgrad import AgentTestLoop, SuiteResult, TestResult
        >>> def agent(history, task):
        ...     return f"x = {len(history)}"
        >>> def run_tests(code):
        ...     return SuiteResult([TestResult("x is 2", "passed" if code == "x = 2" else "failed")])
        >>> AgentTestLoop(run_tests, agent).run("make x 2")
        <History of 3 iterations, best reward 0.900, all_passed>
    """
    def __new__(cls, /, test_runner: Callable[..., Any], agent_fn: Callable[..., Any], max_iterations: SupportsIndex = 10, reward_weights: RewardWeights | None = None, *, strategy: Callable[..., Any] | None = None, target_ms: SupportsFloat | SupportsIndex = ..., patience: SupportsIndex | None = None, max_time_s: SupportsFloat | SupportsIndex | None = None, stop_when: Callable[..., bool] | None = None, on_iteration: Callable[..., object] | None = None, progress: bool = False, journal: str | PathLike[str] | None = None) -> AgentTestLoop: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def _begin(self, /, task: "object" = None, journal: str | PathLike[str] | None = None, *, one_of_many: bool = False) -> LoopRun:
        """
        Begins a run without driving it; one of many has no bar of its own.
        """
    def _resume(self, /, journal: str | PathLike[str] | None = None, *, one_of_many: bool = False) -> LoopRun:
        """
        Takes up the run in a journal without driving it; one of many has no bar of its own.
        """
    @property
    def agent_fn(self, /) -> Callable[..., Any]:
        """
        The agent.
        """
    def arun(self, /, task: "object" = None) -> Coroutine[Any, Any, History]:
        """
        Runs the loop to its end with async or plain callables; plain ones run in threads.

        At Ctrl-C `asyncio.run` raises a `KeyboardInterrupt` of its own; the history is `loop.history`.

        Args:
            task: Handed to the agent as it is; with a journal it must be plain JSON data.
        """
    @property
    def history(self, /) -> History | None:
        """
        The history of the last run; None before the first.
        """
    @property
    def journal(self, /) -> Path | None:
        """
        The journal's path.
        """
    @property
    def progress(self, /) -> bool:
        """
        Whether a bar is shown.
        """
    def resume(self, /, journal: str | PathLike[str] | None = None) -> History:
        """
        Goes on with the run in a journal, after a kill at any moment; done iterations are not done again.

        The agent must give the same answer to the same history for the whole to equal an uninterrupted run.

        Args:
            journal: The file; None means the loop's own.

        Raises:
            FileNotFoundError: There is no such file.
            StoreError: It is in use, broken (with the line), or was written under another strategy.
        """
    def run(self, /, task: "object" = None) -> History:
        """
        Runs the loop to its end with plain callables.

        Args:
            task: Handed to the agent as it is; with a journal it must be plain JSON data.

        Raises:
            StoreError: The journal already holds a run, is in use, or cannot be written.
            TypeError: The agent did not return str, or the runner not a `SuiteResult`.
        """
    def run_many(self, /, tasks: "Iterable[object]", *, concurrency: SupportsIndex = 8, journal_dir: str | PathLike[str] | None = None) -> "list[History]":
        """
        Runs one loop a task, many at once; plain callables run in threads, async ones in one event loop.

        A task whose callable raises ends with `history.stopped_by == "exception"` and the exception in
        `history.error`; the others go on. Ctrl-C raises `KeyboardInterrupt` with the histories so far as its
        attribute `histories`.

        Args:
            tasks: The tasks.
            concurrency: How many at once, >= 1.
            journal_dir: A directory that gets a journal a task, `task-0000.jsonl` and so on; a task whose journal
                is there goes on from it.

        Returns:
            One history a task, in the order of the tasks.
        """
    @property
    def test_runner(self, /) -> Callable[..., Any]:
        """
        The test runner.
        """

@final
class Binary:
    """
    1.0 when all tests passed, else 0.0.
    """
    def __call__(self, /, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /) -> Binary: ...
    def __reduce__(self, /) -> tuple[type, tuple[float, ...]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The strategy's name.
        """

@final
class CodeSubmission:
    """
    Code under judgement, with its place in the run and the strategy it was written under.

    Args:
        code: The code.
        iteration: Which turn of the loop it is, from 1.
        strategy: What it was meant to do; see `infer_strategy`.
    """
    __match_args__: Final[tuple[str, str, str]]
    """
    For `match`.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, code: str, iteration: SupportsIndex, strategy: str = ...) -> CodeSubmission: ...
    def __reduce__(self, /) -> tuple[type, tuple[str, int, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def code(self, /) -> str:
        """
        The code.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> CodeSubmission:
        """
        The value that `to_json` wrote.
        """
    @property
    def iteration(self, /) -> int:
        """
        Which turn of the loop it is, from 1.
        """
    @property
    def strategy(self, /) -> str:
        """
        What it was meant to do.
        """
    def to_json(self, /) -> str:
        """
        The value as JSON; `from_json` reads it back.
        """

@final
class CommandRunner:
    """
    Judges candidates by a command, contained, in a fresh directory beside a copy of the tests.

    The suite has one test, named after the command: PASSED when it ends with exit code 0, else FAILED with
    the end of what it printed, or ERROR with a reason when it met a limit. Nothing but the exit code is
    read, which a candidate that runs inside the command can forge (`suite.trust` is "reported").

    Args:
        argv: The program, by a path or a name to be looked up in PATH, and its arguments.
        tests: A directory, a file, or a mapping of relative paths to texts; a path is read at every call.
        replaces: The files of the tests that a candidate may replace; a candidate that is only code
            becomes the first of them.
        limits: What the command may use.
        python: The interpreter whose worker starts the command; None means this one.
        env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
        readable: Paths that may be read beside the system: tool chains, caches of packages.
        require: The least containment, "full", "partial" or "weak", or mechanisms that must be enforced.
        avoid: Mechanisms of containment not to use.
        repeat: Judge so many times; a command that changes its mind is flaky.
        cache: Remember so many suites, by the content of all files. Only for runs that always end alike.

    Raises:
        ValueError: No command, a path that leads outside, an unknown mechanism.
        FileNotFoundError: There are no such tests.

    Example:
        >>> from testgrad import CommandRunner
        >>> run = CommandRunner(["grep", "-q", "hello", "greeting.txt"], {}, replaces=["greeting.txt"])
        >>> run("hello world").all_passed, run("good bye").all_passed
        (True, False)
    """
    def __call__(self, /, candidate: str | PathLike[str] | Mapping[str, str]) -> SuiteResult:
        """
        Judges one candidate.

        Args:
            candidate: Code, or a mapping of relative paths to texts, or a path to a workspace or to one file.
                It lies beside the tests and replaces none of them but those in `replaces`.

        Raises:
            NoVerdict: Our side failed: no such interpreter, less containment than required.
            FileNotFoundError: There is no such workspace.
        """
    def __new__(cls, /, argv: "Sequence[str]", tests: str | PathLike[str] | Mapping[str, str], *, replaces: "Sequence[str]" = ..., limits: Limits | None = None, python: str | PathLike[str] | None = None, env: dict[str, str] | None = None, readable: SupportsGetItem[int, str | PathLike[str]] = ..., require: str | Sequence[str] = ..., avoid: str | Sequence[str] = ..., repeat: SupportsIndex = 1, cache: SupportsIndex = 0) -> CommandRunner: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def run_many(self, /, candidates: "Iterable[str | PathLike[str] | Mapping[str, str]]", *, workers: SupportsIndex | None = None, progress: bool = False, deadline_s: SupportsFloat | SupportsIndex | None = None) -> list[SuiteResult | NoVerdict]:
        """
        Judges many candidates at once.

        Args:
            candidates: The candidates, as for a single call.
            workers: How many run at a time, >= 1; None means one a core.
            progress: Show a bar.
            deadline_s: Seconds for all together, > 0; what is not done then is `NoVerdict`.

        Returns:
            One suite a candidate, in their order; where our side failed, the `NoVerdict` that says why.

        Raises:
            KeyboardInterrupt: With what was done until then as `results`.
        """

@final
class Containment:
    """
    What really held a run: the mechanisms, in the order of [`NAMES`].
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, layers: SupportsGetItem[int, Layer]) -> Containment: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def layers(self, /) -> tuple[Layer, ...]:
        """
        The mechanisms, from the outside in.
        """
    @property
    def level(self, /) -> str:
        """
        "full" with namespaces and system calls filtered; "partial" where files and system calls are closed
        without namespaces; "weak" where only limits hold.
        """

@final
class Curriculum:
    """
    Pass rate first, then the multi-signal sum, binary for the final acceptance.

    The stage is chosen by the pass rate of the previous suite: below `threshold` the total is the pass rate,
    from there on the weighted sum, and once everything has passed before, binary. A suite that passes
    everything earns exactly 1.0 in every stage.

    Args:
        threshold: The previous pass rate from which the weighted sum counts, 0..1.
        weights: How much each component counts in the second stage; None means `RewardWeights()`.
        target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.

    Raises:
        ValueError: A threshold outside 0..1, a target that is not finite and > 0.
    """
    def __call__(self, /, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, threshold: SupportsFloat | SupportsIndex = 0.8, weights: RewardWeights | None = None, target_ms: SupportsFloat | SupportsIndex = ...) -> Curriculum: ...
    def __reduce__(self, /) -> tuple[type, tuple[float, RewardWeights, float]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The strategy's name.
        """
    @property
    def target_ms(self, /) -> float:
        """
        The duration in milliseconds at which the speed score has fallen to 1/e.
        """
    @property
    def threshold(self, /) -> float:
        """
        The previous pass rate from which the multi-signal sum counts, 0..1.
        """
    @property
    def weights(self, /) -> RewardWeights:
        """
        How much each component counts in the second stage.
        """

@final
class FeedbackEntry:
    """
    One turn of the loop: what was submitted, what the tests said, and what it earned.

    Args:
        iteration: Which turn of the loop it is, from 1.
        submission: What was submitted.
        suite_result: What the tests said.
        reward: What it earned.
        failing_tests: Name and message of each failing test that the agent may see.
    """
    __match_args__: Final[tuple[str, str, str, str, str]]
    """
    For `match`.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, iteration: SupportsIndex, submission: CodeSubmission, suite_result: SuiteResult, reward: RewardSignal, failing_tests: SupportsGetItem[int, tuple[str, str]]) -> FeedbackEntry: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def failing_tests(self, /) -> tuple[tuple[str, str], ...]:
        """
        Name and message of each failing test that the agent may see.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> FeedbackEntry:
        """
        The value that `to_json` wrote.
        """
    @property
    def iteration(self, /) -> int:
        """
        Which turn of the loop it is, from 1.
        """
    @property
    def reward(self, /) -> RewardSignal:
        """
        What it earned.
        """
    @property
    def submission(self, /) -> CodeSubmission:
        """
        What was submitted.
        """
    @property
    def suite_result(self, /) -> SuiteResult:
        """
        What the tests said.
        """
    def to_json(self, /) -> str:
        """
        The value as JSON; `from_json` reads it back.
        """
    def to_prompt(self, /, max_chars: SupportsIndex = ..., style: str = "markdown") -> str:
        """
        What to show the agent next.

        Failing tests come worst first: critical before major before minor, errors before failures, else in the
        suite's order. Hidden tests are shown only as counts.

        Args:
            max_chars: The budget in characters. Messages and details are cut to it; the name of a failing test
                never is, so the text is longer when the names alone are.
            style: "markdown", "xml" or "json".

        Raises:
            ValueError: An unknown style.
        """

@final
class FunctionRunner:
    """
    Judges a function by what it returns for given arguments: each case in a fresh contained process.

    The expected values never enter the candidate's process (`suite.trust` is "isolated"): it gets the
    arguments, hands back plain data, and the comparison is done outside. A right value, or the expected
    exception, is PASSED; another value or exception is FAILED; a module that cannot be imported is ERROR
    "collection" in every case; a crash or a limit is ERROR "crash", "timeout", "memory", "output" or
    "disk" in the case it happened in, and the next cases run in a fresh process.

    Args:
        entry_point: What to call: "f", "Class.method" (of an instance made without arguments for each
            call), or a name that only the candidate's class `Solution` has.
        cases: Mappings with "args" (a sequence), "kwargs" (a mapping), and "expected" (plain data) or
            "raises" (the name of an exception class), and where wanted "name", "severity" and "timeout_s";
            or pairs of args and expected value; or the same as JSON text.
        compare: "exact" (1, 1.0 and True are three values), "floats" (numbers within `tolerance`), or
            "unordered" (the outermost list in any order).
        tolerance: |a - b| <= tolerance * max(1, |b|), b the expected one; None means exact, or 1e-6 with
            "floats".
        nan_equal: Whether NaN is what a case that expects NaN wants.
        sequences_equal: Whether a list is the same as a tuple of the same items, as for expected values
            that came from JSON.
        fresh: "process" calls each case in a process of its own; "program" all cases of a candidate in one,
            which is faster and lets one call leave something for the next.
        clock: What durations are: "elapsed" (less what the machine made the candidate wait for a processor) or
            "cpu" (processor time, which needs `fresh="process"`).
        module: The name under which the candidate is imported.
        limits: What a candidate may use; `timeout_s` is for all cases, `test_timeout_s` for each.
        python: The interpreter, 3.8 or later; None means this one.
        preload: Modules to import before the candidate, once for many of them, such as "numpy".
        env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
        seed: Seeds `random` and the hashes of strings; None means that only the hashes are fixed.
        readable: Paths that the candidate may read beside the system and the interpreter.
        require: The least containment, "full", "partial" or "weak", or mechanisms that must be enforced.
        avoid: Mechanisms of containment not to use.
        repeat: Judge so many times; a case that changes its mind is flaky and counts as its worst outcome.
        cache: Remember so many suites, by the content of all files. Only for runs that always end alike.
        stop_at: "first_failure" ends the run at the first case that does not pass.
        on_tamper: What to do with a candidate that was seen to tamper with its judge or to try what containment
            refuses (`suite.marks`): "report" says it, with "zero" no test counts as passed, with "no_verdict"
            there is none.

    Raises:
        ValueError: A case that is none or not plain data, an unknown comparison or mechanism.

    Example:
        >>> from testgrad import FunctionRunner
        >>> run = FunctionRunner("add", [((1, 2), 3), {"args": ["a", 1], "raises": "TypeError"}])
        >>> run("def add(a, b): return a + b").all_passed
        True
        >>> run("def add(a, b): return 3").failing[0].message
        'returned 3, expected TypeError to be raised'
    """
    def __call__(self, /, candidate: str | PathLike[str] | Mapping[str, str]) -> SuiteResult:
        """
        Judges one candidate.

        Args:
            candidate: The code of the module, or a mapping of relative paths to texts, or a path to the
                workspace it was written in (or to the one file).

        Raises:
            NoVerdict: Our side failed: no such interpreter, less containment than required.
            FileNotFoundError: There is no such workspace.
        """
    def __new__(cls, /, entry_point: str, cases: "str | Iterable[tuple[Sequence[object], object] | Mapping[str, object]]", *, compare: str = "exact", tolerance: SupportsFloat | SupportsIndex | None = None, nan_equal: bool = True, sequences_equal: bool = False, fresh: str = "process", clock: str = "elapsed", module: str = "solution", limits: Limits | None = None, python: str | PathLike[str] | None = None, preload: SupportsGetItem[int, str] = ..., env: dict[str, str] | None = None, seed: SupportsIndex | None = None, readable: SupportsGetItem[int, str | PathLike[str]] = ..., require: str | Sequence[str] = ..., avoid: str | Sequence[str] = ..., repeat: SupportsIndex = 1, cache: SupportsIndex = 0, stop_at: str | None = None, on_tamper: str = "report") -> FunctionRunner: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def run_many(self, /, candidates: "Iterable[str | PathLike[str] | Mapping[str, str]]", *, workers: SupportsIndex | None = None, progress: bool = False, deadline_s: SupportsFloat | SupportsIndex | None = None) -> list[SuiteResult | NoVerdict]:
        """
        Judges many candidates at once.

        Args:
            candidates: The candidates, as for a single call.
            workers: How many run at a time, >= 1; None means one a core.
            progress: Show a bar.
            deadline_s: Seconds for all together, > 0; what is not done then is `NoVerdict`.

        Returns:
            One suite a candidate, in their order; where our side failed, the `NoVerdict` that says why.

        Raises:
            KeyboardInterrupt: With what was done until then as `results`.
        """

@final
class Gated:
    """
    Correctness, and speed and coverage only in proportion to it; exactly 1.0 for full success.

    With correctness c = (w_pass_rate * pass_rate + w_severity * severity_score) / (w_pass_rate + w_severity),
    total = c * (w_pass_rate + w_severity + w_coverage * coverage_score + w_speed * speed_score) / (the sum of
    those four weights), and 1.0 when all tests passed. So 0 <= total <= c: what passes nothing earns nothing,
    however quickly it fails. Progression is left out: it depends on the way, not on the code.

    Args:
        weights: How much each component counts; None means `RewardWeights()`.
        target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.

    Raises:
        ValueError: A target that is not finite and > 0, or weights of which pass_rate and severity are both 0.
    """
    def __call__(self, /, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, weights: RewardWeights | None = None, target_ms: SupportsFloat | SupportsIndex = ...) -> Gated: ...
    def __reduce__(self, /) -> tuple[type, tuple[RewardWeights, float]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The strategy's name.
        """
    @property
    def target_ms(self, /) -> float:
        """
        The duration in milliseconds at which the speed score has fallen to 1/e.
        """
    @property
    def weights(self, /) -> RewardWeights:
        """
        How much each component counts; progression is not used.
        """

@final
class GroupSignal:
    """
    How many groups carry no signal under one strategy.

    Args:
        strategy: The name under which the totals were given.
        groups: How many groups have at least one verdict.
        all_equal: Groups whose rewards are all equal.
        within_resolution: Groups whose rewards differ by no more than the resolution.
        resolution: In units of the reward, >= 0.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, strategy: str, groups: SupportsIndex, all_equal: SupportsIndex, within_resolution: SupportsIndex, resolution: SupportsFloat | SupportsIndex) -> GroupSignal: ...
    def __reduce__(self, /) -> tuple[type, tuple[str, int, int, int, float]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def all_equal(self, /) -> int:
        """
        Groups whose rewards are all equal: their advantages are all zero.
        """
    @property
    def groups(self, /) -> int:
        """
        How many groups have at least one verdict.
        """
    @property
    def resolution(self, /) -> float:
        """
        The resolution, in units of the reward.
        """
    @property
    def strategy(self, /) -> str:
        """
        The name under which the totals were given.
        """
    @property
    def within_resolution(self, /) -> int:
        """
        Groups whose rewards differ by no more than the resolution, the equal ones included.
        """

@final
class History:
    """
    All turns of one run: a sequence of `FeedbackEntry` that grows while the run is under way.

    Args:
        entries: The turns, in order.
        task: What the run was asked to do.
        stopped_by: Why it ended: "all_passed", "max_iterations", "patience", "max_time", "stop_when",
            "interrupted" or "exception"; None while it is under way.
        duration_ms: Its wall time in milliseconds, >= 0.
        error: The exception that ended it.
    """
    COLUMNS: Final[tuple[str, str, str, str, str, str]]
    """
    The columns of `to_numpy`.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __iter__(self, /) -> Iterator[FeedbackEntry]: ...
    def __len__(self, /) -> int: ...
    def __new__(cls, /, entries: "Iterable[FeedbackEntry] | None" = None, *, task: "object" = None, stopped_by: str | None = None, duration_ms: SupportsFloat | SupportsIndex = 0.0, error: "BaseException | None" = None) -> History: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def __reversed__(self, /) -> Iterator[FeedbackEntry]: ...
    def _repr_html_(self, /) -> str: ...
    @property
    def best(self, /) -> FeedbackEntry | None:
        """
        The turn with the highest total, the first of equals; None before the first turn.
        """
    def convergence_rate(self, /) -> float | None:
        """
        The mean gain in pass rate an iteration; None for fewer than two iterations.
        """
    def count(self, /, value: "object") -> int:
        """
        How many entries are equal to `value`.
        """
    @property
    def duration_ms(self, /) -> float:
        """
        Wall time so far, in milliseconds.
        """
    @property
    def error(self, /) -> BaseException | None:
        """
        The exception that ended the run, if one did.
        """
    @staticmethod
    def from_journal(path: str | PathLike[str]) -> History:
        """
        The history in a journal, as far as it got; neither locks nor changes the file.

        Raises:
            FileNotFoundError: There is no such file.
            StoreError: The file is not a journal, with the line that is wrong.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> History:
        """
        The history that `to_json` wrote.
        """
    def index(self, /, value: "object") -> int:
        """
        The place of the first entry equal to `value`.

        Raises:
            ValueError: There is none.
        """
    def learning_curve(self, /) -> tuple[LearningPoint, ...]:
        """
        One point an iteration: pass rate, total, cumulative reward, tests fixed and broken.
        """
    def plot(self, /, ax: "Any" = None) -> Any:
        """
        The learning curve as a matplotlib figure; needs the extra `plot`.

        Args:
            ax: The matplotlib axes to draw on; None makes a new figure.

        Returns:
            The axes.
        """
    def reward_trend(self, /, window: SupportsIndex = 3) -> float:
        """
        The slope of the total reward over the last `window` (>= 2) iterations; 0.0 for fewer than two.
        """
    @property
    def stopped_by(self, /) -> str | None:
        """
        Why the run ended; None while it is under way.
        """
    @property
    def task(self, /) -> Any:
        """
        What the run was asked to do.
        """
    def to_json(self, /) -> str:
        """
        The entries and why the run ended, as JSON; `from_json` reads it back. The task must be JSON too.
        """
    def to_numpy(self, /) -> NDArray[float64]:
        """
        The rewards as an array.

        Returns:
            float64, shape (n, 6), columns named in `History.COLUMNS`.
        """

@final
class Layer:
    """
    One mechanism of containment and what became of it.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, name: str, status: str, reason: str = "") -> Layer: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        Its name.
        """
    @property
    def reason(self, /) -> str:
        """
        What it does here, or why it does not.
        """
    @property
    def status(self, /) -> str:
        """
        "enforced", "partial" (the reason says against what it does not hold) or "unavailable".
        """

@final
class LearningPoint:
    """
    One iteration's point on the learning curve.

    Args:
        iteration: Which turn of the loop it is.
        pass_rate: Share of the active tests that passed, 0..1.
        total_reward: The reward's total.
        cumulative_reward: The sum of the totals so far.
        tests_fixed: Tests that pass now and did not in the iteration before.
        tests_broken: Tests that passed in the iteration before and do not now.
    """
    __match_args__: Final[tuple[str, str, str, str, str, str]]
    """
    For `match`.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, iteration: SupportsIndex, pass_rate: SupportsFloat | SupportsIndex, total_reward: SupportsFloat | SupportsIndex, cumulative_reward: SupportsFloat | SupportsIndex, tests_fixed: SupportsIndex, tests_broken: SupportsIndex = 0) -> LearningPoint: ...
    def __reduce__(self, /) -> tuple[type, tuple[int, float, float, float, int, int]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def cumulative_reward(self, /) -> float:
        """
        The sum of the totals so far.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> LearningPoint:
        """
        The value that `to_json` wrote.
        """
    @property
    def iteration(self, /) -> int:
        """
        Which turn of the loop it is.
        """
    @property
    def pass_rate(self, /) -> float:
        """
        Share of the active tests that passed, 0..1.
        """
    @property
    def tests_broken(self, /) -> int:
        """
        Tests that passed in the iteration before and do not now.
        """
    @property
    def tests_fixed(self, /) -> int:
        """
        Tests that pass now and did not in the iteration before.
        """
    def to_json(self, /) -> str:
        """
        The value as JSON; `from_json` reads it back.
        """
    @property
    def total_reward(self, /) -> float:
        """
        The reward's total.
        """

@final
class Limits:
    """
    What a candidate may use; each has one default, which honest programs do not reach.

    Args:
        timeout_s: Time of a whole run in seconds, > 0: elapsed time, less what the machine made it wait
            for a processor.
        test_timeout_s: The same for one test or case; None means the run's.
        cpu_s: Processor time of a run, all its processes and threads together; None means `timeout_s` on
            every processor.
        memory_bytes: Memory of all its processes together, and of the files it writes.
        processes: Processes and threads at a time.
        file_bytes: Size of one file.
        scratch_bytes: Size of all its files together.
        open_files: Descriptors of one process.
        output_bytes: Bytes it may print, on each of standard output and standard error. A pytest run may
            print more; of that the beginning and the end are kept.
        stack_bytes: The main thread's stack.

    Raises:
        ValueError: A limit is out of range.

    Example:
        >>> from testgrad import Limits
        >>> Limits(timeout_s=2).memory_bytes
        1073741824
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, *, timeout_s: SupportsFloat | SupportsIndex = ..., test_timeout_s: SupportsFloat | SupportsIndex | None = None, cpu_s: SupportsFloat | SupportsIndex | None = None, memory_bytes: SupportsIndex = ..., processes: SupportsIndex = ..., file_bytes: SupportsIndex = ..., scratch_bytes: SupportsIndex = ..., open_files: SupportsIndex = ..., output_bytes: SupportsIndex = ..., stack_bytes: SupportsIndex = ...) -> Limits: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def cpu_s(self, /) -> float | None:
        """
        Processor time of a run in seconds.
        """
    @property
    def file_bytes(self, /) -> int:
        """
        Size of one file.
        """
    @property
    def memory_bytes(self, /) -> int:
        """
        Memory of all processes together.
        """
    @property
    def open_files(self, /) -> int:
        """
        Descriptors of one process.
        """
    @property
    def output_bytes(self, /) -> int:
        """
        Bytes on each of standard output and standard error.
        """
    @property
    def processes(self, /) -> int:
        """
        Processes and threads at a time.
        """
    @property
    def scratch_bytes(self, /) -> int:
        """
        Size of all files together.
        """
    @property
    def stack_bytes(self, /) -> int:
        """
        The main thread's stack.
        """
    @property
    def test_timeout_s(self, /) -> float | None:
        """
        Time of one test or case in seconds.
        """
    @property
    def timeout_s(self, /) -> float:
        """
        Time of a whole run in seconds.
        """

@final
class LoopRun:
    """
    One run under way: what it needs, and the means to hand it in. Used by the drivers.
    """
    def close(self, /) -> None:
        """
        Writes the end to the journal and lets go of it; closes the bar.
        """
    def code(self, /, code: "object") -> None:
        """
        Hands in what the agent returned.
        """
    def drive(self, /) -> History:
        """
        Runs to the end with plain callables.
        """
    def fail(self, /, error: "BaseException") -> None:
        """
        Ends the run because of an exception, which gets the history as its attribute.
        """
    @property
    def history(self, /) -> History:
        """
        The run's history.
        """
    def interrupt(self, /) -> None:
        """
        Ends the run where it is; a driver in another thread stops at its next step.
        """
    def need(self, /) -> tuple[str, str | None]:
        """
        What is needed next: ("code", None), ("tests", the code) or ("nothing", the reason).
        """
    def suite(self, /, suite: "object") -> FeedbackEntry:
        """
        Hands in what the runner returned, and finishes the turn: history, journal, callbacks, stop rules.
        """

@final
class Mark:
    """
    Something suspicious in a candidate.

    Args:
        kind: "tampering" changes what tests judge with, or does so if it can; "blocked" tries what containment
            refuses; "internals" refers to what runs the tests; "table" holds the answers of the tests; "gap"
            passes what it was shown and fails what it was not.
        evidence: What shows it, with file and line where there is one.
        test: The test in which it was seen.

    Raises:
        ValueError: An unknown kind.

    Example:
        >>> from testgrad import Mark
        >>> Mark("blocked", "solution.py, line 3: connects to 10.0.0.1, port 80", test="test_a.py::test_b").kind
        'blocked'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, kind: str, evidence: str, *, test: str | None = None) -> Mark: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def evidence(self, /) -> str:
        """
        What shows it, with file and line where there is one.
        """
    @property
    def kind(self, /) -> str:
        """
        "tampering", "blocked", "internals", "table" or "gap".
        """
    @property
    def test(self, /) -> str | None:
        """
        The test in which it was seen.
        """

@final
class MultiSignal:
    """
    The weighted sum of the components, not clamped.

    Args:
        weights: How much each component counts; None means `RewardWeights()`.
        target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.

    Raises:
        ValueError: A target that is not finite and > 0.
    """
    def __call__(self, /, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, weights: RewardWeights | None = None, target_ms: SupportsFloat | SupportsIndex = ...) -> MultiSignal: ...
    def __reduce__(self, /) -> tuple[type, tuple[RewardWeights, float]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The strategy's name.
        """
    @property
    def target_ms(self, /) -> float:
        """
        The duration in milliseconds at which the speed score has fallen to 1/e.
        """
    @property
    def weights(self, /) -> RewardWeights:
        """
        How much each component counts.
        """

@final
class PassRate:
    """
    The pass rate.
    """
    def __call__(self, /, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /) -> PassRate: ...
    def __reduce__(self, /) -> tuple[type, tuple[float, ...]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The strategy's name.
        """

@final
class Progression:
    """
    The progression: it telescopes, so its sum over a run is the final pass rate and stalling earns nothing.
    """
    def __call__(self, /, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /) -> Progression: ...
    def __reduce__(self, /) -> tuple[type, tuple[float, ...]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The strategy's name.
        """

@final
class PytestRunner:
    """
    Judges candidates by a real pytest, in a process of its own, contained like the candidate's.

    The tests see the candidate through a mirror of its module, and it sees nothing of them (`suite.trust` is
    "isolated"). Tests that cannot be apart from the code share a process with it: then `suite.trust` is
    "shared", and `suite.warnings` says why. What the tests and the reference are decides that, never a candidate.

    A test that passed is PASSED; a failed assertion or an exception in it is FAILED; a broken fixture,
    import, crash or limit is ERROR with a reason ("fixture", "collection", "crash", "timeout", "memory",
    "output", "disk", "interrupted"). When the process dies or hangs in a test, that test is the ERROR, the
    results before it stand, and a new process goes on with the rest. A test that got no turn is ERROR
    "not_run", never absent. A file that cannot be imported is one ERROR named after the file, or with
    `reference` or `expected` the ERROR of each of its tests. Severity comes from the markers
    `severity("critical")`, `critical`, `major` and `minor`. What held both is `suite.containment`.

    Args:
        tests: A directory, a file, or a mapping of relative paths to texts; a path is read at every call.
        module: The module that the tests import, such as "solution" or "pkg.mod".
        isolation: "process" keeps tests and pytest in one process and the candidate in another, a fresh one for
            each test; "none" runs both in one.
        limits: What a candidate may use.
        python: The interpreter, 3.8 or later with pytest; None means this one.
        preload: Modules to import before the candidate, once for many of them, such as "numpy".
        coverage: Measure the share of the candidate's lines that ran, with coverage.py; tests and candidate then
            share a process.
        args: Further arguments for pytest.
        plugins: The pytest plugins to load, as for its option `-p`; others are not loaded.
        env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
        seed: Seeds `random` and the hashes of strings; None means that only the hashes are fixed.
        readable: Paths that the tests may read beside the system and the interpreter; the candidate may where it
            shares their process.
        require: The least containment, "full", "partial" or "weak", or mechanisms that must be enforced.
        avoid: Mechanisms of containment not to use.
        repeat: Judge so many times; a test that changes its mind is flaky and counts as its worst outcome.
        cache: Remember so many suites, by the content of all files. Only for runs that always end alike.
        stop_at: "first_failure" ends the run at the first test that does not pass.
        on_tamper: What to do with a candidate that was seen to tamper with its judge or to try what containment
            refuses (`suite.marks`): "report" says it, with "zero" no test counts as passed, with "no_verdict"
            there is none.
        hidden: Further tests, which no feedback shows: their names are in `suite.hidden`. Given as `tests` are.
        reference: A candidate that is right. It is run once, before any other: its tests are then the ones that
            each suite has, one that it does not skip counts as failed where it is skipped, and tests that do not
            tell the same of it in a process of its own are run in one process with the candidate.
        expected: The tests that each suite has, by their names or by a suite, in place of the reference's.

    Raises:
        ValueError: A module that is no name, a path of the tests that leads outside, an unknown mechanism.
        FileNotFoundError: There are no such tests.

    Example:
        >>> from testgrad import PytestRunner
        >>> tests = {"test_add.py": "from solution import add\\ndef test_add(): assert add(1, 2) == 3"}
        >>> run = PytestRunner(tests)
        >>> run("def add(a, b): return a + b").all_passed
        True
        >>> run("def add(a, b): return a - b").failing[0].message
        'assert -1 == 3\\n +  where -1 = add(1, 2)'
    """
    def __call__(self, /, candidate: str | PathLike[str] | Mapping[str, str]) -> SuiteResult:
        """
        Judges one candidate.

        Args:
            candidate: The code of the module, or a mapping of relative paths to texts, or a path to the
                workspace it was written in (or to the one file). It lies beside the tests and replaces none
                of them; tests and pytest configuration in it are not used.

        Raises:
            NoVerdict: Our side failed: no such interpreter, no pytest in it, less containment than
                required, arguments that pytest refuses.
            FileNotFoundError: There is no such workspace.
        """
    def __new__(cls, /, tests: str | PathLike[str] | Mapping[str, str], *, module: str = "solution", isolation: str = "process", limits: Limits | None = None, python: str | PathLike[str] | None = None, preload: SupportsGetItem[int, str] = ..., coverage: bool = False, args: SupportsGetItem[int, str] = ..., plugins: SupportsGetItem[int, str] = ..., env: dict[str, str] | None = None, seed: SupportsIndex | None = None, readable: SupportsGetItem[int, str | PathLike[str]] = ..., require: str | Sequence[str] = ..., avoid: str | Sequence[str] = ..., repeat: SupportsIndex = 1, cache: SupportsIndex = 0, stop_at: str | None = None, on_tamper: str = "report", hidden: str | PathLike[str] | Mapping[str, str] | None = None, reference: "str | PathLike[str] | Mapping[str, str] | None" = None, expected: "Iterable[str] | SuiteResult | None" = None) -> PytestRunner: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def run_many(self, /, candidates: "Iterable[str | PathLike[str] | Mapping[str, str]]", *, workers: SupportsIndex | None = None, progress: bool = False, deadline_s: SupportsFloat | SupportsIndex | None = None) -> list[SuiteResult | NoVerdict]:
        """
        Judges many candidates at once.

        Args:
            candidates: The candidates, as for a single call.
            workers: How many run at a time, >= 1; None means one a core.
            progress: Show a bar.
            deadline_s: Seconds for all together, > 0; what is not done then is `NoVerdict`.

        Returns:
            One suite a candidate, in their order; where our side failed, the `NoVerdict` that says why.

        Raises:
            KeyboardInterrupt: With what was done until then as `results`.
        """

@final
class RewardSignal:
    """
    The reward as a vector plus its total.

    Args:
        pass_rate: Share of the active tests that passed, 0..1.
        severity_score: Share of the active severity weight that passed, 0..1.
        progression: Pass rate minus the previous pass rate, -1..1.
        coverage_score: Coverage of the candidate, 0..1; 0.0 when not measured.
        speed_score: exp(-time / target), 0..1.
        total: What the strategy makes of them.

    Raises:
        ValueError: A number outside its range.
    """
    __match_args__: Final[tuple[str, str, str, str, str, str]]
    """
    For `match`.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __float__(self, /) -> float: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, pass_rate: SupportsFloat | SupportsIndex, severity_score: SupportsFloat | SupportsIndex, progression: SupportsFloat | SupportsIndex, coverage_score: SupportsFloat | SupportsIndex, speed_score: SupportsFloat | SupportsIndex, total: SupportsFloat | SupportsIndex) -> RewardSignal: ...
    def __reduce__(self, /) -> tuple[type, tuple[float, float, float, float, float, float]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def coverage_score(self, /) -> float:
        """
        Coverage of the candidate, 0..1; 0.0 when not measured.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> RewardSignal:
        """
        The value that `to_json` wrote.
        """
    @property
    def pass_rate(self, /) -> float:
        """
        Share of the active tests that passed, 0..1.
        """
    @property
    def progression(self, /) -> float:
        """
        Pass rate minus the previous pass rate, -1..1.
        """
    @property
    def severity_score(self, /) -> float:
        """
        Share of the active severity weight that passed, 0..1.
        """
    @property
    def speed_score(self, /) -> float:
        """
        exp(-time / target), 0..1.
        """
    def to_json(self, /) -> str:
        """
        The value as JSON; `from_json` reads it back.
        """
    @property
    def total(self, /) -> float:
        """
        What the strategy makes of them.
        """

@final
class RewardWeights:
    """
    How much each component counts in the total.

    Args:
        pass_rate: Weight of the pass rate, finite and >= 0; so are the others.
        severity: Weight of the severity score.
        progression: Weight of the progression.
        coverage: Weight of the coverage.
        speed: Weight of the speed.

    Raises:
        ValueError: A weight that is negative, NaN or infinite.

    Example:
        >>> from testgrad import RewardWeights
        >>> RewardWeights(speed=0.0)
        RewardWeights(pass_rate=0.35, severity=0.25, progression=0.2, coverage=0.1, speed=0.0)
    """
    __match_args__: Final[tuple[str, str, str, str, str]]
    """
    For `match`.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, pass_rate: SupportsFloat | SupportsIndex = 0.35, severity: SupportsFloat | SupportsIndex = 0.25, progression: SupportsFloat | SupportsIndex = 0.20, coverage: SupportsFloat | SupportsIndex = 0.10, speed: SupportsFloat | SupportsIndex = 0.10) -> RewardWeights: ...
    def __reduce__(self, /) -> tuple[type, tuple[float, float, float, float, float]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def coverage(self, /) -> float:
        """
        Weight of the coverage.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> RewardWeights:
        """
        The value that `to_json` wrote.
        """
    @property
    def pass_rate(self, /) -> float:
        """
        Weight of the pass rate.
        """
    @property
    def progression(self, /) -> float:
        """
        Weight of the progression.
        """
    @property
    def severity(self, /) -> float:
        """
        Weight of the severity score.
        """
    @property
    def speed(self, /) -> float:
        """
        Weight of the speed.
        """
    def to_json(self, /) -> str:
        """
        The value as JSON; `from_json` reads it back.
        """

@final
class SeverityWeighted:
    """
    The severity score.
    """
    def __call__(self, /, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /) -> SeverityWeighted: ...
    def __reduce__(self, /) -> tuple[type, tuple[float, ...]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The strategy's name.
        """

@final
class StdioRunner:
    """
    Judges programs by what they print for given inputs: each case in a fresh contained process.

    The expected outputs never enter the candidate's process (`suite.trust` is "isolated"). A case whose
    output is right is PASSED; a wrong output is FAILED and its message names the first difference; a
    program that raises, crashes or ends with another exit code than 0 is ERROR "crash", and a limit is
    ERROR "timeout", "memory", "output" or "disk". A case that got no turn is ERROR "not_run".

    Args:
        cases: Pairs of input and output, or mappings with "input" and "output" and, where wanted, "name",
            "severity" and "timeout_s".
        compare: "trimmed" (lines, blanks at their ends ignored), "exact", "tokens" (words), "floats" (words,
            numbers within `tolerance`), or "unordered" (lines in any order).
        tolerance: For "floats": |a - b| <= tolerance * max(1, |b|), b the expected one.
        checker: Where several outputs are right, in place of `compare`: a function of input, output and expected
            output that returns True, or False or a str that says what is wrong; or the words of a command, which
            is run contained with three more, the names of files with input, output and expected output, and ends
            with exit code 0 where it is right and with 1 or 2 where it is wrong.
        fresh: "process" runs each case in a process of its own; "program" runs all cases of a candidate in
            one process, which is faster and lets one case leave something for the next.
        clock: What durations are: "elapsed" (less what the machine made the candidate wait for a processor) or
            "cpu" (processor time, which needs `fresh="process"`).
        module: The module that is the program: "solution" is solution.py.
        limits: What a candidate may use; `timeout_s` is for all cases, `test_timeout_s` for each.
        python: The interpreter, 3.8 or later; None means this one.
        preload: Modules to import before the candidate, once for many of them, such as "numpy".
        env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
        seed: Seeds `random` and the hashes of strings; None means that only the hashes are fixed.
        readable: Paths that the candidate may read beside the system and the interpreter.
        require: The least containment, "full", "partial" or "weak", or mechanisms that must be enforced.
        avoid: Mechanisms of containment not to use.
        repeat: Judge so many times; a case that changes its mind is flaky and counts as its worst outcome.
        cache: Remember so many suites, by the content of all files. Only for runs that always end alike.
        stop_at: "first_failure" ends the run at the first case that does not pass.
        on_tamper: What to do with a candidate that was seen to tamper with its judge or to try what containment
            refuses (`suite.marks`): "report" says it, with "zero" no test counts as passed, with "no_verdict"
            there is none.

    Raises:
        ValueError: A case that is none, an unknown comparison or mechanism.

    Example:
        >>> from testgrad import StdioRunner
        >>> run = StdioRunner([("1 2", "3"), ("2 2", "4")])
        >>> run("print(sum(map(int, input().split())))").all_passed
        True
        >>> run("print(3)").failing[0].name
        'case[1]'
    """
    def __call__(self, /, candidate: str | PathLike[str] | Mapping[str, str]) -> SuiteResult:
        """
        Judges one program.

        Args:
            candidate: The code of the program, or a mapping of relative paths to texts, or a path to the
                workspace it was written in (or to the one file).

        Raises:
            NoVerdict: Our side failed: no such interpreter, less containment than required, a checker that
                raised.
            FileNotFoundError: There is no such workspace.
        """
    def __new__(cls, /, cases: "Iterable[tuple[str, str] | Mapping[str, object]]", *, compare: str = "trimmed", tolerance: SupportsFloat | SupportsIndex | None = None, checker: "Callable[[str, str, str], bool | str] | Sequence[str] | None" = None, fresh: str = "process", clock: str = "elapsed", module: str = "solution", limits: Limits | None = None, python: str | PathLike[str] | None = None, preload: SupportsGetItem[int, str] = ..., env: dict[str, str] | None = None, seed: SupportsIndex | None = None, readable: SupportsGetItem[int, str | PathLike[str]] = ..., require: str | Sequence[str] = ..., avoid: str | Sequence[str] = ..., repeat: SupportsIndex = 1, cache: SupportsIndex = 0, stop_at: str | None = None, on_tamper: str = "report") -> StdioRunner: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def run_many(self, /, candidates: "Iterable[str | PathLike[str] | Mapping[str, str]]", *, workers: SupportsIndex | None = None, progress: bool = False, deadline_s: SupportsFloat | SupportsIndex | None = None) -> list[SuiteResult | NoVerdict]:
        """
        Judges many programs at once.

        Args:
            candidates: The candidates, as for a single call.
            workers: How many run at a time, >= 1; None means one a core.
            progress: Show a bar.
            deadline_s: Seconds for all together, > 0; what is not done then is `NoVerdict`.

        Returns:
            One suite a candidate, in their order; where our side failed, the `NoVerdict` that says why.

        Raises:
            KeyboardInterrupt: With what was done until then as `results`.
        """

@final
class SuiteResult:
    """
    The outcomes of one run: a frozen, sequence-like value.

    Args:
        tests: The tests, in order.
        suite_name: The suite's name.
        coverage: Share of the candidate's lines that ran, 0..1; None when not measured.
        duration_ms: Wall time of the run in milliseconds; None when not measured.
        problems: What went wrong outside any test; a suite with problems is never `all_passed`.
        warnings: What the reader should know and that changes nothing.
        hidden: Names of tests that are never shown to the agent.
        trust: Who vouches for it: "isolated", "shared" or "reported"; None when made by hand.

    Raises:
        ValueError: Coverage outside 0..1, a negative duration, an unknown trust.

    Example:
        >>> from testgrad import SuiteResult, TestResult
        >>> suite = SuiteResult([TestResult("a", "passed"), TestResult("b", "failed")])
        >>> suite.pass_rate
        0.5
    """
    __match_args__: Final[tuple[str, str]]
    """
    For `match`.
    """
    def __contains__(self, test: Any, /) -> bool: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __hash__(self, /) -> int: ...
    def __iter__(self, /) -> Iterator[TestResult]: ...
    def __len__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, tests: "Iterable[TestResult]", suite_name: str = ..., *, coverage: SupportsFloat | SupportsIndex | None = None, duration_ms: SupportsFloat | SupportsIndex | None = None, problems: SupportsGetItem[int, str] = ..., warnings: SupportsGetItem[int, str] = ..., hidden: SupportsGetItem[int, str] = ..., trust: str | None = None, containment: Containment | None = None, marks: SupportsGetItem[int, Mark] = ...) -> SuiteResult: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def __reversed__(self, /) -> Iterator[TestResult]: ...
    def _repr_html_(self, /) -> str: ...
    @property
    def all_passed(self, /) -> bool:
        """
        At least one active test, all active ones passed, and no problems.
        """
    @property
    def containment(self, /) -> Containment | None:
        """
        What the kernel enforced around the candidate; None where nothing was contained.
        """
    def count(self, /, value: "object") -> int:
        """
        How many tests are equal to `value`.
        """
    @property
    def coverage(self, /) -> float | None:
        """
        Share of the candidate's lines that ran, 0..1; None when not measured.
        """
    @property
    def duration_ms(self, /) -> float | None:
        """
        Wall time of the run in milliseconds; None when not measured.
        """
    @property
    def errors(self, /) -> int:
        """
        How many tests ended in an error.
        """
    @property
    def failed(self, /) -> int:
        """
        How many tests failed.
        """
    @property
    def failing(self, /) -> tuple[TestResult, ...]:
        """
        The tests that failed or ended in an error, in order.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> SuiteResult:
        """
        The value that `to_json` wrote.

        Raises:
            ValueError: Text that is not such JSON, with line and column.
        """
    @property
    def hidden(self, /) -> tuple[str, ...]:
        """
        Names of tests that are never shown to the agent.
        """
    @property
    def hidden_gap(self, /) -> float | None:
        """
        By how much the pass rate of the tests that are shown exceeds that of the hidden ones, -1..1; None without
        hidden tests. A wide gap is the mark of code that knows the tests instead of the task.
        """
    def index(self, /, value: "object") -> int:
        """
        The place of the first test equal to `value`.

        Raises:
            ValueError: There is none.
        """
    @property
    def marks(self, /) -> tuple[Mark, ...]:
        """
        What looked suspicious in the candidate; it changes no outcome. See `testgrad.audit.audit_run` for more.
        """
    @property
    def pass_rate(self, /) -> float:
        """
        passed / (total - skipped), 0.0 when nothing is active.
        """
    @property
    def passed(self, /) -> int:
        """
        How many tests passed.
        """
    @property
    def problems(self, /) -> tuple[str, ...]:
        """
        What went wrong outside any test.
        """
    @property
    def skipped(self, /) -> int:
        """
        How many tests were skipped.
        """
    @property
    def suite_name(self, /) -> str:
        """
        The suite's name.
        """
    @property
    def tests(self, /) -> tuple[TestResult, ...]:
        """
        The tests, in order.
        """
    def to_json(self, /) -> str:
        """
        The value as JSON; `from_json` reads it back.
        """
    @property
    def total(self, /) -> int:
        """
        How many tests there are.
        """
    @property
    def trust(self, /) -> str | None:
        """
        Who vouches for it: "isolated", "shared" or "reported"; None when made by hand.
        """
    @property
    def warnings(self, /) -> tuple[str, ...]:
        """
        What the reader should know and that changes nothing.
        """

@final
class Task:
    """
    Something to write, with the tests that judge it.

    Args:
        id: Its name, unique in its file.
        prompt: What to write, in words or as the beginning of a program.
        kind: "pytest" (tests import the candidate's module), "stdio" (a program reads standard input and
            writes standard output), "function" (a function is called) or "command" (a command is run
            beside the files).
        module: The module that a candidate becomes, "pytest" only; None means "solution" there.
        entry_point: The function the candidate must have.
        tests: Paths to texts: of "pytest" what `PytestRunner` takes, of "command" the files that lie beside
            the candidate.
        cases: Of "stdio" mappings with "input" and "output"; of "function" mappings with "args", "kwargs"
            and "expected".
        compare: When outputs are the same: "trimmed", "exact", "tokens", "floats" or "unordered"; "checker"
            when a program of the task's author has to say. None leaves it to the runner.
        tolerance: Of numbers, relative beyond 1, absolute below; >= 0.
        time_limit_s: Wall time of one test or case in seconds, > 0.
        memory_limit_bytes: Memory, > 0.
        reference: A candidate that passes: code, or paths to texts.
        stub: What a learner starts from.
        variants: Names to candidates, the reference and the stub among them where the source has more.
        source: The file or folder it was read from, and the line from 1 (None for a folder).
    """
    __match_args__: Final[tuple[str, str]]
    """
    For `match`.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, id: str, prompt: str = ..., *, kind: str, module: str | None = None, entry_point: str | None = None, tests: "Mapping[str, str] | None" = None, cases: "Iterable[Mapping[str, Any]] | None" = None, compare: str | None = None, tolerance: SupportsFloat | SupportsIndex | None = None, time_limit_s: SupportsFloat | SupportsIndex | None = None, memory_limit_bytes: SupportsIndex | None = None, reference: str | Mapping[str, str] | None = None, stub: str | Mapping[str, str] | None = None, variants: "Mapping[str, str | Mapping[str, str]] | None" = None, source: "tuple[str | PathLike[str], int | None] | None" = None) -> Task: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def candidate(self, /, completion: str) -> str | dict[str, str]:
        """
        The candidate in a model's completion.

        Thinking, prose and markdown fences are cut. Where the prompt is the beginning of a program
        (HumanEval), the completion may go on from it or be the whole program; a whole program still gets what
        the prompt has above the function: imports and functions beside it.

        Args:
            completion: What the model answered.

        Returns:
            The module's code; for a task of kind "command" the one file that has to be written.

        Raises:
            ValueError: A task of kind "command" whose candidate is several files.

        Example:
            >>> task = Task("add", "def add(a, b):\\n", kind="pytest", entry_point="add",
            ...             tests={"test_add.py": "from solution import add\\ndef test(): assert add(1, 2) == 3"})
            >>> print(task.candidate("    return a + b"))
            def add(a, b):
                return a + b
        """
    @property
    def cases(self, /) -> tuple[dict[str, Any], ...]:
        """
        Inputs and outputs, or calls and results; fresh dicts each time.
        """
    @property
    def compare(self, /) -> str | None:
        """
        When outputs are the same; None leaves it to the runner.
        """
    @property
    def entry_point(self, /) -> str | None:
        """
        The function that a candidate must have.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> Task:
        """
        The task that `to_json` wrote.

        Raises:
            ValueError: The text is no such JSON.
        """
    @property
    def id(self, /) -> str:
        """
        Its name.
        """
    @property
    def kind(self, /) -> str:
        """
        "pytest", "stdio", "function" or "command".
        """
    @property
    def memory_limit_bytes(self, /) -> int | None:
        """
        Memory.
        """
    @property
    def module(self, /) -> str | None:
        """
        The module that a candidate becomes; None unless the kind is "pytest".
        """
    @property
    def prompt(self, /) -> str:
        """
        What to write.
        """
    @property
    def reference(self, /) -> str | dict[str, str] | None:
        """
        A candidate that passes.
        """
    def runner(self, /, **options: "Any") -> Any:
        """
        What judges candidates of this task: `PytestRunner`, `StdioRunner` or `FunctionRunner`.

        Args:
            options: For the runner; they win over what the task says.

        Raises:
            ValueError: A task of kind "command", or one whose outputs need a `checker`.
        """
    @property
    def source(self, /) -> tuple[str, int | None] | None:
        """
        The file or folder it was read from, and the line from 1 (None for a folder).
        """
    @property
    def stub(self, /) -> str | dict[str, str] | None:
        """
        What a learner starts from.
        """
    @property
    def tests(self, /) -> dict[str, str]:
        """
        Paths to texts, a fresh dict each time.
        """
    @property
    def time_limit_s(self, /) -> float | None:
        """
        Wall time of one test or case in seconds.
        """
    def to_json(self, /) -> str:
        """
        The task as JSON on one line, as `testgrad.tasks.write` writes it; `from_json` reads it back.
        """
    @property
    def tolerance(self, /) -> float | None:
        """
        Of numbers.
        """
    @property
    def variants(self, /) -> dict[str, str | dict[str, str]]:
        """
        Candidates by name, a fresh dict each time.
        """

@final
class TestResult:
    """
    What one test did, with severity, message and duration.

    Args:
        name: The test's name, usually its node id.
        status: A `TestStatus`, or its value or name in any case.
        severity: A `TestSeverity`, or its value or name in any case.
        message: The short message of a failure.
        duration_ms: How long it took in milliseconds, finite and >= 0.
        details: Traceback and output.
        reason: Why it is an ERROR or SKIPPED: "timeout", "memory", "crash", "collection", ...
        file: The file the test is in.
        line: The line the test starts at, from 1.

    Raises:
        ValueError: An unknown status or severity, a duration that is negative, NaN or infinite.

    Example:
        >>> from testgrad import TestResult
        >>> TestResult("test_add", "passed", duration_ms=1.5)
        TestResult('test_add', TestStatus.PASSED, duration_ms=1.5)
    """
    __match_args__: Final[tuple[str, str, str, str, str]]
    """
    For `match`.
    """
    __test__: Final[bool]
    """
    Tells pytest that this is not a test class.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, name: Any, status: TestStatus | str, severity: TestSeverity | str | int = ..., message: str = ..., duration_ms: SupportsFloat | SupportsIndex = 0.0, *, details: str = ..., reason: str | None = None, file: str | None = None, line: SupportsIndex | None = None) -> TestResult: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def details(self, /) -> str:
        """
        Traceback and output, "" when there is none.
        """
    @property
    def duration_ms(self, /) -> float:
        """
        How long it took, in milliseconds.
        """
    @property
    def file(self, /) -> str | None:
        """
        The file the test is in.
        """
    @staticmethod
    def from_json(text: "str | bytes") -> TestResult:
        """
        The value that `to_json` wrote.

        Raises:
            ValueError: Text that is not such JSON, with line and column.
        """
    @property
    def is_failing(self, /) -> bool:
        """
        True for FAILED and ERROR.
        """
    @property
    def line(self, /) -> int | None:
        """
        The line the test starts at, from 1.
        """
    @property
    def message(self, /) -> str:
        """
        The short message of a failure, "" when there is none.
        """
    @property
    def name(self, /) -> str:
        """
        The test's name, usually its node id.
        """
    @property
    def reason(self, /) -> str | None:
        """
        Why it is an ERROR or SKIPPED.
        """
    @property
    def severity(self, /) -> TestSeverity:
        """
        How much it matters.
        """
    @property
    def status(self, /) -> TestStatus:
        """
        What it did.
        """
    def to_json(self, /) -> str:
        """
        The value as JSON; `from_json` reads it back.
        """

@final
class _TaskReader:
    """
    The tasks of a file or folder; after an error of one task the next can be asked for.
    """
    def __iter__(self, /) -> _TaskReader: ...
    def __new__(cls, /, path: str | PathLike[str], format: str | None = None) -> _TaskReader: ...
    def __next__(self, /) -> Task: ...

def _cancel_runs(patience_s: SupportsFloat | SupportsIndex = 0.0) -> None:
    """
    Ends all runs of this process that are under way, on whatever thread: each raises `NoVerdict`.

    Waits at most `patience_s` seconds for them to have cleaned up.
    """

def _encode_value(value: object) -> str:
    """
    The line of a value, for a candidate's process to read.

    Raises:
        ValueError: It is not plain data.
    """

def _end(pid: SupportsIndex) -> None:
    """
    Ends a program that was launched and is still to be reaped, and all it started.
    """

def _idle_workers() -> int:
    """
    How many warm workers wait for a job.
    """

def _is_sound(message: bytes) -> bool:
    """
    Whether a message from the process of a candidate may pass to a judge; for tests.
    """

def _launch(plan: str) -> int:
    """
    Becomes the program that a plan describes; returns an exit code only when it could not.
    """

def _parse_value(text: str) -> Any:
    """
    The value of a line that a candidate's process wrote.

    Raises:
        ValueError: It is no such line, or what it stands for is not plain data.
    """

def advantages(rewards: ArrayLike, groups: "int | ArrayLike", *, normalization: str = "mean_std", eps: SupportsFloat | SupportsIndex = 1e-6) -> NDArray[float64]:
    """
    The advantage of each rollout within its group.

    "mean_std": (r - mean) / (std + eps), with the sample standard deviation (n - 1); "mean": r - mean;
    "leave_one_out": r - the mean of the others. Exactly 0.0 for a whole group whose rewards are equal.

    Args:
        rewards: float64, shape (rollouts,); NaN means no verdict: left out, and NaN in the result.
        groups: Group ids, shape (rollouts,), or the size of consecutive groups.
        normalization: "mean_std", "mean" or "leave_one_out".
        eps: Added to the standard deviation, >= 0.

    Returns:
        float64, shape (rollouts,).

    Source:
        "mean_std": GRPO, Shao et al. 2024, arXiv:2402.03300, section 4.1. "mean": Dr. GRPO, Liu et al. 2025,
        arXiv:2503.20783, section 3. "leave_one_out": RLOO, Ahmadian et al. 2024, arXiv:2402.14740, after Kool et
        al. 2019.
    """

def binary_reward(suite: SuiteResult) -> float:
    """
    1.0 when all tests passed, else 0.0.
    """

def build_feedback(submission: CodeSubmission, suite: SuiteResult, previous_suite: SuiteResult | None = None, coverage: SupportsFloat | SupportsIndex | None = None, target_ms: SupportsFloat | SupportsIndex = ..., weights: RewardWeights | None = None) -> FeedbackEntry:
    """
    The entry for one submission: its failing tests and its multi-signal reward.

    Args:
        submission: What was submitted.
        suite: What the tests said.
        previous_suite: What they said before, for the progression.
        coverage: 0..1; None means the suite's own coverage, else 0.0.
        target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
        weights: How much each component counts; None means `RewardWeights()`.

    Raises:
        ValueError: Coverage outside 0..1, a target that is not finite and > 0.
    """

def close() -> None:
    """
    Ends all warm workers of this process; the next run starts new ones.
    """

def compute_reward_signal(suite: SuiteResult, previous: SuiteResult | None = None, coverage: SupportsFloat | SupportsIndex | None = None, target_ms: SupportsFloat | SupportsIndex = ..., weights: RewardWeights | None = None) -> RewardSignal:
    """
    The components of one suite, and as their total the weighted sum, not clamped.

    Args:
        suite: The suite to reward.
        previous: The suite before, for the progression.
        coverage: 0..1; None means the suite's own coverage, else 0.0.
        target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
        weights: How much each component counts; None means `RewardWeights()`.

    Raises:
        ValueError: Coverage outside 0..1, a target that is not finite and > 0.

    Example:
        >>> from testgrad import SuiteResult, TestResult, compute_reward_signal
        >>> suite = SuiteResult([TestResult("a", "passed"), TestResult("b", "failed")])
        >>> compute_reward_signal(suite).total
        0.5
    """

def convergence_rate(history: Iterable[FeedbackEntry]) -> float | None:
    """
    The mean gain in pass rate an iteration, (last - first) / (n - 1); None for fewer than two iterations.

    Args:
        history: A `History` or any iterable of `FeedbackEntry`.
    """

def decoupled_advantages(components: ArrayLike, groups: "int | ArrayLike", *, weights: ArrayLike | None = None, eps: SupportsFloat | SupportsIndex = 1e-6, whiten: bool = True) -> NDArray[float64]:
    """
    Each component normalised within its group by itself, then summed with weights.

    Normalising after the sum lets a component with a wide spread drown the others; this does not.

    Args:
        components: float64, shape (rollouts, k); NaN rows mean no verdict.
        groups: Group ids, shape (rollouts,), or the size of consecutive groups.
        weights: float64, shape (k,), each >= 0; None means `RewardWeights()` (k = 5).
        eps: Added to the standard deviations, >= 0.
        whiten: Normalise the sums once more over all rollouts.

    Returns:
        float64, shape (rollouts,).

    Source:
        GDPO, Liu et al. 2026, arXiv:2601.05242, section 3: group-wise decoupled normalisation, then batch-wise.
    """

def difficulty_score(status: ArrayLike, groups: "int | ArrayLike") -> NDArray[float64]:
    """
    The share of the difficulty weight of its active tests that each rollout passed, 0..1.

    Args:
        status: uint8, shape (rollouts, tests), codes as in `rewards_from_arrays`.
        groups: Group ids, shape (rollouts,), or the size of consecutive groups.

    Returns:
        float64, shape (rollouts,); 0.0 when nothing is active, NaN without verdict.

    Source:
        Our own; see `difficulty_weights`.
    """

def difficulty_weights(status: ArrayLike, groups: "int | ArrayLike") -> NDArray[float64]:
    """
    Weights of the tests within each group, from the group's own pass rates: a test that few pass weighs more.

    With k of n rollouts of the group passing a test, its weight is 1 - (k + 1) / (n + 2), scaled so that a
    group's weights sum to 1. Skipped tests and rollouts without verdict are left out of k and n; a test that no
    rollout has weighs 0.

    Args:
        status: uint8, shape (rollouts, tests), codes as in `rewards_from_arrays`.
        groups: Group ids, shape (rollouts,), or the size of consecutive groups.

    Returns:
        float64, shape (groups, tests), groups in the order of their sorted ids.

    Source:
        Our own; the pass rate is estimated by Laplace's rule of succession, so that no weight is 0 or 1.
    """

def extract_failing_tests(suite: SuiteResult) -> tuple[tuple[str, str], ...]:
    """
    Name and message of each test that failed or ended in an error, in the suite's order; hidden ones left out.
    """

def group_signal(totals: Mapping[str, ArrayLike], groups: "int | ArrayLike", *, resolution: SupportsFloat | SupportsIndex = 0.01) -> list[GroupSignal]:
    """
    How many groups carry no signal under each strategy.

    Args:
        totals: Strategy name to totals, float64, shape (rollouts,); NaN means no verdict.
        groups: Group ids, shape (rollouts,), or the size of consecutive groups.
        resolution: Rewards that differ by no more than this count as equal, >= 0.

    Returns:
        One `GroupSignal` a strategy, in the order given.

    Source:
        Groups whose rewards are all equal have no gradient and are what DAPO's dynamic sampling drops: Yu et al.
        2025, arXiv:2503.14476, section 3.2. The resolution is ours.
    """

def infer_strategy(history: Iterable[FeedbackEntry]) -> str:
    """
    What the next submission is for, judged by the last suite of the history.

    Args:
        history: A `History` or any iterable of `FeedbackEntry`.

    Returns:
        "initial" before the first, "fix_errors" after errors, "fix_failures" after failures, "refactor" once
        all passed.
    """

def learning_curve(history: Iterable[FeedbackEntry]) -> tuple[LearningPoint, ...]:
    """
    One point an iteration; before the first, nothing passes.

    Args:
        history: A `History` or any iterable of `FeedbackEntry`.
    """

def leave_one_out_baseline(rewards: ArrayLike, groups: "int | ArrayLike") -> NDArray[float64]:
    """
    For each rollout the mean reward of the others of its group; a rollout alone is its own baseline.

    Args:
        rewards: float64, shape (rollouts,); NaN means no verdict: left out, and NaN in the result.
        groups: Group ids, shape (rollouts,), or the size of consecutive groups.

    Returns:
        float64, shape (rollouts,).

    Source:
        RLOO, Ahmadian et al. 2024, arXiv:2402.14740, after Kool et al. 2019.
    """

def pass_rate_reward(suite: SuiteResult) -> float:
    """
    passed / (total - skipped), 0.0 when nothing is active.
    """

def progression_reward(current: SuiteResult, previous: SuiteResult | None) -> float:
    """
    Pass rate now minus pass rate before, -1..1; the pass rate itself when there is no previous suite.
    """

def reward_trend(history: Iterable[FeedbackEntry], window: SupportsIndex = 3) -> float:
    """
    The slope of the total reward over the last `window` iterations, by least squares.

    Args:
        history: A `History` or any iterable of `FeedbackEntry`.
        window: How many of the last iterations count, >= 2.

    Returns:
        Reward gained an iteration; 0.0 for fewer than two iterations.
    """

def rewards(suites: "Iterable[SuiteResult | NoVerdict | None]", strategy: Binary | PassRate | SeverityWeighted | Progression | MultiSignal | Gated | Curriculum | None = None, *, previous: "Iterable[SuiteResult | NoVerdict | None] | None" = None, coverage: ArrayLike | None = None) -> tuple[NDArray[float64], NDArray[float64]]:
    """
    The rewards of many suites at once, equal bit for bit to the strategy called on each.

    Args:
        suites: `SuiteResult` values; None or a `NoVerdict` in a place gives a row of NaN, never 0.
        strategy: One of testgrad's strategies; None means `MultiSignal()`.
        previous: One suite or None for each suite, for the progression.
        coverage: float64, shape (n,), 0..1, NaN where not measured; None means each suite's own.

    Returns:
        Components, float64, shape (n, 5), columns in the order of `RewardWeights`; totals, float64, shape (n,).

    Raises:
        ValueError: Lengths that do not fit, coverage outside 0..1.
    """

def rewards_from_arrays(status: ArrayLike, strategy: Binary | PassRate | SeverityWeighted | Progression | MultiSignal | Gated | Curriculum | None = None, *, severity: ArrayLike | None = None, duration_ms: ArrayLike | None = None, previous: "ArrayLike | None" = None, coverage: ArrayLike | None = None) -> tuple[NDArray[float64], NDArray[float64]]:
    """
    The rewards of many runs of the same tests, from arrays, equal bit for bit to the strategy called on suites.

    Args:
        status: uint8, shape (rollouts, tests): 0 passed, 1 failed, 2 error, 3 skipped, 254 (`NO_VERDICT`: the
            row becomes NaN), 255 (`ABSENT`: this rollout has no such test).
        strategy: One of testgrad's strategies; None means `MultiSignal()`.
        severity: uint8, shape (tests,): 3 critical, 2 major, 1 minor; None means major.
        duration_ms: float64, shape (rollouts, tests), finite and >= 0; None means no time.
        previous: What came before: status codes, shape (rollouts, tests) or (tests,), or pass rates, float64,
            shape (rollouts,), NaN for none. None means there was nothing.
        coverage: float64, shape (rollouts,), 0..1, NaN where not measured.

    Returns:
        Components, float64, shape (rollouts, 5), columns in the order of `RewardWeights`; totals, float64,
        shape (rollouts,).

    Raises:
        ValueError: Shapes that do not fit, or a value out of range, named by row and column.
    """

def run_many(pairs: "Iterable[tuple[str | PathLike[str] | Mapping[str, str], object]]", *, workers: SupportsIndex | None = None, progress: bool = False, deadline_s: SupportsFloat | SupportsIndex | None = None) -> list[SuiteResult | NoVerdict]:
    """
    Judges many candidates at once, each by its own runner.

    Args:
        pairs: A candidate and a runner each; a task of `testgrad.tasks` stands for its runner.
        workers: How many run at a time, >= 1; None means one a core.
        progress: Show a bar.
        deadline_s: Seconds for all together, > 0; what is not done then is `NoVerdict`.

    Returns:
        One suite a pair, in their order; where our side failed, the `NoVerdict` that says why.

    Raises:
        KeyboardInterrupt: With what was done until then as `results`.
    """

def run_pytest(directory: str | PathLike[str], *, args: SupportsGetItem[int, str] = ..., python: str | PathLike[str] | None = None, timeout_s: SupportsFloat | SupportsIndex = 600.0, env: dict[str, str] | None = None) -> SuiteResult:
    """
    Runs a project's own tests where they are, with all plugins that are installed, and contains nothing.

    Nothing is copied and nothing but what the tests themselves write is changed: no bytecode, no cache.

    Args:
        directory: The project.
        args: Arguments for pytest, such as the files to run.
        python: The interpreter, 3.8 or later with pytest; None means this one.
        timeout_s: Wall time of the run in seconds, > 0.
        env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.

    Raises:
        NoVerdict: Our side failed: no such interpreter, no pytest in it, arguments that pytest refuses.
        FileNotFoundError: There is no such directory.
    """

def severity_weighted_reward(suite: SuiteResult) -> float:
    """
    Severity weight of the passed tests / severity weight of the active tests, 0.0 when nothing is active.

    The weights are CRITICAL 3, MAJOR 2, MINOR 1.
    """

def speed_score(suite: SuiteResult, target_ms: SupportsFloat | SupportsIndex = ...) -> float:
    """
    exp(-sum of durations / target_ms), 0..1; 0.0 for no tests.

    Raises:
        ValueError: A target that is not finite and > 0.
    """
