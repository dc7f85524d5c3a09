"""`testgrad.audit`: weak tests, flaky tests and what cheats earn are named; good tasks are ok."""

from __future__ import annotations

import ast
import copy
import json
import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shared_data import needs_shared, shared
from testgrad import (
    FunctionRunner,
    NoVerdict,
    PytestRunner,
    SuiteResult,
    TestResult,
    cli,
    tasks,
)
from testgrad.audit import TaskAudit, audit_task
from testgrad.audit._attacks import (
    attacks_on_function,
    attacks_on_pytest,
    attacks_on_stdio,
    wanted_names,
)
from testgrad.audit._mutants import mutants, raising, returning
from testgrad.tasks import Task

CLAMP = """\
def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x
"""
CLAMP_CASES = [
    {"args": [5, 1, 9], "expected": 5},
    {"args": [-3, 1, 9], "expected": 1},
    {"args": [20, 1, 9], "expected": 9},
]


GRADE = """\
def grade(points):
    if points < 50:
        return "fail"
    if points >= 90:
        return "top"
    return "pass"
"""
GRADE_CASES = [
    {"args": [points], "expected": grade}
    for points, grade in [(0, "fail"), (49, "fail"), (50, "pass"), (89, "pass"), (90, "top")]
]


def clamp(**changes: Any) -> Task:
    fields = {"kind": "function", "entry_point": "clamp", "cases": CLAMP_CASES, "reference": CLAMP}
    return Task("clamp", **{**fields, **changes})


def pytest_task(tests: str, reference: str | None = CLAMP) -> Task:
    head = "from solution import clamp\n"
    return Task("clamp", kind="pytest", tests={"test_it.py": head + tests}, reference=reference)


GOOD = """
def test_between(): assert clamp(5, 1, 9) == 5
def test_below(): assert clamp(-3, 1, 9) == 1
def test_above(): assert clamp(20, 1, 9) == 9
"""


class Scripted:
    """A runner that says what a function of the candidate says."""

    def __init__(self, say: Any) -> None:
        self.say = say
        self.batches: list[list[Any]] = []

    def run_many(
        self, candidates: Any, /, *, workers: int | None = None, progress: bool = False
    ) -> Sequence[SuiteResult | NoVerdict]:
        self.batches.append(list(candidates))
        return [self.say(candidate) for candidate in candidates]


def suite(**statuses: str) -> SuiteResult:
    return SuiteResult([TestResult(name, status) for name, status in statuses.items()])


def judges(candidate: object) -> SuiteResult:
    """One test that wants the reference, and one that wants nothing."""
    is_right = isinstance(candidate, str) and ast.unparse(ast.parse(candidate)) == RIGHT
    return suite(strict="passed" if is_right else "failed", lax="passed")


RIGHT = ast.unparse(ast.parse(CLAMP))


# -- whole audits ----------------------------------------------------------------------------------


def test_a_good_function_task_is_ok() -> None:
    task = Task("grade", kind="function", entry_point="grade", cases=GRADE_CASES, reference=GRADE)
    audit = audit_task(task)
    assert audit.ok, str(audit)
    assert audit.trust == "isolated"
    assert audit.reference_pass_rate == 1.0
    assert audit.empty is not None
    assert audit.empty.pass_rate == 0.0
    assert [stub.name for stub in audit.stubs] == [
        "raises",
        *(f"returns {value}" for value in ("None", "0", "''", "[]", "True")),
        "returns its argument",
    ]
    assert audit.mutation_score == 1.0
    assert len(audit.mutants) > 10
    assert audit.weak_tests == audit.flaky == audit.problems == audit.warnings == ()
    assert len(audit.attacks) >= 20
    assert audit.earning == ()


