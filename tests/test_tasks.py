"""`testgrad.tasks`: formats are told apart, nothing is lost, and the references pass."""

import base64
import copy
import gzip
import json
import math
import os
import pickle
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared_data import needs_shared, shared
from testgrad import PytestRunner, TaskError, TestgradError, run_many, tasks
from testgrad.tasks import Task, runner_options

FILES = {  # tasks, cases, kind: the table in ../shared/data/tasks/README.md
    "humaneval": (164, 0, "pytest"),
    "mbpp_100": (100, 0, "pytest"),
    "quixbugs": (40, 0, "pytest"),
    "exercism_python_60": (60, 0, "pytest"),
    "exercism_rust_10": (10, 0, "command"),
    "exercism_go_10": (10, 0, "command"),
    "exercism_javascript_10": (10, 0, "command"),
    "stdio_own": (60, 268, "stdio"),
}
HUMANEVAL = {
    "task_id": "H/0",
    "prompt": "import math\n\n\ndef twice(x):\n    return 2 * x\n\n\n"
    'def f(x):\n    """Add one."""\n',
    "entry_point": "f",
    "canonical_solution": "    return math.floor(x) + 1\n",
    "test": "def check(candidate):\n"
    "    assert candidate(1) == 2\n    assert candidate(twice(2)) == 5\n",
}
MBPP = {
    "task_id": 3,
    "text": "Find duplicates.",
    "code": "class Pair:\n    pass\ndef test_duplicate(x):\r\n    return len(x) != len(set(x))",
    "test_list": [
        "assert test_duplicate([1, 1]) == True",
        "assert test_duplicate([1,\n    2]) == False\nassert pair.x == 1",
        'assert test_duplicate("""a\na""") == True',
    ],
    "test_setup_code": "pair = Pair()\npair.x = 1",
    "challenge_test_list": ["assert False"],
}


