"""Programs judged by what they print: exactly, whatever they do to the process they run in."""

import gzip
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from shared_data import needs_shared, shared
from testgrad import Limits, NoVerdict, StdioRunner, SuiteResult, TestSeverity, run_many

FRESH = pytest.mark.parametrize("fresh", ["process", "program"])
ECHO = "print(input())\n"
THREE = [("a", "a"), ("b", "b"), ("c", "c")]


def outcomes(suite: SuiteResult) -> list[str]:
    return [test.reason or test.status.value for test in suite]


# -- recorded verdicts -----------------------------------------------------------------------------

WORDS = {
    "AC": {"passed"},
    "WA": {"failed"},
    "TLE": {"timeout"},
    "RE": {"crash", "memory"},
    "OLE": {"output", "timeout"},
}


def own_tasks() -> list[dict[str, Any]]:
    path = shared("data", "tasks", "stdio_own.jsonl.gz")
    if path is None:
        return []
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def is_topological(given: str, output: str, expected: str) -> bool:
    """What the one task with many answers asks for."""
    numbers = [int(word) for word in given.split()]
    count, edges = numbers[0], list(zip(numbers[2::2], numbers[3::2], strict=True))
    order = output.split()
    if sorted(order) != sorted(str(number) for number in range(1, count + 1)):
        return False
    place = {int(word): index for index, word in enumerate(order)}
    return all(place[before] < place[after] for before, after in edges)


@pytest.mark.slow
@needs_shared("data", "tasks", "stdio_own.jsonl.gz")
def test_every_recorded_verdict_is_given() -> None:
    path = shared("data", "tasks", "expected", "stdio_own.json")
    assert path is not None
    expected = json.loads(path.read_text())
    pairs, names = [], []
    compare = {"lines": "trimmed", "float": "floats"}
    for task in own_tasks():
        run = StdioRunner(
            task["cases"],
            compare=compare.get(task["compare"], task["compare"].replace("checker", "exact")),
            tolerance=task.get("tolerance"),
            checker=is_topological if task["compare"] == "checker" else None,
            limits=Limits(
                timeout_s=600.0,
                test_timeout_s=task["time_limit_s"],
                memory_bytes=task["memory_limit_mb"] << 20,
            ),
        )
        for name, code in task["solutions"].items():
            pairs.append((code, run))
            names.append((task["id"], name))
    differing = []
    for (task_id, name), suite in zip(names, run_many(pairs), strict=True):
        assert isinstance(suite, SuiteResult), (task_id, name, suite)
        wanted = expected[task_id][name]
        got = outcomes(suite)
        if len(got) != len(wanted) or any(
            outcome not in WORDS[word] for outcome, word in zip(got, wanted, strict=True)
        ):
            differing.append((task_id, name, wanted, got))
    assert differing == []


# -- honest programs -------------------------------------------------------------------------------


@FRESH
@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("x = 1\ndef f():\n    global x\n    x += 1\nf()\nprint(x)", "2\n"),
        ("import sys\nprint(sys.stdin.buffer.read())", "b'1 2\\n'\n"),
        ("import sys\nsys.stdout.buffer.write(b'a\\xffb')", b"a\xffb"),
        ("print(open(0).read(), end='')", "1 2\n"),
        ("import os\nprint(os.read(0, 100))", "b'1 2\\n'\n"),
        ("print(1)\nexit()\nprint(2)", "1\n"),
        ("import sys\nprint(1)\nsys.exit(0)", "1\n"),
        ("def main(): print(1)\nif __name__ == '__main__': main()\nprint(2)", "1\n2\n"),
        (
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass A:\n    x: int\nprint(A(1))",
            "A(x=1)\n",
        ),
        (
            "import os\nopen('f', 'w').write('x')\nos.remove('f')\nprint(os.path.exists('f'))",
            "False\n",
        ),
        (
            "import sys, threading\nsys.setrecursionlimit(300_000)\n"
            "threading.stack_size(256 << 20)\n"
            "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
            "t = threading.Thread(target=lambda: print(f(50_000)))\nt.start()\nt.join()",
            "50000\n",
        ),
        ("import subprocess\nsubprocess.Popen(['sleep', '600'])\nprint(1)", "1\n"),
        ("import sys\nsys.stdout.write('x' * 1_000_000)", "x" * 1_000_000),
        ("print(3 ** 3000 % 10 ** 40)", f"{3**3000 % 10**40}\n"),
        ("import sys\nsys.stdout.write('no newline')", "no newline"),
        (
            "import threading, time\n"
            "def f():\n    time.sleep(0.05)\n    print('late')\n"
            "threading.Thread(target=f).start()\nprint('early')",
            "early\nlate\n",
        ),
        (
            "import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, -2]))",
            "[1, 2]\n",
        ),
        ("print(*map(int, input().split()), sep='+')", "1+2\n"),
        ("for line in __import__('sys').stdin: print(line.strip())", "1 2\n"),
        ("print('é🦀')", "é🦀\n"),
        ("import random, numpy\nprint(numpy.arange(3).sum())", "3\n"),
        ("print(__name__, __file__)", "__main__ solution.py\n"),
        ("print(input.__module__, [x for x in dir() if x[0] != '_'])", "builtins []\n"),
    ],
)
def test_an_honest_program_passes_however_odd(code: str, output: str | bytes, fresh: str) -> None:
    suite = StdioRunner([("1 2\n", output)] * 2, compare="exact", fresh=fresh)(code)
    assert suite.all_passed, [(test.message, test.details) for test in suite]
    assert suite.trust == "isolated"