def test_a_good_program_task_is_ok() -> None:
    cases = [{"input": "1 2", "output": "3"}, {"input": "5 -9", "output": "-4"}]
    code = "print(sum(map(int, input().split())))"
    audit = audit_task(Task("sum", kind="stdio", cases=cases, reference=code))
    assert audit.ok, str(audit)
    assert {stub.name for stub in audit.stubs} >= {"raises", "prints 0", "prints its input"}
    assert audit.earning == ()
    assert [mutant.description for mutant in audit.mutants] == [
        "line 1: print(sum(map(int, input().split()))) deleted"
    ]


def test_a_weak_test_is_named() -> None:
    weak = "def test_weak(): assert clamp is not None\n"
    audit = audit_task(pytest_task(GOOD + weak), attacks=False, mutants=6, repeat=1)
    assert audit.ok
    assert audit.weak_tests == ("test_it.py::test_weak",)
    assert audit.findings[0] == "No wrong program fails test_it.py::test_weak."
    row = audit.tests[-1]
    assert (row.passes, row.caught, row.reached > 6) == (1, 0, True)


def test_a_flaky_test_is_named_with_its_rate() -> None:
    # Random without a seed: of 24 runs all are alike once in 8 million times.
    flaky = "import random\ndef test_coin(): assert clamp(random.choice([1, 2]), 0, 9) == 1\n"
    audit = audit_task(pytest_task(GOOD + flaky), attacks=False, mutants=0, repeat=24)
    assert audit.flaky == ("test_it.py::test_coin",)
    assert audit.reference_failing == ()
    assert not audit.ok
    rate = audit.tests[-1].fail_rate
    assert rate is not None
    assert 0.0 < rate < 1.0
    assert f"failed the reference in {rate:.0%} of its runs" in str(audit)


def test_tests_that_accept_anything_are_found_out() -> None:
    tests = "def test_a(): assert clamp\ndef test_b(): assert callable(clamp)\n"
    audit = audit_task(pytest_task(tests), attacks=False, mutants=5, repeat=1)
    assert not audit.ok
    assert audit.mutation_score == 0.0
    assert len(audit.survivors) == 5
    assert all(stub.all_passed for stub in audit.stubs)
    assert audit.findings[0] == "A program that does nothing (raises) passes everything."


def test_a_reference_that_fails_is_said_first() -> None:
    wrong = {"args": [1, 2, 3], "expected": 99}
    audit = audit_task(clamp(cases=[*CLAMP_CASES, wrong]), attacks=False, repeat=2)
    assert not audit.ok
    assert audit.reference_failing == ("case[3]",)
    assert audit.reference_pass_rate == 0.75
    assert audit.findings[0] == "The reference fails case[3]."
    # The test that always fails kills no mutant.
    assert all(mutant.killed == (len(mutant.failing) > 1) for mutant in audit.mutants)


def test_a_mutant_without_end_is_killed_and_named() -> None:
    code = (
        "def count(n):\n    total = 0\n    while total < n:\n        total += 1\n    return total\n"
    )
    task = Task(
        "count",
        kind="function",
        entry_point="count",
        cases=[{"args": [3], "expected": 3}],
        time_limit_s=0.3,
        reference=code,
    )
    audit = audit_task(task, attacks=False, repeat=1)
    (endless,) = [m for m in audit.mutants if m.description == "line 4: total += 1 deleted"]
    assert endless.killed


def test_without_a_reference_what_needs_one_is_left_out_and_said() -> None:
    audit = audit_task(clamp(reference=None))
    assert audit.stubs[-1].passed == 1  # that returns its argument
    assert audit.reference_pass_rate is audit.mutation_score is None
    assert audit.mutants == ()
    assert not audit.ok
    assert "there is no reference" in audit.warnings[0]
    assert audit.findings == ("Nothing shows that the task can be passed.",)
    assert audit.stubs[0].name == "raises"
    assert audit.attacks
    assert [test.name for test in audit.tests] == ["case[0]", "case[1]", "case[2]"]