def raw(name: str) -> list[dict[str, Any]]:
    path = shared("data", "tasks", f"{name}.jsonl.gz")
    assert path is not None
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def written(folder: Path, *rows: object, name: str = "tasks.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def one(folder: Path, row: object) -> Task:
    (task,) = tasks.read(written(folder, row))
    return task


def said(suite: Any) -> list[tuple[str, str]]:
    return [(test.name.split("::")[-1], test.status.value) for test in suite]


# -- real files ------------------------------------------------------------------------------------


@needs_shared("data", "tasks")
@pytest.mark.parametrize("name", FILES)
def test_every_task_of_the_real_files_is_read(name: str, tmp_path: Path) -> None:
    path = shared("data", "tasks", f"{name}.jsonl.gz")
    assert path is not None
    found = list(tasks.read(path))
    rows = raw(name)
    assert (len(found), sum(len(task.cases) for task in found)) == FILES[name][:2]
    assert {task.kind for task in found} == {FILES[name][2]}
    assert [task.id for task in found] == [row["id"] for row in rows]
    assert [task.source for task in found] == [(str(path), n + 1) for n in range(len(rows))]
    assert all(task.reference is not None for task in found)
    for task, row in zip(found, rows, strict=True):
        assert list(task.variants) == list(row.get("variants", row.get("solutions")))
        assert task.tests == row.get("files", {})
    again = tmp_path / "again.jsonl.gz"
    tasks.write(again, found)
    assert list(tasks.read(again)) == found
    assert pickle.loads(pickle.dumps(found)) == found


@needs_shared("data", "tasks")
@pytest.mark.parametrize("name", ["humaneval", "mbpp_100", "quixbugs", "exercism_python_60"])
def test_the_reference_passes_what_the_stub_does_not(name: str) -> None:
    path = shared("data", "tasks", f"{name}.jsonl.gz")
    facts = shared("data", "tasks", "expected", f"{name}.json")
    assert path is not None
    assert facts is not None
    expected = json.loads(facts.read_text())
    for task in list(tasks.read(path))[3:30:13]:
        suite = task.runner()(task.reference)
        assert suite.all_passed, (task.id, suite.failing)
        assert [test.name for test in suite] == expected[task.id]["tests"]
        assert not task.runner()(task.stub).all_passed, task.id


@needs_shared("data", "tasks")
def test_rows_of_humaneval_itself_judge_as_they_should(tmp_path: Path) -> None:
    rows = []
    for row in raw("humaneval")[:60:12] + raw("humaneval")[32:51:6]:  # 32, 38 and 50 use helpers
        code = row["variants"]["reference"]["solution.py"]
        test = row["files"]["test_task.py"].partition("import solution as _s\n")[2]
        assert code.startswith(row["prompt"])
        rows.append(
            {
                "task_id": row["id"].replace("_", "/"),
                "prompt": row["prompt"],
                "entry_point": row["entry_point"],
                "canonical_solution": code.removeprefix(row["prompt"]),
                "test": test.partition("def test_check")[0],
            }
        )
    for task, row in zip(tasks.read(written(tmp_path, *rows)), rows, strict=True):
        run = task.runner()
        assert isinstance(run, PytestRunner)
        assert said(run(task.reference)) == [("test_check", "passed")]
        assert not run(task.stub).all_passed
        assert task.candidate(row["canonical_solution"]) == task.reference
        chat = f"Sure:\n```python\n{row['canonical_solution']}```\n"
        assert run(task.candidate(chat)).all_passed


@needs_shared("data", "tasks")
def test_rows_of_mbpp_itself_judge_as_they_should(tmp_path: Path) -> None:
    rows = []
    for row in raw("mbpp_100")[::25]:
        parts = row["files"]["test_task.py"].split("\n    assert ")[1:]
        asserts = ["assert " + part.partition("\n\n\ndef ")[0].strip() for part in parts]
        rows.append(
            {
                "source_file": "x",
                "task_id": int(row["id"].split("_")[1]),
                "prompt": row["prompt"],
                "code": row["variants"]["reference"]["solution.py"],
                "test_imports": ["import math"],
                "test_list": asserts,
            }
        )
    path = tmp_path / "sanitized-mbpp.json"
    path.write_text(json.dumps(rows, indent=2))
    for task, row in zip(tasks.read(path), rows, strict=True):
        assert task.id == str(row["task_id"])
        assert task.entry_point is not None
        expected = [(f"test_{n + 1}", "passed") for n in range(len(row["test_list"]))]
        assert said(task.runner()(task.reference)) == expected


# -- HumanEval and MBPP ----------------------------------------------------------------------------


def test_check_is_one_test_and_sees_the_names_of_the_program(tmp_path: Path) -> None:
    task = one(tmp_path, HUMANEVAL)
    assert said(task.runner()(task.reference)) == [("test_check", "passed")]
    assert said(task.runner()("def f(x): return 2")) == [("test_check", "failed")]  # no twice


def test_what_a_candidate_calls_a_test_is_none(tmp_path: Path) -> None:
    task = one(tmp_path, HUMANEVAL)
    cheat = """
import unittest
class Passes(unittest.TestCase):
    def test_a(self): pass
def test_b(): pass
def setup_module(): raise SystemExit
pytest_plugins = ["no_such_plugin"]
def check(candidate): pass
def twice(x): return 4
def f(x): return x + 1
"""
    assert said(task.runner()(cheat)) == [("test_check", "passed")]
    assert said(task.runner()(cheat.replace("x + 1", "x"))) == [("test_check", "failed")]


def test_every_assert_is_a_test_after_the_set_up(tmp_path: Path) -> None:
    task = one(tmp_path, MBPP)
    assert task.entry_point == "test_duplicate"
    expected = [("test_1", "passed"), ("test_2", "passed"), ("test_3", "passed")]
    assert said(task.runner()(task.reference)) == expected
    wrong = "class Pair: pass\ndef test_duplicate(x): return True"
    assert [status for _, status in said(task.runner()(wrong))] == ["passed", "failed", "passed"]


PROGRAM = HUMANEVAL["prompt"] + HUMANEVAL["canonical_solution"]  # type: ignore[operator]
WHOLE = "def f(x):\n    return math.floor(x) + 1"


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (HUMANEVAL["canonical_solution"], PROGRAM),
        ("```python\n    return math.floor(x) + 1\n```", PROGRAM.rstrip("\n")),
        ("```\nreturn math.floor(x) + 1\n```", None),
        (PROGRAM, PROGRAM.strip()),
        (WHOLE, None),
        (f"Here it is:\n\n```python\n{WHOLE}\n```\nDone.", None),
        (f"<think>def f(x): hm</think>\n```py\n{WHOLE}\n```", None),
        (WHOLE.replace("\n", "\r\n"), None),
        (f"from typing import Any\n\n{WHOLE}\n", None),
        ("    y = x\n\n    def f(z):\n        return z\n    return math.floor(y) + 1\n", None),
    ],
)
def test_a_completion_becomes_a_program(
    completion: str, expected: str | None, tmp_path: Path
) -> None:
    task = one(tmp_path, HUMANEVAL)
    program = task.candidate(completion)
    assert isinstance(program, str)
    assert expected in (None, program)
    names: dict[str, Any] = {}
    exec(program, names)
    assert (names["f"](1), names["twice"](2)) == (2, 4)