@FRESH
def test_functions_registered_for_the_end_are_called(fresh: str) -> None:
    code = "import atexit\natexit.register(print, 'end')\nprint('begin')"
    suite = StdioRunner([("", "begin\nend\n")] * 2, compare="exact", fresh=fresh)(code)
    assert suite.all_passed


@FRESH
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print(1)\nraise ValueError('no')", "ValueError: no"),
        ("import sys\nsys.exit('said')", "said"),
        ("import sys\nsys.exit(3)", "the program ended with exit code 3"),
        ("def f(:\n", "SyntaxError: "),
        ("input()\ninput()", "EOFError: EOF when reading a line"),
    ],
)
def test_a_program_that_fails_says_why(code: str, message: str, fresh: str) -> None:
    (test,) = StdioRunner([("1", "1")], fresh=fresh)(code)
    assert (test.status.value, test.reason) == ("error", "crash")
    assert test.message.startswith(message)


def test_the_cases_in_a_workspace_are_not_the_candidates(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text("import helper\nprint(helper.answer())\n")
    (tmp_path / "helper.py").write_text(
        "import os\ndef answer(): return os.path.exists('cases.json')"
    )
    (tmp_path / "cases.json").write_text("[]")
    suite = StdioRunner([("", "False")])(tmp_path)
    assert suite.all_passed
    assert suite.warnings == (
        "of the candidate's workspace, only Python files are used, not cases.json",
    )


def test_each_case_begins_anew() -> None:
    code = "import os\nprint(os.path.exists('mark'))\nopen('mark', 'w')"
    assert StdioRunner([("", "False")] * 3)(code).all_passed


# -- hostile programs ------------------------------------------------------------------------------


@FRESH
@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("while True: pass", "timeout"),
        ("import time; time.sleep(600)", "timeout"),
        ("import os; os._exit(7)", "crash"),
        ("import os; os.kill(os.getpid(), 9)", "crash"),
        ("import os; os.abort()", "crash"),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "memory"),
        ("import os\nwhile True: os.write(1, b'x' * 65536)", "output"),
    ],
)
def test_a_case_that_goes_wrong_costs_that_case(act: str, reason: str, fresh: str) -> None:
    act = act.replace("\n", "\n    ")
    code = f"line = input()\nif line == 'b':\n    {act}\nprint(line)\n"
    limits = Limits(
        timeout_s=60.0, test_timeout_s=1.0, memory_bytes=256 << 20, output_bytes=1 << 20
    )
    suite = StdioRunner(THREE, fresh=fresh, limits=limits)(code)
    if fresh == "program" and reason == "output":
        reason = "memory"  # what is printed lies in memory there
        assert outcomes(suite)[1] in ("memory", "output", "crash")
    else:
        assert outcomes(suite)[1] == reason, suite[1]
    assert [outcomes(suite)[0], outcomes(suite)[2]] == ["passed", "passed"]


def test_a_hang_costs_the_limit_of_the_run_once() -> None:
    suite = StdioRunner(THREE, limits=Limits(timeout_s=0.5))("while True: pass")
    assert outcomes(suite) == ["timeout", "not_run", "not_run"]
    assert suite.duration_ms is not None
    assert suite.duration_ms < 5_000  # 600 on a machine at rest


