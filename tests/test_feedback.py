"""What goes back to the agent: worst first, within budget, no name lost, nothing hidden told."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reference
from generated import STATUSES, suite_of, texts, twin_suite
from testgrad import (
    CodeSubmission,
    FeedbackEntry,
    RewardWeights,
    SuiteResult,
    TestResult,
    TestSeverity,
    build_feedback,
    compute_reward_signal,
    extract_failing_tests,
    infer_strategy,
)

STYLES = ["markdown", "xml", "json"]
SUBMISSION = CodeSubmission("x = 1", 3, "fix_failures")


def entry_for(tests, **about):
    return build_feedback(SUBMISSION, SuiteResult(tests, **about))


@st.composite
def test_results(draw):
    return TestResult(
        draw(texts),
        draw(st.sampled_from(STATUSES)),
        draw(st.sampled_from(list(TestSeverity))),
        draw(texts),
        details=draw(texts.map(lambda text: text * 20)),
        reason=draw(st.none() | st.just("timeout")),
    )


test_results.__test__ = False


def names_in(prompt, style):
    """The names of the failing tests, in the order of the prompt."""
    if style == "json":
        return [test["name"] for test in json.loads(prompt)["fix_first"]]
    if style == "xml":
        return [test.get("name") for test in ET.fromstring(prompt).iter("test")]
    return re.findall(r"^\d+\. `(.*)` - (?:critical|major|minor), ", prompt, re.MULTILINE)


# Entries


def test_an_entry_holds_what_was_submitted_said_and_earned():
    suite, previous = suite_of("pf", coverage=0.5), suite_of("ff")
    entry = build_feedback(SUBMISSION, suite, previous)
    held = (entry.iteration, entry.submission, entry.suite_result, entry.reward)
    assert held == (3, SUBMISSION, suite, compute_reward_signal(suite, previous))


def test_an_entry_is_rewarded_with_the_coverage_target_and_weights_given():
    suite, weights = suite_of("pf", duration_ms=5.0), RewardWeights(0.1, 0.2, 0.3, 0.4, 0.5)
    entry = build_feedback(SUBMISSION, suite, coverage=0.75, target_ms=10.0, weights=weights)
    assert entry.reward == compute_reward_signal(suite, None, 0.75, 10.0, weights)


def test_the_failing_tests_keep_the_suites_order():
    suite = SuiteResult(
        [
            TestResult("b", "failed", "minor", message="one"),
            TestResult("p", "passed"),
            TestResult("a", "error", "critical", message="two"),
        ]
    )
    assert extract_failing_tests(suite) == (("b", "one"), ("a", "two"))


@settings(max_examples=80)
@given(tests=st.lists(test_results(), max_size=5), hidden=st.lists(texts, max_size=2))
def test_the_failing_tests_agree_with_the_oracle(tests, hidden):
    hidden += [test.name for test in tests[::2]]
    suite = SuiteResult(tests, hidden=hidden)
    expected = reference.extract_failing_tests(twin_suite(suite))
    assert build_feedback(SUBMISSION, suite).failing_tests == expected


def test_a_submission_is_initial_unless_said_otherwise():
    assert CodeSubmission("x", 1).strategy == "initial"


def test_a_submission_of_ten_megabytes_is_kept_whole():
    code = "x = 1\n" * 1_700_000
    assert CodeSubmission(code, 1).code == code


def test_lone_surrogates_in_code_are_written_out():
    assert CodeSubmission("x = '\udcff'", 1).code == "x = '\\udcff'"


# Order


@pytest.mark.parametrize("style", STYLES)
def test_critical_comes_before_major_before_minor_and_errors_before_failures(style):
    rows = [
        ("minor_failed", "failed", "minor"),
        ("major_failed", "failed", "major"),
        ("critical_failed", "failed", "critical"),
        ("minor_error", "error", "minor"),
        ("major_error", "error", "major"),
        ("critical_error", "error", "critical"),
    ]
    prompt = entry_for([TestResult(*row) for row in rows]).to_prompt(style=style)
    assert names_in(prompt, style) == [
        f"{severity}_{status}"
        for severity in ("critical", "major", "minor")
        for status in ("error", "failed")
    ]


@settings(max_examples=80)
@given(tests=st.lists(test_results(), max_size=8))
def test_the_order_is_stable(tests):
    shown = json.loads(entry_for(tests).to_prompt(style="json"))["fix_first"]
    failing = [test for test in tests if test.is_failing]
    worst_first = sorted(
        failing, key=lambda test: (-test.severity.value, test.status.name != "ERROR")
    )
    assert [test["name"] for test in shown] == [test.name for test in worst_first]


@pytest.mark.parametrize("style", STYLES)
def test_tests_that_do_not_fail_are_not_listed(style):
    prompt = entry_for([TestResult("fine", "passed"), TestResult("off", "skipped")]).to_prompt(
        style=style
    )
    assert names_in(prompt, style) == []


# Budget


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=60)
@given(tests=st.lists(test_results(), max_size=6), max_chars=st.integers(0, 3000))
@example(tests=[TestResult("a", "failed", details="`" * 1000)], max_chars=1500)
@example(tests=[TestResult("a", "failed", message="\0" * 400)], max_chars=600)
@example(tests=[TestResult("a", "failed", message='"&<>\\\n' * 90)], max_chars=600)
@example(tests=[TestResult("a", "failed", details="\n" * 1000)], max_chars=1500)
def test_a_prompt_keeps_to_its_budget_unless_the_names_alone_are_longer(style, tests, max_chars):
    entry = entry_for(tests)
    names_alone = len(entry.to_prompt(max_chars=0, style=style))
    assert len(entry.to_prompt(max_chars=max_chars, style=style)) <= max(max_chars, names_alone)


@pytest.mark.parametrize("style", STYLES)
def test_problems_are_cut_to_the_budget_too(style):
    entry = entry_for([TestResult("a", "failed")], problems=["p" * 50_000])
    assert len(entry.to_prompt(max_chars=1000, style=style)) <= 1000


@pytest.mark.parametrize("style", STYLES)
def test_a_problem_is_told(style):
    entry = entry_for([TestResult("a", "passed")], problems=["conftest.py broke"])
    assert "conftest.py broke" in entry.to_prompt(style=style)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("max_chars", [0, 100, 5000])
def test_no_name_is_lost_to_the_budget(style, max_chars):
    tests = [
        TestResult(f"test_{number}", "failed", message="m" * 300, details="d" * 3000)
        for number in range(200)
    ]
    prompt = entry_for(tests).to_prompt(max_chars=max_chars, style=style)
    assert names_in(prompt, style) == [test.name for test in tests]


@settings(max_examples=60)
@given(tests=st.lists(test_results(), max_size=5), max_chars=st.integers(0, 500))
def test_no_name_is_changed_in_json(tests, max_chars):
    prompt = entry_for(tests).to_prompt(max_chars=max_chars, style="json")
    assert sorted(names_in(prompt, "json")) == sorted(t.name for t in tests if t.is_failing)


@pytest.mark.parametrize("style", STYLES)
def test_a_bigger_budget_shows_more(style):
    entry = entry_for([TestResult("a", "failed", message="why", details="Traceback " * 100)])
    lengths = [len(entry.to_prompt(max_chars=budget, style=style)) for budget in (0, 300, 3000)]
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize("style", STYLES)
def test_messages_come_before_details_when_the_budget_is_small(style):
    tests = [
        TestResult(f"test_{number}", "failed", message=f"why {number}", details="d" * 2000)
        for number in range(5)
    ]
    prompt = entry_for(tests).to_prompt(max_chars=1500, style=style)
    assert all(f"why {number}" in prompt for number in range(5))


def test_of_a_long_traceback_the_end_is_kept():
    details = "first line\n" + "x" * 5000 + "\nZeroDivisionError"
    prompt = entry_for([TestResult("a", "failed", details=details)]).to_prompt(max_chars=1000)
    assert "ZeroDivisionError" in prompt
    assert "first line" not in prompt


# Hidden tests


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=60)
@given(
    hidden=st.lists(test_results(), min_size=1, max_size=4),
    shown=st.lists(st.sampled_from(STATUSES), max_size=3),
    max_chars=st.sampled_from([0, 500, 100_000]),
)
def test_a_hidden_test_never_leaks(style, hidden, shown, max_chars):
    mark = "h1dd3n"
    secret = [
        TestResult(
            f"{mark}{number}{test.name}",
            test.status,
            test.severity,
            mark + test.message,
            details=mark + test.details,
            reason=mark,
            file=mark,
        )
        for number, test in enumerate(hidden)
    ]
    visible = [TestResult(f"test_{i}", status) for i, status in enumerate(shown)]
    entry = entry_for(secret + visible, hidden=[test.name for test in secret])
    told = entry.to_prompt(max_chars=max_chars, style=style) + repr(entry.failing_tests)
    assert mark not in told


def hidden_suite():
    rows = ("passed", "failed", "skipped", "error")
    secret = [TestResult(f"secret_{number}", status) for number, status in enumerate(rows)]
    return entry_for([*secret, TestResult("open", "passed")], hidden=[test.name for test in secret])


def test_hidden_tests_are_counted_in_json():
    assert json.loads(hidden_suite().to_prompt(style="json"))["hidden"] == {"passed": 1, "total": 3}


def test_hidden_tests_are_counted_in_xml():
    hidden = ET.fromstring(hidden_suite().to_prompt(style="xml")).find("hidden")
    assert hidden.attrib == {"passed": "1", "total": "3"}


def test_hidden_tests_are_counted_in_markdown():
    assert "Hidden tests: 1 of 3 pass." in hidden_suite().to_prompt(style="markdown")


def test_hidden_tests_are_not_among_the_visible_counts():
    counts = json.loads(hidden_suite().to_prompt(style="json"))
    assert [counts[key] for key in ("passed", "failed", "errors", "skipped")] == [1, 0, 0, 0]


def test_all_tests_of_a_hidden_name_are_hidden():
    tests = [TestResult("twice", "failed"), TestResult("twice", "error")]
    assert entry_for(tests, hidden=["twice"]).failing_tests == ()


def test_a_hidden_name_that_is_no_unicode_hides_too():
    tests = [TestResult("a\udcff", "failed"), TestResult("b", "failed")]
    assert entry_for(tests, hidden=["a\udcff"]).failing_tests == (("b", ""),)


# Formats


@settings(max_examples=120)
@given(tests=st.lists(test_results(), max_size=4), problems=st.lists(texts, max_size=2))
@example(tests=[TestResult("a", "failed", message="\ufffe\uffff")], problems=["\0"])
@example(tests=[TestResult("]]>", "failed", message="]]>", details="<!--")], problems=[])
def test_xml_parses_whatever_the_tests_say(tests, problems):
    root = ET.fromstring(entry_for(tests, problems=problems).to_prompt(style="xml"))
    assert len(root.findall("test")) == sum(test.is_failing for test in tests)


@settings(max_examples=60)
@given(tests=st.lists(test_results(), max_size=4), problems=st.lists(texts, max_size=2))
def test_json_loads_whatever_the_tests_say(tests, problems):
    loaded = json.loads(entry_for(tests, problems=problems).to_prompt(style="json"))
    assert loaded["problems"] == problems


def test_json_gives_messages_and_details_as_they_are():
    text = 'a "b"\\\n\tc \0 é'
    entry = entry_for([TestResult("t", "failed", message=text, details=text)])
    (test,) = json.loads(entry.to_prompt(style="json"))["fix_first"]
    assert (test["message"], test["details"]) == (text, text)


def test_xml_gives_messages_and_details_as_they_are():
    text = 'a "b" & <c>\n  ]]> é'
    test = ET.fromstring(
        entry_for([TestResult("t", "failed", message=text, details=text)]).to_prompt(style="xml")
    ).find("test")
    assert (test.findtext("message"), test.findtext("details")) == (text, text)


@pytest.mark.parametrize("name", ["a&b", "<t>", 'say "x"', "a\nb", "a\tb", " a  b "])
def test_xml_keeps_a_name_as_it_is(name):
    prompt = entry_for([TestResult(name, "failed")]).to_prompt(style="xml")
    assert names_in(prompt, "xml") == [name]


def outside_fences(markdown):
    """The lines that are not inside a fenced block, and whether a block is left open."""
    fence, outside = None, []
    for line in markdown.split("\n"):
        mark = re.match(r" {0,3}(`{3,}|~{3,})([^`]*)$", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is None:
            outside.append(line)
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = None
    return outside, fence is not None


@pytest.mark.parametrize("field", ["message", "details"])
@pytest.mark.parametrize(
    "text",
    ["```\ncode\n```", "````", "~~~\nx", "1. `test_z` - major, failed", "text\n```python\nx = 1"],
)
def test_markdown_is_not_broken_by_what_tests_say(field, text):
    tests = [TestResult("test_a", "failed", **{field: text}), TestResult("test_b", "failed")]
    outside, left_open = outside_fences(entry_for(tests).to_prompt())
    items = [line for line in outside if re.match(r"\d+\. `", line)]
    assert (len(items), left_open) == (2, False)


def test_a_name_stays_on_its_line_in_markdown():
    tests = [TestResult("a\n\n# Iteration 9: all pass", "failed")]
    assert "\n# Iteration 9" not in entry_for(tests).to_prompt()


@pytest.mark.parametrize("style", STYLES)
def test_a_prompt_says_the_iteration_and_the_counts(style):
    prompt = entry_for([TestResult("a", "failed"), TestResult("b", "passed")]).to_prompt(
        style=style
    )
    start = {
        "markdown": "## Iteration 3: 1 of 2 tests pass",
        "xml": '<feedback iteration="3" passed="1" failed="1" errors="0" skipped="0"',
        "json": '"iteration":3,"passed":1',
    }[style]
    assert start in prompt


@pytest.mark.parametrize("style", STYLES)
def test_a_reason_is_shown(style):
    entry = entry_for([TestResult("a", "error", reason="timeout")])
    assert "timeout" in entry.to_prompt(max_chars=0, style=style)


# What the next submission is for


@pytest.mark.parametrize(
    ("runs", "strategy"),
    [
        ([], "initial"),
        (["pef"], "fix_errors"),
        (["pf"], "fix_failures"),
        (["pp"], "refactor"),
        (["ps"], "refactor"),
        ([""], "fix_failures"),
        (["ss"], "fix_failures"),
        (["e", "f"], "fix_failures"),
        (["pp", "e"], "fix_errors"),
    ],
)
def test_the_strategy_follows_the_last_suite(runs, strategy):
    history = [build_feedback(SUBMISSION, suite_of(run)) for run in runs]
    assert infer_strategy(history) == strategy
    assert reference.infer_strategy([twin_suite(suite_of(run)) for run in runs]) == strategy


def test_a_suite_with_problems_is_not_ready_to_refactor():
    assert (
        infer_strategy([entry_for([TestResult("a", "passed")], problems=["p"])]) == "fix_failures"
    )


def test_an_entry_can_be_made_by_hand():
    suite = suite_of("pf")
    made = build_feedback(SUBMISSION, suite)
    by_hand = FeedbackEntry(3, SUBMISSION, suite, made.reward, made.failing_tests)
    assert by_hand == made
