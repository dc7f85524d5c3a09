"""The demo: its programs and suites, its searching, what it prints and writes, its command."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import types
from types import SimpleNamespace

import pytest

from testgrad import PytestRunner, demo
from testgrad.demo import figure, page, programs, repair, show, tasks

PROGRAMS = {program.name: program for program in programs.PROGRAMS}

BROKEN = "def larger(a, b):\n    return a if a < b else b\n"
FIXED = BROKEN.replace("<", ">")
SUITE = """\
import pytest
from solution import larger

@pytest.mark.parametrize(("a", "b", "out"), [(1, 2, 2), (2, 1, 2), (3, 3, 3)])
def test_larger(a, b, out):
    assert larger(a, b) == out
"""
TASK = {
    "id": "larger",
    "files": {"test_larger.py": SUITE.replace("solution", "lib.pair"), "lib/__init__.py": ""},
    "variants": {"reference": {"lib/pair.py": FIXED}, "buggy": {"lib/pair.py": BROKEN}},
}
ENDLESS = {
    "id": "endless",
    "files": {
        "test_endless.py": "import solution\n\ndef test_no():\n    assert solution.f(1) is None\n"
    },
    "variants": {
        "stub": {
            "solution.py": "def f(x):\n"
            + "".join(f"    x = x * {n} + (x - {n}) // ({n} + 2)\n" for n in range(3, 90))
            + "    return [x]\n"
        }
    },
}


def write_tasks(path, *entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "testgrad", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        **options,
    )


def entry(reward, code="", *, failing=(), all_passed=False):
    """As much of a feedback entry as is shown."""
    return SimpleNamespace(
        submission=SimpleNamespace(code=code),
        reward=SimpleNamespace(total=reward),
        suite_result=SimpleNamespace(total=4, passed=3, all_passed=all_passed),
        failing_tests=tuple((name, "") for name in failing),
    )


def small_repair(*, name="pair", status="repaired", error=""):
    case = repair.Case(name, BROKEN, {}, original=FIXED, defect="larger: > became <")
    entries = (entry(0.25, BROKEN, failing=["test_a"]), entry(1.0, FIXED))
    return repair.Repair(case, entries, status, 1.5, error)


class Silent:
    """A watcher that looks away."""

    def started(self, case):
        pass

    def iterated(self, case, entry):
        pass

    def finished(self, repair):
        pass


# programs


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_original_passes_and_the_broken_fails_some(name):
    [case] = tasks.library_cases([name], warn=pytest.fail)
    runner = PytestRunner(case.tests, module=case.module, isolation="none")
    original, broken = runner(case.original), runner(case.broken)
    assert original.all_passed, original.failing
    assert 0 < len(broken.failing) < broken.total == original.total


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_defect_fails_some_tests(name):
    program = PROGRAMS[name]
    source = program.read_source()
    runner = PytestRunner({"test_it.py": program.read_suite()}, isolation="none")
    broken = filter(None, (defect.break_source(source) for defect in program.defects))
    suites = [runner(text) for text in broken]
    assert len(suites) >= 2
    assert all(0 < len(suite.failing) < suite.total for suite in suites), suites


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_defect_changes_one_line(name):
    for seed in range(3):
        source = PROGRAMS[name].read_source()
        _, broken = PROGRAMS[name].breakage(source, seed=seed)
        pairs = zip(source.splitlines(), broken.splitlines(), strict=True)
        assert sum(before != after for before, after in pairs) == 1


def test_the_seed_chooses_the_defect():
    program = PROGRAMS["bisect"]
    source = program.read_source()
    assert len({program.breakage(source, seed=seed)[1] for seed in range(3)}) == 3


def test_accelerators_are_bypassed():
    module = types.ModuleType("solution")
    exec(PROGRAMS["bisect"].read_source(), module.__dict__)
    assert isinstance(module.bisect_left, types.FunctionType)


def test_bypassing_keeps_the_lines_and_other_imports():
    source = (
        "try:\n    from _fast import (a,\n        b)\nexcept ImportError:\n    a = 1\n"
        "try:\n    from slow import c\nexcept ImportError:\n    c = 2\n"
    )
    assert programs.bypass_accelerators(source) == (
        "try:\n    raise ImportError\n\nexcept ImportError:\n    a = 1\n"
        "try:\n    from slow import c\nexcept ImportError:\n    c = 2\n"
    )


@pytest.mark.parametrize(
    ("defect", "expected"),
    [
        (programs.Defect("C.f", "<", "<="), "return x <= 1 < 2"),
        (programs.Defect("C.f", "<", "<=", 1), "return x < 1 <= 2"),
        (programs.Defect("C.g", "not", ""), "return x"),
        (programs.Defect("C.f", "<", "<=", 2), None),
        (programs.Defect("f", "<", "<="), None),
    ],
)
def test_a_defect_is_a_token_of_a_function(defect, expected):
    source = (
        "class C:\n"
        "    if True:\n"
        "        def f(self, x):\n"
        "            '<'  # <\n"
        "            return x < 1 < 2\n"
        "    def g(self, x):\n"
        "        return not x\n"
    )
    broken = defect.break_source(source)
    changed = set((broken or source).splitlines()) - set(source.splitlines())
    assert [line.strip() for line in changed] == ([] if expected is None else [expected])


def test_a_program_without_any_place_for_a_defect_is_refused():
    with pytest.raises(LookupError, match="bisect"):
        PROGRAMS["bisect"].breakage("x = 1\n")


# task files


def test_a_task_becomes_a_case(tmp_path):
    [case] = tasks.task_cases(write_tasks(tmp_path / "tasks.jsonl", TASK))
    assert (case.name, case.module, case.broken) == ("larger", "lib.pair", BROKEN)
    assert case.original == FIXED
    assert sorted(case.tests) == ["lib/__init__.py", "test_larger.py"]


def test_a_packed_task_file_is_the_same(tmp_path):
    plain = write_tasks(tmp_path / "tasks.jsonl", TASK)
    packed = tmp_path / "tasks.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert tasks.task_cases(packed) == tasks.task_cases(plain)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: "),
        ("[]", "line 2: no format that is known"),
        ('{"id": "x"}', 'line 2: no "files"'),
        (json.dumps({**TASK, "variants": {"reference": {"a.py": ""}}}), "line 2: task .*: no stub"),
        (json.dumps({**TASK, "files": []}), '"files" must be an object of paths to texts'),
        (json.dumps({**TASK, "variants": {"stub": {"a.go": ""}}}), "not Python that pytest"),
        (json.dumps({**TASK, "variants": {"stub": {"a.py": "", "b.py": ""}}}), "one Python file"),
    ],
)
def test_a_wrong_task_is_refused_with_its_line(tmp_path, line, message):
    path = tmp_path / "tasks.jsonl"
    path.write_text(f"{json.dumps(TASK)}\n{line}\n")
    with pytest.raises(tasks.TaskError, match=message):
        tasks.task_cases(path)


def test_a_cut_gzip_file_is_refused(tmp_path):
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(TASK).encode())[:-9])
    with pytest.raises(tasks.TaskError, match="cannot read"):
        tasks.task_cases(path)


def test_tasks_are_chosen_by_name(tmp_path):
    path = write_tasks(tmp_path / "tasks.jsonl", TASK, ENDLESS)
    assert [case.name for case in tasks.task_cases(path, ["endless"])] == ["endless"]
    with pytest.raises(tasks.TaskError, match="no task other"):
        tasks.task_cases(path, ["other"])


# searching


def test_one_bad_program_does_not_lose_the_others():
    cases = [
        repair.Case("bad", "def (", {"test_pair.py": SUITE}),
        repair.Case("pair", BROKEN, {"test_pair.py": SUITE}),
    ]
    repairs, is_interrupted = repair.repair_all(cases, repair.Options(), Silent())
    assert [item.status for item in repairs] == ["no verdict", "repaired"]
    assert "SyntaxError" in repairs[0].error
    assert not is_interrupted


def test_a_program_that_passes_is_not_a_repair():
    case = repair.Case("pair", FIXED, {"test_pair.py": SUITE})
    [result], _ = repair.repair_all([case], repair.Options(), Silent())
    assert result.status == "passes as it is"


def test_a_search_without_an_answer_is_not_a_repair():
    suite = "import solution\n\ndef test_no():\n    assert False\n"
    case = repair.Case("no", "x = 1\n", {"test_no.py": suite})
    [result], _ = repair.repair_all([case], repair.Options(max_iterations=500), Silent())
    assert result.status == "not repaired"


def test_the_diffs_say_what_was_broken_and_changed():
    result = small_repair()
    assert result.defect_diff()[1:] == (
        "-    return a if a > b else b",
        "+    return a if a < b else b",
    )
    assert result.repair_diff()[1:] == (
        "-    return a if a < b else b",
        "+    return a if a > b else b",
    )


# what is shown


def test_a_curve_has_a_column_for_each_value():
    assert show.curve_rows([0, 0.5, 1]) == [" ▄█"]


def test_a_tall_curve_fills_from_below():
    assert show.curve_rows([0.25, 0.75, 1], height=2) == [" ▄█", "▄██"]


def test_a_small_value_shows_and_a_wild_one_stays_inside():
    assert show.curve_rows([0.001, 7, -3]) == ["▁█ "]


def test_a_long_curve_is_squeezed_to_its_peaks():
    assert show.squeeze([0, 1, 0, 0, 0, 3], 3) == [1, 0, 3]
    assert len(show.curve_rows([0.5] * 1000, width=60)[0]) == 60


def test_a_file_gets_plain_text():
    stream = io.StringIO()
    shown = show.Show(stream, total=1)
    result = small_repair()
    shown.started(result.case)
    shown.iterated(result.case, result.entries[0])
    shown.finished(result)
    shown.details(result)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert "repaired" in text
    assert "larger: > became <" in text
    assert "+    return a if a > b else b" in text


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def isatty(self):
        return True

    def text(self):
        return self.buffer.getvalue().decode(self.encoding)


def test_a_terminal_gets_a_line_that_moves(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    shown = show.Show(terminal, total=1)
    result = small_repair()
    shown.started(result.case)
    shown.iterated(result.case, result.entries[0])
    shown.finished(result)
    assert "3 of 4 tests pass" in terminal.text()
    assert "\x1b[2F\x1b[J" in terminal.text()
    assert "\x1b[32mrepaired" in terminal.text()


def test_no_color_is_heeded(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    show.Show(terminal, total=1).details(small_repair())
    assert "\x1b" not in terminal.text()


def test_a_terminal_without_block_characters_gets_others():
    terminal = Terminal("ascii")
    show.Show(terminal, total=1).details(small_repair())
    assert "#" in terminal.text()


# what is written


def test_the_page_escapes_everything():
    evil = "<script>alert('x')</script>"
    case = repair.Case(evil, evil, {}, original="", defect=evil)
    entries = (entry(0.5, evil, failing=[evil]), entry(1.0, evil + "<b>"))
    results = [repair.Repair(case, entries, "repaired", 1.0), small_repair(error=evil)]
    text = page.page_html(results, title=evil, note=evil)
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;" in text


def test_the_page_loads_nothing():
    text = page.page_html([small_repair()], title="demo", note="")
    assert "<svg" in text
    assert not any(word in text for word in ("http", "src=", "@import", "url("))


def test_the_drawn_curve_has_a_dot_for_each_iteration():
    drawing = page.curve_svg([0.2, 0.1, 0.8], "reward")
    assert drawing.count("<circle") == 3
    assert drawing.count("V") == 2


def test_a_case_without_iterations_has_a_section():
    result = repair.Repair(repair.Case("x", "", {}), (), "no verdict", 0.0, "no sandbox")
    text = page.page_html([result], title="demo", note="")
    assert "no sandbox" in text
    assert "<svg" not in text


def test_the_figure_is_a_png(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    figure.write_figure([small_repair(), small_repair(name="$x$")], path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_missing_matplotlib_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    stream = io.StringIO()
    case = repair.Case("pair", BROKEN, {"test_pair.py": SUITE})
    _, code = demo.run([case], demo.Options(), out=tmp_path, stream=stream)
    assert code == 0
    assert stream.getvalue().count("matplotlib is missing") == 1
    assert (tmp_path / "index.html").is_file()


# the command


def test_the_command_repairs_a_task(tmp_path):
    path = write_tasks(tmp_path / "tasks.jsonl", TASK)
    done = command("demo", "--tasks", path, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    [result] = json.loads(done.stdout)["programs"]
    assert (result["name"], result["status"]) == ("larger", "repaired")
    assert result["defect_diff"][1:] == ["-" + FIXED.splitlines()[1], "+" + BROKEN.splitlines()[1]]
    assert len(result["repair_diff"]) == 3
    assert result["rewards"][-1] == max(result["rewards"])
    assert "larger" in done.stderr
    assert "<svg" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_the_command_repairs_a_program_of_the_library(tmp_path):
    done = command("demo", "--programs", "bisect", "--out", tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "1 of 1 programs repaired" in done.stdout


def test_too_few_repairs_exit_with_one(tmp_path):
    path = write_tasks(tmp_path / "tasks.jsonl", TASK)
    done = command("demo", "--tasks", path, "--out", tmp_path, "--max-iterations", 1)
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("statuses", "enough", "code"),
    [
        (["repaired", "repaired"], None, 0),
        (["repaired", "not repaired"], None, 1),
        (["repaired", "not repaired"], 1, 0),
        (["repaired", "passes as it is"], None, 0),
        (["repaired", "no verdict"], None, 3),
        (["not repaired", "no verdict"], None, 1),
        (["repaired", "no verdict"], 1, 0),
    ],
)
def test_the_exit_code_counts_repairs(statuses, enough, code):
    assert demo._exit_code([small_repair(status=status) for status in statuses], enough) == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--programs", "nothing"], "no program nothing"),
        (["--strategy", "nothing"], "no strategy nothing"),
        (["--tasks", "missing.jsonl"], "missing.jsonl"),
        (["--jobs", "0"], "above 0"),
        (["--timeout-s", "nan"], "above 0"),
    ],
)
def test_wrong_usage_exits_with_two(tmp_path, arguments, message):
    done = command("demo", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_help_and_version():
    assert "demo" in command("--help").stdout
    assert command("--version").stdout.startswith("testgrad ")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child there")
def test_ctrl_c_keeps_what_is_done(tmp_path):
    path = write_tasks(tmp_path / "tasks.jsonl", TASK, ENDLESS)
    arguments = ["--tasks", path, "--out", tmp_path, "--jobs", "1", "--max-iterations", "9999"]
    with subprocess.Popen(
        [sys.executable, "-m", "testgrad", "demo", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as process:
        assert "repaired" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "larger" in rest
    assert "larger" in (tmp_path / "index.html").read_text(encoding="utf-8")