def test_a_reference_of_several_files_is_mutated_in_its_files() -> None:
    files = {"solution.py": "from rules import clamp\n", "rules.py": CLAMP, "notes.txt": "x < y"}
    audit = audit_task(pytest_task(GOOD, None), attacks=False, mutants=0, repeat=1)
    assert audit.warnings
    task = Task("c", kind="function", entry_point="clamp", cases=CLAMP_CASES, reference=files)
    audit = audit_task(task, attacks=False, mutants=5, repeat=1)
    assert audit.reference_pass_rate == 1.0
    assert {mutant.description.split()[0] for mutant in audit.mutants} == {"rules.py"}


# -- attacks ---------------------------------------------------------------------------------------


def test_attacks_that_share_the_process_of_the_tests_earn_more_than_they_should() -> None:
    task = pytest_task(GOOD)
    runner = PytestRunner(task.tests, isolation="none")
    audit = audit_task(task, runner=runner, mutants=0, repeat=1)
    assert not audit.ok
    assert {"equality", "patching", "peeking"} <= {attack.family for attack in audit.earning}
    best = audit.earning[0]
    assert best.pass_rate == 1.0
    assert best.passed == tuple(test.name for test in audit.tests)
    assert any("attack by equality earns 1.00" in finding for finding in audit.findings)
    # What only ends or skips earns nothing here.
    assert not {"exit", "skip", "forging"} & {attack.family for attack in audit.earning}


def test_skipping_what_fails_earns_more_than_it_should() -> None:
    def says(candidate: object) -> SuiteResult:
        if "SkipTest" in str(candidate):
            return suite(strict="skipped", lax="passed")
        return judges(candidate)

    audit = audit_task(clamp(), runner=Scripted(says))
    assert {attack.family for attack in audit.earning} == {"skip"}
    assert all(attack.passed == ("lax",) for attack in audit.earning)


@pytest.mark.parametrize("module", ["solution", "pkg.mod"])
def test_every_attack_is_a_program_of_its_own(module: str) -> None:
    names = wanted_names(
        {"t.py": f"from {module} import f, Box, OddError, LIMIT"}, module, [], None
    )
    for attacks in (
        attacks_on_pytest(names, module),
        attacks_on_function(names),
        attacks_on_stdio(),
    ):
        codes = []
        for attack in attacks:
            files = attack.candidate
            if isinstance(files, dict):
                assert f"{module.replace('.', '/')}.py" in files
                files = "\n".join(files.values())
            compile(files, attack.name, "exec")
            codes.append(files)
        assert len({attack.name for attack in attacks}) == len(set(codes)) == len(attacks)


@pytest.mark.parametrize(
    ("test", "module", "functions"),
    [
        ("from solution import f, g as h", "solution", ("f", "g")),
        ("import solution\nsolution.f(solution.__name__)", "solution", ("f",)),
        ("import pkg.mod\npkg.mod.f()", "pkg.mod", ("f",)),
        ("import pkg.mod as m\nm.f()", "pkg.mod", ("f",)),
        ("from pkg import mod\nmod.f()", "pkg.mod", ("f",)),
        ("from solution import *\ndef test(): assert f(len([])) == 1", "solution", ("f",)),
        ("import solution as s\nglobals().update(vars(s))\nx = 1\nf(x)", "solution", ("f",)),
        ("from other import f", "solution", ()),
    ],
)
def test_what_tests_take_from_a_module_is_found(
    test: str, module: str, functions: tuple[str, ...]
) -> None:
    assert wanted_names({"test_a.py": test}, module, [], None).functions == functions


def test_what_a_name_is_comes_from_the_reference() -> None:
    tests = {"t.py": "from solution import box, Limit, Odd, OddError, Thing"}
    reference = "class box: pass\nLimit = 3\nclass Odd(ValueError): pass\n"
    names = wanted_names(tests, "solution", ["run", "Solver.solve"], reference)
    assert names.classes == ("Solver", "Thing", "box")
    assert names.constants == ("Limit",)
    assert names.exceptions == ("Odd", "OddError")
    assert names.functions == ("run",)