def test_a_prompt_without_a_line_end_is_gone_on_from(tmp_path: Path) -> None:
    task = one(tmp_path, HUMANEVAL | {"prompt": 'def f(x):\n    """Add one."""'})
    for completion in ("\n    return x + 1", "    return x + 1", "```\nreturn x + 1\n```"):
        names: dict[str, Any] = {}
        exec(str(task.candidate(completion)), names)
        assert names["f"](1) == 2


def test_a_completion_of_a_prompt_in_words_is_the_program(tmp_path: Path) -> None:
    task = one(tmp_path, MBPP)
    assert task.candidate("Yes:\n```python\ndef test_duplicate(x): ...\n```") == (
        "def test_duplicate(x): ..."
    )


def test_a_completion_for_a_command_is_its_file() -> None:
    task = Task("x", kind="command", tests={"t": ""}, reference={"src/lib.rs": "fn f() {}"})
    assert task.candidate("```rust\nfn g() {}\n```") == {"src/lib.rs": "fn g() {}"}
    with pytest.raises(ValueError, match="several files"):
        Task("x", kind="command").candidate("fn")


# -- inputs and outputs ----------------------------------------------------------------------------


def test_a_packed_list_of_hidden_tests_is_read_without_unpickling(tmp_path: Path) -> None:
    hidden = json.dumps([{"input": "3\n4", "output": "7", "testtype": "functional"}])
    for protocol in range(1, pickle.HIGHEST_PROTOCOL + 1):
        packed = base64.b64encode(zlib.compress(pickle.dumps(hidden, protocol))).decode()
        row = {
            "question_id": "2",
            "question_content": "Add.",
            "starter_code": "class Solution:\n    def add(self, a, b):\n",
            "public_test_cases": '[{"input": "1\\n2\\n", "output": "3", "testtype": "functional"}]',
            "private_test_cases": packed,
            "metadata": '{"func_name": "add"}',
        }
        task = one(tmp_path, row)
        assert (task.id, task.kind, task.entry_point) == ("2", "function", "add")
        assert [case["args"] for case in task.cases] == [[1, 2], [3, 4]]
        assert [case["expected"] for case in task.cases] == [3, 7]


def test_a_pickle_of_anything_else_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    packed = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    row = {"public_test_cases": "[]", "private_test_cases": packed}
    with pytest.raises(TaskError, match="private_test_cases"):
        one(tmp_path, row)
    assert not (tmp_path / "made").exists()


def test_a_row_of_verl_is_read(tmp_path: Path) -> None:
    pairs = {"fn_name": "flips", "inputs": [["0101"], ["11"]], "outputs": [[0], [2]]}
    row = {
        "data_source": "taco",
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "Flip."}],
        "reward_model": {"style": "rule", "ground_truth": json.dumps(pairs)},
        "extra_info": {"split": "train", "index": 119, "reference": None},
    }
    task = one(tmp_path, row)
    assert (task.id, task.prompt) == ("tasks/1", "Flip.")
    assert task.cases == (
        {"args": ["0101"], "kwargs": {}, "expected": 0},
        {"args": ["11"], "kwargs": {}, "expected": 2},
    )


def test_ints_of_any_length_survive(tmp_path: Path) -> None:
    digits = "7" * 5000
    path = tmp_path / "tasks.jsonl"
    path.write_text(f'{{"fn_name": "f", "inputs": ["{digits}"], "outputs": ["-{digits}"]}}\n')
    (task,) = tasks.read(path)
    big = 7 * (10**5000 - 1) // 9
    assert task.cases[0]["args"] == [big]
    assert task.cases[0]["expected"] == -big
    tasks.write(path, [task])
    assert list(tasks.read(path)) == [task]


