"""Agents: the search for repairs, prepared answers, commands, and a chat model behind a stub."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testgrad import (
    AgentTestLoop,
    CodeSubmission,
    FeedbackEntry,
    PassRate,
    SuiteResult,
    TestResult,
    build_feedback,
)
from testgrad.agents import (
    AnswerMissing,
    AnswersExhausted,
    ChatAgent,
    CommandAgent,
    CommandFailed,
    RepairAgent,
    ScriptedAgent,
    SearchExhausted,
    describe_edit,
)

LIMIT_S = 120
Check = Callable[[dict[str, Any]], bool]


class Endless(Exception):
    """A program of ours did too much: an edit made it loop without end."""


def bounded(run: Callable[[], Any], steps: int = 5_000) -> Any:
    """Runs a function, and raises once it has taken so many lines."""
    left = steps

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Endless
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run()
    finally:
        sys.settrace(before)


def judge(code: str, checks: Sequence[Check]) -> SuiteResult:
    """Runs a program of ours in this process; one test for each check."""
    scope: dict[str, Any] = {}
    try:
        bounded(lambda: exec(code, scope))
    except Exception as error:
        return SuiteResult(
            TestResult(f"test_{i}", "error", message=repr(error)) for i in range(len(checks))
        )
    return SuiteResult(_outcome(f"test_{i}", check, scope) for i, check in enumerate(checks))


def _outcome(name: str, check: Check, scope: dict[str, Any]) -> TestResult:
    try:
        passed = bounded(lambda: check(scope))
    except Exception as error:
        return TestResult(name, "failed", message=repr(error))
    return TestResult(name, "passed" if passed else "failed", message="" if passed else "wrong")


def entry_of(code: str, iteration: int, statuses: str, **extra: Any) -> FeedbackEntry:
    """An entry whose tests are given by letters: p passed, f failed, e error."""
    words = {"p": "passed", "f": "failed", "e": "error"}
    hidden = extra.pop("hidden", ())
    tests = [TestResult(f"test_{i}", words[s], **extra) for i, s in enumerate(statuses)]
    return build_feedback(CodeSubmission(code, iteration), SuiteResult(tests, hidden=hidden))


def repair(
    program: str, checks: Sequence[Check], iterations: int = 200, **options: Any
) -> list[FeedbackEntry]:
    history = AgentTestLoop(
        lambda code: judge(code, checks),
        RepairAgent(program, **options),
        max_iterations=iterations,
        strategy=PassRate(),
    ).run()
    return list(history)


def answers(agent: RepairAgent, count: int, statuses: str = "ff") -> list[str]:
    """What an agent proposes when nothing it does changes anything."""
    history: list[FeedbackEntry] = []
    while len(history) < count:
        history.append(entry_of(agent(history), len(history) + 1, statuses))
    return [entry.submission.code for entry in history]


MEAN = """\
def total(numbers):
    result = 0
    for number in numbers:
        result += number  # running sum
    return result


def mean(numbers):
    '''The arithmetic mean.'''
    return total(numbers) / len(numbers)