def test_a_case_may_have_a_time_limit_of_its_own() -> None:
    cases = [{"input": "a", "output": "a", "timeout_s": 0.3}, ("b", "b")]
    code = "import time\nline = input()\nif line == 'a': time.sleep(600)\nprint(line)\n"
    suite = StdioRunner(cases)(code)
    assert outcomes(suite) == ["timeout", "passed"]
    assert suite[0].message == "not done after 0.3 s, the limit for one case"


# -- comparing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compare", "output", "expected", "passes"),
    [
        ("trimmed", "a  \nb\n\n", "a\nb", True),
        ("trimmed", " a", "a", False),
        ("exact", "a\n", "a", False),
        ("tokens", "a   b\n c", "a b c", True),
        ("floats", "0.3333333", "0.33333333333", True),
        ("floats", "0.3334", "0.3333", False),
        ("floats", "nan", "1.0", False),
        ("unordered", "b\na", "a\nb", True),
        ("unordered", "b\nb", "a\nb", False),
    ],
)
def test_outputs_are_compared_as_asked(
    compare: str, output: str, expected: str, passes: bool
) -> None:
    suite = StdioRunner([("", expected)], compare=compare)(f"print({output!r}, end='')")
    assert suite.all_passed is passes


def test_a_wrong_output_says_where_it_differs() -> None:
    (test,) = StdioRunner([("", "1\n2\n3")])("print(1, 2, 4, sep='\\n')")
    assert (test.status.value, test.message) == ("failed", 'line 3: expected "3", got "4"')