# -- Exercism --------------------------------------------------------------------------------------


def exercise(folder: Path, files: dict[str, str], **named: list[str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / ".meta").mkdir(exist_ok=True)
    (folder / ".meta" / "config.json").write_text(json.dumps({"authors": [], "files": named}))
    return folder


def leap(folder: Path) -> Path:
    files = {
        "leap.py": "def leap_year(year):\n    pass\n",
        "leap_test.py": "from leap import leap_year\ndef test_leap(): assert leap_year(4)\n",
        "data.txt": "beside it",
        ".meta/example.py": "def leap_year(year):\n    return year % 4 == 0\n",
        ".docs/instructions.md": "# Instructions\n\nSay whether it is.\n",
        "__pycache__/x.txt": "",
    }
    return exercise(
        folder, files, solution=["leap.py"], test=["leap_test.py"], example=[".meta/example.py"]
    )


def test_a_python_exercise_is_a_suite(tmp_path: Path) -> None:
    (task,) = tasks.read(leap(tmp_path / "leap"))
    assert (task.id, task.kind, task.module) == ("leap", "pytest", "leap")
    assert task.prompt == "# Instructions\n\nSay whether it is."
    assert list(task.tests) == ["leap_test.py", "data.txt"]
    assert task.source == (str(tmp_path / "leap"), None)
    assert task.runner()(task.reference).all_passed
    assert not task.runner()(task.stub).all_passed


def test_a_track_is_all_its_exercises(tmp_path: Path) -> None:
    practice = tmp_path / "exercises" / "practice"
    leap(practice / "leap")
    files = {
        "src/lib.rs": "",
        "Cargo.toml": "[package]",
        "tests/two.rs": "use two::*;",
        ".meta/example.rs": "pub fn two() {}",
    }
    exercise(
        practice / "Two",
        files,
        solution=["src/lib.rs", "Cargo.toml"],
        test=["tests/two.rs"],
        example=[".meta/example.rs"],
    )
    two, one = tasks.read(tmp_path)
    assert (one.id, two.id, two.kind, two.module) == ("leap", "Two", "command", None)
    assert two.reference == {"src/lib.rs": "pub fn two() {}"}
    assert two.stub == {"src/lib.rs": "", "Cargo.toml": "[package]"}
    assert two.tests == {"tests/two.rs": "use two::*;"}


def test_an_exercise_cannot_reach_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    for name, path in {"a": "../secret", "b": "link", "c": str(tmp_path / "secret")}.items():
        folder = leap(tmp_path / "track" / name)
        (folder / "link").symlink_to(tmp_path / "secret")
        config = {"files": {"solution": ["leap.py"], "test": ["leap_test.py"], "example": [path]}}
        (folder / ".meta" / "config.json").write_text(json.dumps(config))
    problems: list[TaskError] = []
    assert list(tasks.read(tmp_path / "track", on_error=problems.append)) == []
    assert [Path(str(problem.path)).name for problem in problems] == ["a", "b", "c"]
    (task,) = tasks.read(leap(tmp_path / "track" / "b"))
    assert "link" not in task.tests


def test_a_folder_without_exercises_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no exercise in it"):
        tasks.read(tmp_path)
    with pytest.raises(IsADirectoryError):
        tasks.read(tmp_path, format="apps")


# -- files and errors ------------------------------------------------------------------------------


def test_a_broken_line_says_where_and_what(tmp_path: Path) -> None:
    lost = {key: value for key, value in HUMANEVAL.items() if key != "test"}
    path = written(tmp_path, HUMANEVAL, lost, HUMANEVAL)
    reading = tasks.read(path)
    next(reading)
    with pytest.raises(TaskError) as raised:
        next(reading)
    error = raised.value
    assert str(error) == f'{path}, line 2: no "test"'
    assert (str(error.path), error.line, error.format) == (str(path), 2, "humaneval")
    assert isinstance(error, ValueError)
    assert isinstance(error, TestgradError)
    assert next(reading).source == (str(path), 3)


def test_broken_tasks_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, {"input_output": ""}, {"inputs": ["1"], "outputs": ["1"]}, 3)
    problems: list[TaskError] = []
    assert [task.id for task in tasks.read(path, on_error=problems.append)] == ["tasks/2"]
    assert [problem.line for problem in problems] == [1, 3]