"""


# --- what it can repair --------------------------------------------------------------------------

REPAIRS: dict[str, tuple[str, list[Check]]] = {
    "a comparison": (
        "def is_adult(age):\n    return age > 18\n",
        [lambda s: s["is_adult"](18), lambda s: not s["is_adult"](17), lambda s: s["is_adult"](40)],
    ),
    "an operator": (
        "def area(width, height):\n    return width + height\n",
        [lambda s: s["area"](3, 4) == 12, lambda s: s["area"](2, 2) == 4],
    ),
    "an augmented assignment": (
        MEAN.replace("+=", "-="),
        [lambda s: s["mean"]([1, 2, 3]) == 2, lambda s: s["mean"]([4]) == 4],
    ),
    "a constant": (
        "def last(items):\n    return items[len(items) - 2]\n",
        [lambda s: s["last"]([1, 2, 3]) == 3, lambda s: s["last"]("ab") == "b"],
    ),
    "a name": (
        "def clip(value, low, high):\n    if value < low:\n        return high\n"
        "    if value > high:\n        return high\n    return value\n",
        [lambda s: s["clip"](0, 1, 5) == 1, lambda s: s["clip"](9, 1, 5) == 5],
    ),
    "swapped arguments": (
        "def quotient(a, b):\n    return a // b\n\ndef halves(n):\n    return quotient(2, n)\n",
        [lambda s: s["halves"](10) == 5, lambda s: s["halves"](2) == 1],
    ),
    "a range that ends too early": (
        "def squares(n):\n    return [i * i for i in range(1, n)]\n",
        [lambda s: s["squares"](3) == [1, 4, 9], lambda s: s["squares"](0) == []],
    ),
    "a condition without a guard": (
        "def first(items):\n    if items[0] is None:\n        return 0\n    return items[0]\n",
        [lambda s: s["first"]([]) == 0, lambda s: s["first"]([7, 1]) == 7],
    ),
    "any for all": (
        "def all_even(numbers):\n    return any(n % 2 == 0 for n in numbers)\n",
        [
            lambda s: not s["all_even"]([1, 2]),
            lambda s: s["all_even"]([2]),
            lambda s: s["all_even"]([]),
        ],
    ),
    "a returned constant": (
        "def is_balanced(text):\n    depth = 0\n    for mark in text:\n"
        "        depth += 1 if mark == '(' else -1\n        if depth < 0:\n"
        "            return False\n    return True\n",
        [
            lambda s: not s["is_balanced"]("("),
            lambda s: s["is_balanced"]("()"),
            lambda s: not s["is_balanced"](")("),
        ],
    ),
    "a collection that is never filled": (
        "def unique(items):\n    seen = set()\n    kept = []\n    for item in items:\n"
        "        if item not in seen:\n            kept.append(item)\n    return kept\n",
        [lambda s: s["unique"]([1, 1, 2]) == [1, 2], lambda s: s["unique"]("aab") == ["a", "b"]],
    ),
    "statements in the wrong order": (
        "def swap(pair):\n    a, b = pair\n    a = b\n    old = a\n    b = old\n"
        "    return [a, b]\n",
        [lambda s: s["swap"]([1, 2]) == [2, 1], lambda s: s["swap"]([5, 6]) == [6, 5]],
    ),
    "an attribute": (
        "def parts(text):\n    return text.lstrip('-').lower()\n",
        [lambda s: s["parts"]("A-") == "a", lambda s: s["parts"]("B") == "b"],
    ),
    "yield of a generator": (
        "def flat(items):\n    for item in items:\n        if isinstance(item, list):\n"
        "            yield flat(item)\n        else:\n            yield item\n",
        [
            lambda s: list(s["flat"]([1, [2, [3]]])) == [1, 2, 3],
            lambda s: list(s["flat"]([])) == [],
        ],
    ),
}


@pytest.mark.parametrize("defect", REPAIRS)
def test_repairs(defect: str) -> None:
    program, checks = REPAIRS[defect]
    assert not judge(program, checks).all_passed
    assert repair(program, checks)[-1].suite_result.all_passed


def test_two_defects_are_repaired_one_after_the_other() -> None:
    broken = MEAN.replace("+=", "-=").replace("len(numbers)", "len(numbers + 1)")
    checks: list[Check] = [
        lambda s: s["total"]([2, 3]) == 5,
        lambda s: s["total"]([]) == 0,
        lambda s: s["mean"]([1, 2, 3]) == 2,
    ]
    assert repair(broken, checks)[-1].suite_result.all_passed


def test_a_pair_of_edits_is_found_when_no_single_edit_helps() -> None:
    broken = "def pair():\n    return 3, 5\n"
    checks: list[Check] = [lambda s: s["pair"]() == (2, 6)]
    assert repair(broken, checks, 2000)[-1].suite_result.all_passed
    with pytest.raises(SearchExhausted):
        repair(broken, checks, 2000, max_order=1)


# --- how it proposes -----------------------------------------------------------------------------


def test_the_first_answer_is_the_program_itself() -> None:
    assert RepairAgent(MEAN)([], "any task") == MEAN


def test_no_tree_is_proposed_twice() -> None:
    trees = [ast.dump(ast.parse(code)) for code in answers(RepairAgent(MEAN), 150)]
    assert len(set(trees)) == len(trees)


def test_equal_seeds_give_equal_answers_and_other_seeds_other_ones() -> None:
    first, again, other = (answers(RepairAgent(MEAN, seed=seed), 40) for seed in (1, 1, 2))
    assert first == again != other


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["ff", "fp", "ee", "pf", "ef"]), max_size=12), st.integers(0, 5))
def test_a_new_agent_goes_on_where_the_history_ends(verdicts: list[str], seed: int) -> None:
    agent, history = RepairAgent(MEAN, seed=seed), list[FeedbackEntry]()
    for statuses in verdicts:
        history.append(entry_of(agent(history), len(history) + 1, statuses))
        assert RepairAgent(MEAN, seed=seed)(history) == agent(history)


SHOW_ANSWERS = """
import sys
sys.path.insert(0, sys.argv[1])
from test_agents import MEAN, RepairAgent, answers
print(answers(RepairAgent(MEAN), 60))
"""


def test_another_process_gives_the_same_answers() -> None:
    def shown(hash_seed: str) -> str:
        argv = [sys.executable, "-c", SHOW_ANSWERS, str(Path(__file__).parent)]
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout

    assert shown("1") == shown("2")


def test_one_agent_can_serve_two_histories_in_turn() -> None:
    agent = RepairAgent(MEAN)
    one = [entry_of(MEAN, 1, "ff")]
    two = [entry_of(MEAN, 1, "fp")]
    alone = [RepairAgent(MEAN)(one), RepairAgent(MEAN)(two)]
    assert [agent(one), agent(two), agent(one), agent([])] == [*alone, alone[0], MEAN]


def test_a_program_of_somebody_else_in_the_history_is_taken_as_it_is() -> None:
    other = MEAN.replace("result = 0", "result = 9")
    history = [entry_of(MEAN, 1, "ff"), entry_of(other, 2, "pf"), entry_of("no program(", 3, "ee")]
    agent = RepairAgent(MEAN)
    assert agent(history) == RepairAgent(MEAN)(history)
    assert agent(history) not in (MEAN, other)


def test_comments_and_layout_around_an_edit_survive() -> None:
    for code in answers(RepairAgent(MEAN), 60):
        lines = code.splitlines()
        changed = [line for line in lines if line not in MEAN.splitlines()]
        assert len(changed) <= 2
        assert "    '''The arithmetic mean.'''" in lines


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_programs_with_other_alphabets_and_line_ends_are_edited_in_place(newline: str) -> None:
    program = newline.join(
        ["größe = 'ü' + 'ß'  # π", "", "def f(ä, b):", "    return ä - b  # ö", ""]
    )
    proposed = answers(RepairAgent(program), 40)
    assert program.replace("ä - b", "ä + b") in proposed
    for code in proposed:
        ast.parse(code)


def test_parentheses_are_added_only_where_they_are_needed() -> None:
    program = "def f(a, b, c):\n    return (a + b) * c\n"
    proposed = answers(RepairAgent(program), 120)
    assert "def f(a, b, c):\n    return a * c\n" in [code.replace("(a)", "a") for code in proposed]
    assert not any("((a + b))" in code for code in proposed)


def test_only_what_is_in_focus_is_edited() -> None:
    head = MEAN.partition("def mean")[0]
    for code in answers(RepairAgent(MEAN, focus=["mean"]), 30):
        assert code.startswith(head)


def test_focus_on_an_unknown_function_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="median"):
        RepairAgent(MEAN, focus=["median"])


def test_an_order_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_order"):
        RepairAgent(MEAN, max_order=0)


def test_a_program_that_does_not_parse_is_refused() -> None:
    with pytest.raises(SyntaxError):
        RepairAgent("def f(:\n")


def test_an_exhausted_search_says_how_much_was_tried() -> None:
    agent = RepairAgent("def f(a):\n    pass\n\n\nX = 1\n", max_order=1)
    history: list[FeedbackEntry] = []

    def ask_on() -> None:
        while True:
            history.append(entry_of(agent(history), len(history) + 1, "ff"))

    with pytest.raises(SearchExhausted, match=r"among \d+ programs within 1 edits") as first:
        ask_on()
    with pytest.raises(SearchExhausted, match=str(first.value)):
        agent(history)
    assert f"among {len(history)} programs" in str(first.value)


def test_a_program_can_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mean.py"
    path.write_text(MEAN, encoding="utf-8")
    assert RepairAgent(path)([]) == MEAN


# --- what guides it ------------------------------------------------------------------------------


def edited_lines(program: str, entry: FeedbackEntry, count: int = 5, **options: Any) -> list[int]:
    """The lines that the answers after a first entry change."""
    agent, history = RepairAgent(program, **options), [entry]
    lines = []
    for _ in range(count):
        code = agent(history)
        pairs = zip(program.splitlines(), code.splitlines(), strict=False)
        lines.append(next(i for i, (old, new) in enumerate(pairs, 1) if old != new))
        history.append(entry_of(code, len(history) + 1, "f"))
    return lines


@pytest.mark.parametrize(
    "details",
    [
        '  File "/tmp/x/solution.py", line 4, in total\n',
        "solution.py:4: TypeError",
        "solution.py:4: in total",
    ],
)
def test_the_line_in_a_traceback_is_edited_first(details: str) -> None:
    lines = edited_lines(MEAN, entry_of(MEAN, 1, "f", details=details), 3)
    assert set(lines) == {4}


def test_lines_of_test_files_and_libraries_are_no_hint() -> None:
    details = 'tests/test_mean.py:4: in test_x\n  File "/usr/lib/python3.11/json/x.py", line 4\n'
    plain = edited_lines(MEAN, entry_of(MEAN, 1, "f"))
    assert edited_lines(MEAN, entry_of(MEAN, 1, "f", details=details)) == plain


def test_the_function_that_a_failing_test_names_is_edited_first() -> None:
    tests = [TestResult("test_mean", "failed"), TestResult("test_sum", "passed")]
    two = MEAN + "\n\ndef other(a, b):\n    return a - b if a < b else a + b\n"
    entry = build_feedback(CodeSubmission(two, 1), SuiteResult(tests))
    assert max(edited_lines(two, entry, 8)) <= 10


def test_hidden_tests_guide_nothing() -> None:
    one = entry_of(MEAN, 1, "ff", hidden=["test_1"])
    two = entry_of(MEAN, 1, "ff", hidden=["test_1"], details="")
    shown = TestResult("test_0", "failed")
    secret = TestResult("test_1", "failed", message="total", details="solution.py:4: in total")
    told = build_feedback(CodeSubmission(MEAN, 1), SuiteResult([shown, secret], hidden=["test_1"]))
    assert RepairAgent(MEAN)([one]) == RepairAgent(MEAN)([two]) == RepairAgent(MEAN)([told])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("if a < b:\n    x\n", "if a <= b:\n    x\n", "line 1: '<' -> '<='"),
        ("a\nb\nc\n", "a\nc\n", "line 2: removed 'b'"),
        ("a\nc\n", "a\n  b\nc\n", "line 2: added 'b'"),
        ("x = f(a)\n", "x = f(a[1:])\n", "line 1: 'a' -> 'a[1:]'"),
        ("a\n", "a\n", "no change"),
        ("a = 1\nb\nc = 1\n", "a = 2\nb\nc = 2\n", "line 1: '1' -> '2' (and 1 more)"),
    ],
)
def test_an_edit_is_described_in_one_line(before: str, after: str, expected: str) -> None:
    assert describe_edit(before, after) == expected


def test_the_last_edit_is_described() -> None:
    agent = RepairAgent(MEAN)
    code = agent([entry_of(MEAN, 1, "ff")])
    assert agent.last_edit == describe_edit(MEAN, code)


# --- prepared answers ----------------------------------------------------------------------------


def test_a_script_answers_by_the_length_of_the_history() -> None:
    agent = ScriptedAgent(["a", "b"])
    history = [entry_of("a", 1, "f")]
    assert [agent(history), agent([]), agent(history)] == ["b", "a", "b"]


def test_a_script_that_is_used_up_says_how_long_it_was() -> None:
    with pytest.raises(AnswersExhausted, match="asked for answer 2, but the script has 1"):
        ScriptedAgent(["a"])([entry_of("a", 1, "f")])


def test_a_script_can_repeat_its_last_answer() -> None:
    agent = ScriptedAgent(iter(["a", "b"]), repeat_last=True)
    assert agent([entry_of("x", i, "f") for i in range(1, 6)]) == "b"


def test_a_script_needs_answers() -> None:
    with pytest.raises(ValueError, match="answers"):
        ScriptedAgent([])
    with pytest.raises(TypeError, match="answers"):
        ScriptedAgent("a program")


# --- commands ------------------------------------------------------------------------------------

ECHO = "import sys; print('```python\\n' + repr(sys.stdin.read()) + '\\n```')"


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def test_a_command_reads_task_program_and_feedback_from_stdin() -> None:
    entry = entry_of("x = 1", 1, "f", message="x is too small")
    prompt = ast.literal_eval(CommandAgent(python(ECHO))([entry], "make x larger"))
    assert prompt.startswith("make x larger\n\nYour last program:\n\n```python\nx = 1\n```")
    assert "x is too small" in prompt


def test_a_command_can_get_the_prompt_as_an_argument() -> None:
    argv = python("import sys; print(sys.argv[1])", "do: {prompt}")
    assert CommandAgent(argv, prompt="argument")([], "nothing") == "do: nothing"


def test_a_command_can_edit_a_file_that_holds_the_last_program() -> None:
    script = "import pathlib as p; f = p.Path('pkg/mod.py'); f.write_text(f.read_text() + '2')"
    agent = CommandAgent(python(script), code="file", file="pkg/mod.py", initial="x = 1")
    assert agent([], "add") == "x = 12"
    assert agent([entry_of("y = 3", 1, "f")], "add") == "y = 32"


def test_the_folder_of_a_command_is_removed() -> None:
    folder = CommandAgent(python("import os; print(os.getcwd())"))([])
    assert folder
    assert not Path(folder).exists()


def test_a_command_that_leaves_no_file_is_an_error() -> None:
    with pytest.raises(CommandFailed, match=r"left no readable solution\.py"):
        CommandAgent(python("pass"), code="file")([])


def test_a_failing_command_shows_exit_code_and_standard_error() -> None:
    script = "import sys; print('out of credit', file=sys.stderr); sys.exit(3)"
    with pytest.raises(CommandFailed, match=r"(?s)exit code 3.*out of credit") as caught:
        CommandAgent(python(script))([])
    assert caught.value.exit_code == 3
    assert caught.value.stderr == "out of credit\n"


def test_a_command_that_does_not_exist_is_a_clear_error() -> None:
    with pytest.raises(CommandFailed, match=r"no-such-agent: cannot be started"):
        CommandAgent(["no-such-agent"])([])


def test_the_environment_of_a_command_is_the_one_given() -> None:
    argv = python("import os; print(sorted(k for k in os.environ if k.startswith('MY_')))")
    assert CommandAgent(argv, env={"MY_KEY": "1"})([]) == "['MY_KEY']"


# The command and a process it starts both hold the lock; a byte in the fifo says that they do.
HOLD = """
import fcntl, os, subprocess, sys
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_SH)
wait = [sys.executable, "-c", "import signal; signal.pause()"]
child = subprocess.Popen(wait, pass_fds=[lock.fileno()])
with open(sys.argv[2], "w") as fifo:
    fifo.write("x")