# -- mutants ---------------------------------------------------------------------------------------

EVERYTHING = '''\
"""A module."""
import os
def f(a, n: int = 2):
    """Say it."""
    total = 0
    for x in a[1:]:
        if x < n and not a:
            continue
        if x == 9:
            break
        total += x
    if n is None:
        raise ValueError("no n")
    flag = True
    return total if flag else "none"
if __name__ == "__main__":
    f([], 3)
'''


def test_every_kind_of_edit_is_made() -> None:
    words = [description for description, _ in mutants(EVERYTHING, most=1000, seed=0)]
    assert set(words) >= {
        "line 7: < to <=",
        "line 7: and to or",
        "line 7: if x < n and (not a) negated",
        "line 8: continue to break",
        "line 10: break to continue",
        "line 11: + to -",
        "line 11: total += x deleted",
        "line 5: 0 to 1",
        "line 14: True to False",
        "line 15: 'none' to ''",
        "line 6: lower bound 1 to 1 + 1",
        "line 13: raise ValueError('no n') deleted",
        "line 15: return total if flag else 'none' to return None",
    }
    # Docstrings, imports, texts of exceptions and the main guard stay; so does the only binding.
    assert not [line for line in words if line.startswith(("line 1:", "line 2:", "line 4:"))]
    assert not [line for line in words if line.startswith("line 16:") or "'no n' to" in line]
    assert "line 14: flag = True deleted" not in words


def test_mutants_compile_and_differ_from_the_reference_and_each_other() -> None:
    codes = [str(code) for _, code in mutants(EVERYTHING, most=1000, seed=0)]
    assert len(codes) > 25
    plain = {ast.unparse(ast.parse(code)) for code in codes}
    assert len(plain) == len(codes)
    assert ast.unparse(ast.parse(EVERYTHING)) not in plain