def test_a_checker_judges_where_many_answers_are_right() -> None:
    def close(given: str, output: str, expected: str) -> bool | str:
        if output.strip() == "odd":
            return "no number"
        return abs(float(output) - float(given)) < 5

    run = StdioRunner([("10", "?")], checker=close)
    assert run("print(12)").all_passed
    assert run("print(20)")[0].message == "the checker refused the output"
    assert run("print('odd')")[0].message == "no number"
    with pytest.raises(NoVerdict, match="the checker failed: ValueError: could not convert"):
        run("print('x')")
    none = StdioRunner([("", "")], checker=lambda *_: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(NoVerdict, match="what the checker returns must be True, False or a str"):
        none("")


# -- settings --------------------------------------------------------------------------------------


def test_names_and_severities_are_the_cases() -> None:
    cases = [{"name": "big", "input": "", "output": "1", "severity": "critical"}, ("", "1")]
    suite = StdioRunner(cases)("print(1)")
    assert [(test.name, test.severity) for test in suite] == [
        ("big", TestSeverity.CRITICAL),
        ("case[1]", TestSeverity.MAJOR),
    ]


def test_the_first_failure_can_end_the_run() -> None:
    for fresh in ("process", "program"):
        suite = StdioRunner(THREE, stop_at="first_failure", fresh=fresh)("print('a')")
        assert outcomes(suite) == ["passed", "failed", "not_run"]


def test_a_case_that_changes_its_mind_is_flaky() -> None:
    run = StdioRunner([("", "0"), ("", "x")], repeat=20)
    suite = run("import os, random\nrandom.seed()\nprint(random.randrange(2))")
    flaky, wrong = suite
    assert (flaky.status.value, flaky.reason, wrong.reason) == ("failed", "flaky", None)
    assert any(warning.startswith("case[0] is flaky: passed") for warning in suite.warnings)


def test_a_seed_makes_runs_alike() -> None:
    code = "import random\nprint(random.random(), hash('a'))"
    outputs = set()
    for _ in range(3):
        (test,) = StdioRunner([("", "")], seed=7)(code)
        outputs.add(test.message)
    assert len(outputs) == 1
    assert StdioRunner([("", "")], seed=8)(code)[0].message not in outputs


def test_a_cached_suite_is_the_same_again() -> None:
    run = StdioRunner([("", "")], cache=1)
    code = "import time\nprint(time.time_ns())"
    first = run(code)
    assert run(code) == first
    run("print()")
    assert run(code) != first  # only so many are kept


def test_the_clock_can_be_that_of_the_processor() -> None:
    code = "import time\ntime.sleep(0.5)"
    (slept,) = StdioRunner([("", "")], clock="cpu")(code)
    (took,) = StdioRunner([("", "")])(code)
    assert slept.duration_ms < 400 < took.duration_ms
    with pytest.raises(ValueError, match='clock="cpu" needs fresh="process"'):
        StdioRunner([], clock="cpu", fresh="program")


def test_a_runner_survives_pickling() -> None:
    run = StdioRunner([("1", "1")], compare="tokens", limits=Limits(timeout_s=3.0), seed=1)
    again = pickle.loads(pickle.dumps(run))
    assert repr(again) == repr(run) == "<StdioRunner by 1 cases>"
    assert pickle.dumps(again) == pickle.dumps(run)
    assert again(ECHO).all_passed


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([("a",)], "cases[0] must be a mapping or a pair of input and output"),
        (["ab"], "cases[0] must be a mapping or a pair of input and output"),
        ([("a", "b"), {"input": "a"}], "cases[1] has no 'output'"),
        ([(1, "b")], "cases[0]['input'] must be str or bytes"),
        ([{"input": "", "output": "", "timeout_s": -1}], "timeout_s must be > 0"),
    ],
)
def test_a_case_that_is_none_is_refused_by_its_place(cases: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        StdioRunner(cases)
    assert str(caught.value).replace('"', "'").startswith(message)


# -- many ------------------------------------------------------------------------------------------


def test_many_candidates_come_in_their_order() -> None:
    run = StdioRunner([("", "3")])
    suites = run.run_many([f"print({number})" for number in range(20)], workers=2)
    assert [suite.all_passed for suite in suites] == [number == 3 for number in range(20)]


def test_pairs_have_their_own_runners() -> None:
    one, two = StdioRunner([("", "1")]), StdioRunner([("", "2")])
    suites = run_many([("print(1)", one), ("print(1)", two), ("print(2)", two)])
    assert [suite.all_passed for suite in suites] == [True, False, True]
    with pytest.raises(TypeError, match="a pair's second half must be a runner or a task"):
        run_many([("print(1)", 7)])


def test_what_is_not_done_by_the_deadline_has_no_verdict() -> None:
    run = StdioRunner([("", "")], limits=Limits(timeout_s=60.0))
    codes = ["", "import time; time.sleep(60)", ""]
    first, second, third = run.run_many(codes, workers=1, deadline_s=3.0)
    assert first.all_passed
    assert [type(second), str(second)] == [NoVerdict, "the deadline had passed"]
    assert isinstance(third, NoVerdict)


def test_a_bar_says_how_far_a_batch_is(capsys: pytest.CaptureFixture[str]) -> None:
    run = StdioRunner([("", "1")])
    run.run_many(["print(1)", "print(2)"], progress=True)
    assert capsys.readouterr().err.splitlines()[-1] == "testgrad: 2/2 candidates, 1 passed"


def test_ctrl_c_keeps_what_is_done() -> None:
    run = StdioRunner([("", "")], limits=Limits(timeout_s=60.0))
    import _thread
    import os
    import threading

    from processes import NAME_ITSELF, named, wait_for

    def interrupt() -> None:
        wait_for(lambda: named(os.getpid(), "second"))
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    slow = NAME_ITSELF + "import time\nname_itself('second')\ntime.sleep(60)\n"
    with pytest.raises(KeyboardInterrupt) as caught:
        run.run_many(["", slow, ""], workers=1)
    thread.join()
    first, second, third = caught.value.results  # type: ignore[attr-defined]
    assert first.all_passed
    assert [str(second), str(third)] == ["interrupted"] * 2


def test_a_program_may_judge_outputs(tmp_path: Path) -> None:
    checker = tmp_path / "check.py"
    checker.write_text(
        """
import sys
number, output, expected = (open(path).read().split() for path in sys.argv[1:4])
if output == ["crash"]: sys.exit(3)
if len(output) != 2: print("two numbers are wanted"); sys.exit(2)
sys.exit(0 if int(output[0]) * int(output[1]) == int(number[0]) else 1)
"""
    )
    runner = StdioRunner([("12", "")], checker=[sys.executable, str(checker)])
    assert runner("print(3, 4)").all_passed
    assert runner("print(2, 6)").all_passed
    wrong = runner("print(2, 5)")
    assert (wrong[0].status.value, wrong[0].message) == (
        "failed",
        "the checker says that it is wrong",
    )
    assert runner("print(2)")[0].message == "two numbers are wanted"
    with pytest.raises(NoVerdict, match="exit code 3"):
        runner("print('crash')")
    with pytest.raises(NoVerdict, match="No such file"):
        StdioRunner([("", "")], checker=["/no/such/checker"])("print(1)")
    assert pickle.loads(pickle.dumps(runner))("print(3, 4)").all_passed
    with pytest.raises(TypeError, match="checker must be a function, or the words of a command"):
        StdioRunner([], checker="check")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="checker must have words"):
        StdioRunner([], checker=[])