if sys.argv[3] == "stay":
    child.wait()
print("x = 1")
"""


def assert_lock_is_free(path: Path) -> None:
    """Waits until nobody holds the lock; whoever was killed lets go of it at once."""
    with path.open("w") as lock:
        waiter = threading.Thread(target=fcntl.flock, args=(lock, fcntl.LOCK_EX), daemon=True)
        waiter.start()
        waiter.join(LIMIT_S)
        assert not waiter.is_alive()


def held_by_command(tmp_path: Path, mode: str, timeout_s: float) -> tuple[CommandAgent, Path, Path]:
    lock, fifo = tmp_path / "lock", tmp_path / "fifo"
    os.mkfifo(fifo)
    argv = python(HOLD, str(lock), str(fifo), mode)
    return CommandAgent(argv, timeout_s=timeout_s), lock, fifo


def test_a_command_out_of_time_is_killed_with_all_it_started(tmp_path: Path) -> None:
    agent, lock, fifo = held_by_command(tmp_path, "stay", 1.5)
    reader = threading.Thread(target=fifo.read_text, daemon=True)
    reader.start()
    with pytest.raises(CommandFailed, match=r"no answer within 1\.5 s, killed"):
        agent([])
    reader.join(LIMIT_S)
    assert_lock_is_free(lock)


def test_what_a_command_left_in_the_background_is_killed(tmp_path: Path) -> None:
    agent, lock, fifo = held_by_command(tmp_path, "leave", LIMIT_S)
    reader = threading.Thread(target=fifo.read_text, daemon=True)
    reader.start()
    assert agent([]) == "x = 1"
    reader.join(LIMIT_S)
    assert_lock_is_free(lock)


def test_ctrl_c_kills_the_command_and_all_it_started(tmp_path: Path) -> None:
    agent, lock, fifo = held_by_command(tmp_path, "stay", LIMIT_S)

    def interrupt() -> None:
        fifo.read_text()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        agent([])
    thread.join(LIMIT_S)
    assert_lock_is_free(lock)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"argv": []}, "argv"),
        ({"argv": "agent --go"}, "argv"),
        ({"prompt": "mail"}, "prompt"),
        ({"prompt": "argument"}, "{prompt}"),
        ({"code": "stderr"}, "code"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"code": "file", "cwd": "."}, "cwd"),
        ({"code": "file", "file": "../x.py"}, "file"),
    ],
)
def test_a_wrong_option_of_a_command_is_refused_by_name(
    options: dict[str, Any], match: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        CommandAgent(**{"argv": ["agent"], **options})


# --- chat models ---------------------------------------------------------------------------------


class Endpoint:
    """A stub of an OpenAI-compatible server: answers with `content`, keeps what it was asked."""

    def __init__(self) -> None:
        self.content: str | None = "Here it is:\n```python\nx = 1\n```\n"
        self.requests: list[dict[str, Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.requests.append({"path": self.path, **json.loads(body)})
                message = {"role": "assistant", "content": endpoint.content}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                reply = json.dumps(
                    {
                        "id": "1",
                        "object": "chat.completion",
                        "created": 0,
                        "model": "stub",
                        "choices": [choice],
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    pytest.importorskip("openai", reason="openai is not installed")
    stub = Endpoint()
    thread = threading.Thread(target=stub.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield stub
    stub.server.shutdown()
    stub.server.server_close()
    thread.join(LIMIT_S)


def test_a_chat_model_is_asked_with_task_programs_and_feedback(endpoint: Endpoint) -> None:
    agent = ChatAgent(
        "stub", base_url=endpoint.url, api_key="none", temperature=0.5, max_history=2, max_tokens=99
    )
    history = [entry_of(f"x = {i}", i, "f", message=f"not {i}") for i in range(1, 5)]
    assert agent(history, "make x one") == "x = 1"
    [request] = endpoint.requests
    assert request["path"] == "/v1/chat/completions"
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("stub", 0.5, 99)
    messages = request["messages"]
    assert [m["role"] for m in messages] == ["system", "user", *["assistant", "user"] * 2]
    assert messages[1]["content"] == "make x one"
    assert messages[2]["content"] == "```python\nx = 3\n```"
    assert "not 4" in messages[5]["content"]


def test_a_chat_model_that_says_nothing_is_an_error(endpoint: Endpoint) -> None:
    endpoint.content = None
    with pytest.raises(AnswerMissing, match=r"stub: the answer holds no text"):
        ChatAgent("stub", base_url=endpoint.url, api_key="none")([], "task")


def test_a_chat_model_closes_the_loop(endpoint: Endpoint) -> None:
    agent = ChatAgent("stub", base_url=endpoint.url, api_key="none")
    loop = AgentTestLoop(lambda code: judge(code, [lambda s: s["x"] == 1]), agent)
    assert loop.run("make x one").stopped_by == "all_passed"


def test_without_openai_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ImportError, match=r"pip install 'testgrad\[chat\]'"):
        ChatAgent("stub")


def test_a_history_of_no_programs_is_refused() -> None:
    with pytest.raises(ValueError, match="max_history"):
        ChatAgent("stub", client=object(), max_history=0)


def test_importing_the_agents_loads_no_client() -> None:
    code = "import testgrad.agents, sys; sys.exit(bool({'openai', 'httpx'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT_S)


COMMAND_UNDER_WAY = """
import sys, time
from testgrad import AgentTestLoop, SuiteResult, TestResult
from testgrad.agents import CommandAgent

sleeper = "import pathlib, time; pathlib.Path(%r).touch(); time.sleep(60)" % sys.argv[1]
agent = CommandAgent([sys.executable, "-c", sleeper])
try:
    AgentTestLoop(lambda code: SuiteResult([TestResult("t", "passed")]), agent).run("x")
except KeyboardInterrupt as error:
    print(time.monotonic(), len(error.history))
"""


def test_ctrl_c_while_a_command_runs_is_back_within_100_ms(tmp_path: Path) -> None:
    latencies = []
    for attempt in range(3):  # a busy machine may be late once
        mark = tmp_path / str(attempt)
        command = [sys.executable, "-c", COMMAND_UNDER_WAY, str(mark)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            give_up = time.monotonic() + 30
            while not mark.exists() and time.monotonic() < give_up:
                pass
            pressed = time.monotonic()
            child.send_signal(signal.SIGINT)
            said, _ = child.communicate(timeout=LIMIT_S)
        latencies.append(float(said.split()[0]) - pressed)
        if latencies[-1] < 0.1:
            break
    assert min(latencies) < 0.1, latencies