def test_the_seed_chooses_the_mutants() -> None:
    first, again, other = (mutants(EVERYTHING, most=8, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == len(other) == 8


def test_a_table_does_not_crowd_out_the_rest() -> None:
    table = f"TABLE = {list(range(100))}\n"
    words = [description for description, _ in mutants(table + CLAMP, most=8, seed=0)]
    assert sum(description.startswith("line 1:") for description in words) <= 3


def test_stubs_keep_the_names_and_nothing_else() -> None:
    code = "class A:\n    def __init__(self): self.x = 1\n    def m(self): return 1\nB = 2\n"
    stub = str(raising(code))
    assert stub.count("raise NotImplementedError") == 2
    assert "B = 2" in stub
    assert "return None" in str(returning(code, "0"))
    assert "return 0" in str(returning(code, "0"))
    assert raising("B = 2") is None


# -- what suites say -------------------------------------------------------------------------------


def test_all_programs_run_in_two_batches() -> None:
    runner = Scripted(judges)
    audit = audit_task(clamp(), runner=runner, repeat=4, mutants=7)
    assert [len(batch) for batch in runner.batches] == [
        4,
        1 + len(audit.stubs) + 7 + len(audit.attacks),
    ]


def test_the_tests_that_fail_whenever_another_does_are_named() -> None:
    audit = audit_task(clamp(), runner=Scripted(judges), attacks=False)
    assert audit.sweeping_tests == ("strict",)
    assert audit.weak_tests == ("lax",)


def test_no_verdict_is_a_problem_and_no_failure() -> None:
    def says(candidate: object) -> SuiteResult | NoVerdict:
        is_negated = "not " in str(candidate)
        return NoVerdict("no worker") if is_negated else judges(candidate)

    audit = audit_task(clamp(), runner=Scripted(says), attacks=False)
    assert audit.problems
    assert all(problem.startswith("no verdict on the mutant") for problem in audit.problems)
    assert audit.mutation_score == 1.0
    assert not any("negated" in mutant.description for mutant in audit.mutants)
    assert not audit.ok


def test_a_reference_without_a_verdict_is_not_called_wrong() -> None:
    audit = audit_task(clamp(), runner=Scripted(lambda _: NoVerdict("down")), attacks=False)
    assert audit.reference_pass_rate is None
    assert audit.reference_failing == ()
    assert audit.empty is None
    assert audit.problems.count("no verdict on the reference: down") == 3
    assert not audit.ok


def test_a_candidate_that_cannot_be_imported_says_nothing_about_a_test() -> None:
    def says(candidate: object) -> SuiteResult:
        if ast.unparse(ast.parse(str(candidate))) == RIGHT:
            return suite(a="passed")
        return SuiteResult([TestResult("a", "error", reason="collection")])

    audit = audit_task(clamp(), runner=Scripted(says), attacks=False)
    assert audit.weak_tests == ()
    assert audit.tests[0].reached == 0
    assert audit.mutation_score == 1.0
    assert audit.warnings == ("no wrong program got as far as a",)


def test_skipped_tests_are_said_to_judge_nothing() -> None:
    def says(candidate: object) -> SuiteResult:
        return suite(skipped="skipped", **{t.name: t.status.value for t in judges(candidate)})

    audit = audit_task(clamp(), runner=Scripted(says), attacks=False)
    assert audit.warnings == ("the reference is not judged by skipped",)
    assert audit.reference_pass_rate == 1.0
    assert "skipped" not in audit.weak_tests


def test_anything_with_a_reference_and_a_runner_can_be_audited() -> None:
    class Bare:
        variants = {"reference": CLAMP, "stub": "def clamp(x, low, high): pass"}  # noqa: RUF012

        def runner(self) -> FunctionRunner:
            return FunctionRunner("clamp", [(case["args"], case["expected"]) for case in ROWS])

    ROWS: list[dict[str, Any]] = CLAMP_CASES  # noqa: N806
    audit = audit_task(Bare(), mutants=3)
    assert audit.reference_pass_rate == 1.0
    assert audit.stubs[0].name == "stub"
    assert audit.warnings == ("no attacks: there are none on tasks of kind None",)


@pytest.mark.parametrize(
    "options",
    [{"mutants": -1}, {"repeat": 0}, {"mutation_threshold": 1.1}, {"mutation_threshold": math.nan}],
)
def test_numbers_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="mutants must be >= 0"):
        audit_task(clamp(), **options)


def test_a_task_for_a_command_needs_a_runner() -> None:
    task = Task("c", kind="command", reference={"a.rs": "fn main() {}"})
    with pytest.raises(ValueError, match="for a command"):
        audit_task(task)
    right, wrong = suite(a="passed"), suite(a="failed")
    audit = audit_task(task, runner=Scripted(lambda code: right if code["a.rs"] else wrong))
    assert audit.empty is not None
    assert not audit.empty.all_passed
    assert audit.warnings == (
        "no mutants: the reference has nothing to edit",
        "no attacks: there are none on tasks of kind 'command'",
    )


# -- the value -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scripted() -> TaskAudit:
    return audit_task(clamp(), runner=Scripted(judges))


def test_an_audit_is_a_value(scripted: TaskAudit) -> None:
    assert pickle.loads(pickle.dumps(scripted)) == scripted
    assert copy.deepcopy(scripted) == scripted
    assert hash(scripted) == hash(copy.deepcopy(scripted))
    with pytest.raises(AttributeError):
        scripted.task_id = "x"  # type: ignore[misc]


def test_json_has_the_fields_and_what_follows_from_them(scripted: TaskAudit) -> None:
    data = json.loads(scripted.to_json(), parse_constant=pytest.fail)
    assert data == scripted.to_dict()
    assert (data["task_id"], data["ok"]) == ("clamp", True)
    assert data["findings"] == list(scripted.findings)
    assert data["tests"][0].keys() == {"name", "runs", "passes", "reached", "caught"}


def test_the_report_is_a_few_lines(scripted: TaskAudit) -> None:
    lines = str(scripted).splitlines()
    assert lines[0] == "clamp: ok"
    assert lines[1] == "  reference  passes 100% of 2 tests in 3 runs, 0 flaky"
    assert len(lines) < 12


def test_html_escapes_what_comes_from_tests() -> None:
    audit = TaskAudit("<b>x</b>", reference_failing=("<script>",), reference_pass_rate=0.0)
    html = audit._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<b>x" not in html


# -- the command -----------------------------------------------------------------------------------


def command(folder: Path, found: Sequence[Task], *options: str) -> int:
    path = folder / "tasks.jsonl"
    tasks.write(path, found)
    return cli.main(["audit", str(path), "--repeat", "1", "--mutants", "6", *options])


def test_the_command_prints_a_report_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lax = clamp(cases=CLAMP_CASES[:1])
    bad = Task.from_json(lax.to_json().replace('"clamp"', '"lax"', 1))
    assert bad.id == "lax"
    assert command(tmp_path, [clamp(), bad], "--no-attacks") == 1
    out, err = capsys.readouterr()
    assert out.startswith("clamp: ok\n")
    assert "\nlax: not ok\n" in out
    assert err == "testgrad: 2 tasks: 1 ok, 1 not ok\n"
    assert command(tmp_path, [clamp(), bad], "--no-attacks", "--task", "clamp") == 0


def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, [clamp(), clamp()], "--json", "--no-attacks", "--seed", "3") == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["ok"] for line in out.splitlines()] == [True, True]
    assert "2 tasks: 2 ok" in err