def test_an_unknown_format_says_what_was_seen(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"humaneval.*saw an object with 'name'") as raised:
        one(tmp_path, {"name": 1})
    assert raised.value.format is None
    with pytest.raises(ValueError, match="format must be one of testgrad"):
        tasks.read(written(tmp_path), format="nonsense")


def test_a_forced_format_is_not_asked_about(tmp_path: Path) -> None:
    path = written(tmp_path, HUMANEVAL)
    with pytest.raises(TaskError, match=r"no tests"):
        next(tasks.read(path, format="apps"))
    assert next(tasks.read(path, format="humaneval")).id == "H/0"


def test_a_missing_file_is_pythons_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        tasks.read(tmp_path / "none.jsonl")
    assert raised.value.filename == str(tmp_path / "none.jsonl")


@pytest.mark.parametrize("packed", [False, True])
def test_blank_lines_line_ends_and_a_mark_do_not_matter(tmp_path: Path, packed: bool) -> None:
    line = json.dumps(HUMANEVAL).encode()
    content = b"\xef\xbb\xbf\r\n" + line + b"\r\n  \r\n" + line
    path = tmp_path / "tasks"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert [task.source for task in tasks.read(path)] == [(str(path), 2), (str(path), 4)]


def test_a_cut_gzip_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(HUMANEVAL).encode())[:-40])
    with pytest.raises(TaskError, match="cannot read"):
        list(tasks.read(path))


READ_ALL = """
import resource, sys
from testgrad import tasks
usage = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = usage()
count = sum(1 for task in tasks.read(sys.argv[1]))
print(count, usage() - before)
"""


@pytest.mark.parametrize("ends", ["lines", "array"])
def test_only_one_task_at_a_time_is_in_memory(tmp_path: Path, ends: str) -> None:
    row = json.dumps({"inputs": ["1 " * 500_000], "outputs": ["2"]})
    path = tmp_path / "big.json.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        opening, between, closing = ("[", ",\n", "]") if ends == "array" else ("", "\n", "\n")
        file.write(opening + row)
        for _ in range(149):
            file.write(between + row)
        file.write(closing)
    command = [sys.executable, "-c", READ_ALL, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    count, grown_kib = map(int, done.stdout.split())
    assert count == 150
    assert grown_kib < 40_000  # of 150,000 that the file has


# -- the value -------------------------------------------------------------------------------------

FULL = {
    "prompt": "p",
    "kind": "function",
    "entry_point": "f",
    "cases": [
        {"args": [(1, {2}), b"\0"], "kwargs": {"k": {1: None}}, "expected": math.nan},
        {"args": [], "expected": {"$set": [1]}},
    ],
    "tolerance": 0.5,
    "time_limit_s": 2,
    "memory_limit_bytes": 1 << 30,
    "reference": "r",
    "stub": {"a.py": "é\ud800"},
    "variants": {"x": "1", "y": {"p": "q"}},
    "source": ("a.jsonl", 3),
}


def values() -> Iterator[Task]:
    yield Task("full", **FULL)
    yield Task("cmd", kind="command")
    yield Task("io", kind="stdio", cases=[{"input": "a", "output": "b"}], compare="checker")
    yield Task("py", "p", kind="pytest", tests={"test_a.py": ""}, module="a.b", source=("x", None))


@pytest.mark.parametrize("task", list(values()), ids=lambda task: task.id)
def test_a_task_is_a_value(task: Task, tmp_path: Path) -> None:
    for again in (
        pickle.loads(pickle.dumps(task)),
        copy.deepcopy(task),
        Task.from_json(task.to_json()),
        Task.from_json(task.to_json().encode()),
    ):
        assert again == task
        assert hash(again) == hash(task)
    tasks.write(tmp_path / "t.jsonl", [task])
    assert list(tasks.read(tmp_path / "t.jsonl")) == [task]
    assert task != Task("other", kind="command")
    with pytest.raises(AttributeError):
        task.id = "x"  # type: ignore[misc]


def test_what_a_task_gives_away_cannot_change_it() -> None:
    task = Task("full", **FULL)
    task.variants.clear()
    task.cases[0]["args"].append(1)
    assert len(task.variants) == 2
    assert task.cases[0]["args"] == [(1, {2}), b"\0"]
    assert task.cases[0]["kwargs"] == {"k": {1: None}}
    assert task.cases[1] == {"args": [], "kwargs": {}, "expected": {"$set": [1]}}


def test_a_repr_is_short() -> None:
    assert [repr(task) for task in values()] == [
        "<Task 'full': function, 2 cases>",
        "<Task 'cmd': command, 0 files>",
        "<Task 'io': stdio, 1 case>",
        "<Task 'py': pytest, 1 file>",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "nonsense"}, "kind must be one of pytest"),
        ({"kind": "pytest"}, "at least one file is needed"),
        ({"kind": "stdio", "cases": [{"input": ""}]}, r"cases\[0\]: no \"output\""),
        ({"kind": "function", "cases": [{"expected": object()}]}, "not plain data"),
        ({"kind": "function", "cases": [{"expected": 1}]}, "a function is needed"),
        ({"kind": "command", "compare": "nearly"}, "compare must be one of"),
        ({"kind": "command", "time_limit_s": 0}, "time_limit_s must be > 0"),
        ({"kind": "command", "memory_limit_bytes": -1}, "memory_limit_bytes must be > 0"),
        ({"kind": "command", "tolerance": math.nan}, "tolerance must be >= 0"),
    ],
)
def test_what_is_no_task_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Task("x", **options)