def test_the_command_takes_a_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weak = clamp(cases=[CLAMP_CASES[1], {"args": [9, 1, 9], "expected": 9}])
    assert command(tmp_path, [weak], "--no-attacks", "--fail-under", "1") == 1
    assert "less than 100%" in capsys.readouterr().out
    assert command(tmp_path, [weak], "--no-attacks", "--fail-under", "0.1") == 0


def test_the_command_says_which_tasks_it_cannot_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, [Task("c", kind="command")]) == 3
    assert "task 'c' is for a command" in capsys.readouterr().err
    (tmp_path / "broken.jsonl").write_text("{\n")
    assert cli.main(["audit", str(tmp_path / "broken.jsonl")]) == 3
    assert "broken.jsonl, line 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [["--fail-under", "2"], ["--repeat", "0"], ["--mutants", "-1"], ["--task", "none"]]
)
def test_wrong_use_of_the_command_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    try:
        code = command(tmp_path, [clamp()], *options)
    except SystemExit as error:  # argparse's own way
        code = int(str(error.code))
    assert code == 2
    assert "testgrad" in capsys.readouterr().err
    assert cli.main(["audit", str(tmp_path / "nothing.jsonl")]) == 2


# -- real tasks ------------------------------------------------------------------------------------


def real(name: str, index: int) -> Task:
    path = shared("data", "tasks", f"{name}.jsonl.gz")
    assert path is not None
    return list(tasks.read(path))[index]


@needs_shared("data", "tasks")
@pytest.mark.parametrize("index", [0, 8])
def test_a_real_program_task_is_ok(index: int) -> None:
    audit = audit_task(real("stdio_own", index))
    assert audit.ok, str(audit)


@needs_shared("data", "tasks")
@pytest.mark.parametrize(("name", "index"), [("humaneval", 3), ("mbpp_100", 5), ("quixbugs", 2)])
def test_a_real_suite_fails_what_is_wrong(name: str, index: int) -> None:
    audit = audit_task(real(name, index), attacks=False, mutants=8, repeat=2)
    assert audit.ok, str(audit)
    assert audit.weak_tests == audit.flaky == ()


@needs_shared("data", "tasks")
@pytest.mark.slow
def test_a_real_suite_of_many_tests_stands_up() -> None:
    audit = audit_task(real("exercism_python_60", 4), attacks=False)
    assert audit.ok, str(audit)
    assert len(audit.tests) == 26
    assert audit.mutation_score == 1.0