def test_writing_over_what_is_being_read_loses_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, HUMANEVAL, MBPP)
    before = list(tasks.read(path))
    tasks.write(path, tasks.read(path))
    assert list(tasks.read(path)) == before
    with pytest.raises(AttributeError):
        tasks.write(path, [before[0], None])  # type: ignore[list-item]
    assert list(tasks.read(path)) == before
    assert list(tmp_path.iterdir()) == [path]


# -- runners ---------------------------------------------------------------------------------------


def test_a_task_of_each_kind_is_judged_by_its_runner() -> None:
    adds = "def add(a, b): return a + b\n"
    prints = "print(sum(map(int, input().split())))\n"
    cases = [{"args": [1, 2], "expected": 3}, {"args": [[1], [2]], "expected": [1, 2]}]
    test = {"test_a.py": "from solution import add\ndef test_add(): assert add(1, 2) == 3\n"}
    tasks_and_codes = [
        (Task("f", kind="function", entry_point="add", cases=cases), adds),
        (Task("s", kind="stdio", cases=[{"input": "1 2", "output": "3"}]), prints),
        (Task("p", kind="pytest", tests=test), adds),
    ]
    assert [task.runner()(code).all_passed for task, code in tasks_and_codes] == [True] * 3
    suites = run_many([(code, task) for task, code in tasks_and_codes])
    assert [suite.all_passed for suite in suites] == [True] * 3


def test_the_options_of_a_runner_are_what_the_task_says() -> None:
    full, command, io, suite = values()
    options = runner_options(full)
    assert len(options.pop("cases")) == 2  # which hold a NaN
    assert options == {
        "entry_point": "f",
        "sequences_equal": True,
        "tolerance": 0.5,
        "limits": {"test_timeout_s": 2.0, "timeout_s": 10.0, "memory_bytes": 1 << 30},
    }
    assert runner_options(io) == {"cases": ({"input": "a", "output": "b"},)}
    assert runner_options(suite) == {"tests": {"test_a.py": ""}, "module": "a.b"}
    with pytest.raises(ValueError, match="for a command"):
        runner_options(command)
    with pytest.raises(ValueError, match="give a checker="):
        io.runner()


def test_a_long_task_gets_the_time_of_all_its_cases() -> None:
    case = {"input": "", "output": ""}
    task = Task(
        "x", kind="stdio", cases=[case] * 8, time_limit_s=3.0, compare="floats", tolerance=0.1
    )
    options = runner_options(task)
    assert options["limits"] == {"test_timeout_s": 3.0, "timeout_s": 24.0}
    assert (options["compare"], options["tolerance"]) == ("floats", 0.1)


def test_options_given_win() -> None:
    task = Task("x", kind="pytest", tests={"test_a.py": "import other"})
    assert repr(task.runner(module="other")) == "<PytestRunner of other by 1 files>"
