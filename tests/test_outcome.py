"""What one test did, and what the tests of one run did together."""

import json

import pytest
from hypothesis import given, settings

import testgrad
from generated import suite_of, suites, twin_suite
from testgrad import SuiteResult, TestResult, TestSeverity, TestStatus

A = TestResult("a", "passed")
B = TestResult("b", "failed", message="1 != 2")

# Enums


@pytest.mark.parametrize("status", TestStatus)
@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_a_status_may_be_given_by_name_or_value_in_any_case(status, spell):
    assert TestResult("a", spell(status.name)).status is status


@pytest.mark.parametrize("severity", TestSeverity)
@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_a_severity_may_be_given_by_name_in_any_case(severity, spell):
    assert TestResult("a", "passed", spell(severity.name)).severity is severity


@pytest.mark.parametrize("severity", TestSeverity)
def test_a_severity_may_be_given_by_value(severity):
    assert TestResult("a", "passed", severity.value).severity is severity


@pytest.mark.parametrize("member", [*TestStatus, *TestSeverity])
def test_the_enum_itself_takes_a_name_in_any_case(member):
    assert type(member)(member.name.lower()) is type(member)(member.name.title()) is member


def test_the_values_of_the_enums_are_the_published_ones():
    values = [member.value for member in [*TestStatus, *TestSeverity]]
    assert values == ["passed", "failed", "error", "skipped", 3, 2, 1]


@pytest.mark.parametrize(("enum", "word"), [(TestStatus, "broken"), (TestSeverity, 9)])
def test_an_unknown_member_is_refused(enum, word):
    with pytest.raises(ValueError, match="not a valid"):
        enum(word)


def test_a_status_can_be_matched():
    match TestResult("a", "error").status:
        case TestStatus.ERROR:
            matched = True
        case _:
            matched = False
    assert matched


TEST_NAMES = [name for name in testgrad.__all__ if name.startswith("Test")]


@pytest.mark.parametrize("name", TEST_NAMES)
def test_pytest_is_told_not_to_collect_public_names_that_begin_with_test(name):
    assert getattr(testgrad, name).__test__ is False


# TestResult


def test_a_result_fills_in_what_is_not_said():
    result = TestResult("a", "passed")
    said = (result.severity, result.message, result.duration_ms, result.details)
    assert said == (TestSeverity.MAJOR, "", 0.0, "")


def test_a_result_has_no_reason_file_or_line_unless_given():
    assert (A.reason, A.file, A.line) == (None, None, None)


def test_a_result_keeps_all_that_it_is_given():
    result = TestResult(
        "a", "error", "minor", "m", 1.5, details="d", reason="timeout", file="t.py", line=7
    )
    kept = (result.message, result.duration_ms, result.details, result.reason, result.file)
    assert (*kept, result.line) == ("m", 1.5, "d", "timeout", "t.py", 7)


def test_the_extras_of_a_result_are_keyword_only():
    with pytest.raises(TypeError):
        TestResult("a", "passed", "minor", "m", 1.5, "details")


@pytest.mark.parametrize(
    ("status", "failing"),
    [("passed", False), ("failed", True), ("error", True), ("skipped", False)],
)
def test_failed_and_error_are_failing(status, failing):
    assert TestResult("a", status).is_failing is failing


@pytest.mark.parametrize("field", ["name", "status", "duration_ms", "anything"])
def test_a_result_is_frozen(field):
    with pytest.raises(AttributeError):
        setattr(A, field, "x")


@pytest.mark.parametrize("field", ["name", "message", "details", "reason", "file"])
def test_lone_surrogates_are_taken_and_written_out(field):
    words = {"name": "a", "status": "failed"} | {field: "x\udcff\ud800"}
    assert getattr(TestResult(**words), field) == "x\\udcff\\ud800"


def test_a_huge_message_is_kept_whole():
    message = "é" * 5_000_000
    assert TestResult("a", "failed", message=message).message == message


@pytest.mark.parametrize("name", ["", "\0", "🦀", "a\nb", "tests/t.py::test[a-b]", "x" * 100_000])
def test_any_text_is_a_name(name):
    assert TestResult(name, "passed").name == name


def test_an_int_is_a_duration():
    assert TestResult("a", "passed", duration_ms=3).duration_ms == 3.0


# SuiteResult: counts


def test_each_status_is_counted():
    suite = suite_of("pppffes")
    counts = (suite.total, suite.passed, suite.failed, suite.errors, suite.skipped)
    assert counts == (7, 3, 2, 1, 1)


@pytest.mark.parametrize(
    ("statuses", "all_passed"),
    [("", False), ("s", False), ("p", True), ("ps", True), ("pf", False), ("pe", False)],
)
def test_all_passed_needs_an_active_test_and_all_active_passed(statuses, all_passed):
    assert suite_of(statuses).all_passed is all_passed


def test_a_suite_with_problems_is_never_all_passed():
    assert not suite_of("pp", problems=["conftest.py broke"]).all_passed


def test_warnings_change_nothing():
    assert suite_of("pp", warnings=["a slow test"]).all_passed


def test_hidden_tests_count_like_others():
    suite = suite_of("pf", hidden=["test_1"])
    assert (suite.pass_rate, suite.failed, suite.all_passed) == (0.5, 1, False)


def test_failing_lists_failures_and_errors_in_order():
    assert [test.name for test in suite_of("fpse").failing] == ["test_0", "test_3"]


@settings(max_examples=100)
@given(suite=suites())
def test_the_properties_agree_with_the_oracle(suite):
    twin = twin_suite(suite)
    fields = ["total", "passed", "failed", "errors", "skipped", "pass_rate", "all_passed"]
    assert [getattr(suite, f) for f in fields] == [getattr(twin, f) for f in fields]


def test_what_was_not_measured_is_none():
    suite = SuiteResult([A])
    assert (suite.coverage, suite.duration_ms, suite.trust) == (None, None, None)


def test_a_suite_keeps_all_that_it_is_given():
    suite = SuiteResult(
        [A],
        "mine",
        coverage=0.5,
        duration_ms=9.0,
        problems=["p"],
        warnings=["w"],
        hidden=["a"],
        trust="shared",
    )
    kept = (suite.suite_name, suite.coverage, suite.duration_ms, suite.trust)
    assert (*kept, suite.problems, suite.warnings, suite.hidden) == (
        ("mine", 0.5, 9.0, "shared", ("p",), ("w",), ("a",))
    )


@pytest.mark.parametrize("trust", ["isolated", "shared", "reported", None])
def test_trust_is_one_of_three_words_or_none(trust):
    assert SuiteResult([A], trust=trust).trust == trust


@pytest.mark.parametrize("coverage", [0.0, 1.0, 0, 1])
def test_coverage_may_be_at_both_ends_of_its_range(coverage):
    assert SuiteResult([A], coverage=coverage).coverage == coverage


# SuiteResult: a frozen sequence


@pytest.mark.parametrize("make", [list, tuple, iter, lambda tests: (test for test in tests)])
def test_a_suite_is_made_from_any_iterable(make):
    assert SuiteResult(make([A, B])).tests == (A, B)


def test_a_suite_is_made_from_a_suite():
    assert SuiteResult(SuiteResult([A, B])) == SuiteResult([A, B])


def test_an_exception_while_iterating_reaches_the_caller():
    def tests():
        yield A
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        SuiteResult(tests())


def test_a_suite_has_the_length_of_its_tests():
    assert len(SuiteResult([A, B])) == 2


def test_a_suite_without_tests_is_falsy():
    assert not SuiteResult([])


def test_iterating_gives_the_tests_in_order():
    assert list(SuiteResult([A, B])) == [A, B]


@pytest.mark.parametrize(("index", "test"), [(0, A), (1, B), (-1, B), (-2, A)])
def test_an_index_counts_from_either_end(index, test):
    assert SuiteResult([A, B])[index] == test


@pytest.mark.parametrize("index", [2, -3, 2**70, -(2**70)])
def test_an_index_out_of_range_is_an_index_error(index):
    with pytest.raises(IndexError):
        SuiteResult([A, B])[index]


def test_an_index_that_is_no_number_is_a_type_error():
    with pytest.raises(TypeError):
        SuiteResult([A, B])["a"]


def test_a_slice_gives_the_tests_in_it():
    assert list(SuiteResult([A, B, A])[1:]) == [B, A]


def test_a_suite_can_be_reversed():
    assert list(reversed(SuiteResult([A, B]))) == [B, A]


@pytest.mark.parametrize(
    ("thing", "there"), [(A, True), (TestResult("a", "passed"), True), (B, False), ("a", False)]
)
def test_a_suite_contains_tests(thing, there):
    assert (thing in SuiteResult([A])) is there


@pytest.mark.parametrize("field", ["tests", "coverage", "anything"])
def test_a_suite_is_frozen(field):
    with pytest.raises(AttributeError):
        setattr(SuiteResult([A]), field, ())


def test_a_suite_cannot_be_changed_by_item():
    with pytest.raises(TypeError):
        SuiteResult([A])[0] = B


@pytest.mark.parametrize(
    "other",
    [
        SuiteResult([B, A]),
        SuiteResult([A]),
        SuiteResult([A, B], "name"),
        SuiteResult([A, B], coverage=0.0),
        SuiteResult([A, B], duration_ms=0.0),
        SuiteResult([A, B], problems=["p"]),
        SuiteResult([A, B], warnings=["w"]),
        SuiteResult([A, B], hidden=["a"]),
        SuiteResult([A, B], trust="shared"),
        [A, B],
        (A, B),
        None,
    ],
    ids=repr,
)
def test_suites_that_differ_in_anything_are_unequal(other):
    assert SuiteResult([A, B]) != other


def test_equal_suites_are_one_key():
    assert len({SuiteResult([A, B]), SuiteResult(iter((A, B)))}) == 1


@pytest.mark.parametrize("order", ["<", "<=", ">", ">="])
def test_suites_have_no_order(order):
    with pytest.raises(TypeError):
        eval(f"left {order} left", {"left": SuiteResult([A])})


# How they look, and JSON


def test_the_repr_of_a_suite_is_one_line_with_the_counts():
    suite = suite_of("ppfes", problems=["one\ntwo"])
    assert repr(suite) == (
        "<SuiteResult 'default': 2 passed, 1 failed, 1 errors, 1 skipped, 1 problems>"
    )


def test_the_repr_of_a_suite_stays_short_with_many_tests():
    assert len(repr(suite_of("pfes" * 1000))) < 120


def test_the_html_of_a_suite_escapes_what_tests_say():
    nasty = "<script>alert(1)</script>"
    html = SuiteResult(
        [TestResult(nasty, "failed", message=nasty, details=nasty, reason=nasty)],
        nasty,
        problems=[nasty],
        warnings=[nasty],
    )._repr_html_()
    assert "<script" not in html


def test_json_holds_names_not_codes():
    data = json.loads(TestResult("a", "error", "critical", reason="timeout").to_json())
    assert (data["status"], data["severity"], data["reason"]) == ("error", "critical", "timeout")


def test_json_may_come_as_bytes():
    assert TestResult.from_json(A.to_json().encode()) == A


def test_json_may_hold_keys_that_we_do_not_know():
    text = json.dumps(json.loads(SuiteResult([A]).to_json()) | {"novelty": [1, 2]})
    assert SuiteResult.from_json(text) == SuiteResult([A])


def test_json_without_what_has_a_default_is_enough():
    assert TestResult.from_json('{"name": "a", "status": "passed"}') == A


def test_broken_json_is_refused_with_line_and_column():
    with pytest.raises(ValueError, match="line 2, column"):
        SuiteResult.from_json('{"tests": [],\n oops}')


def test_a_json_refusal_says_the_place_once():
    with pytest.raises(ValueError) as refused:
        SuiteResult.from_json('{"tests": [],\n oops}')
    assert str(refused.value).count("line 2") == 1


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"name": "a", "status": "passed",\n"duration_ms": -1}', "duration_ms"),
        ('{"name": "a",\n"status": "broken"}', "status"),
        ('{"name": "a", "status": "passed",\n"severity": 9}', "severity"),
        ('{"name": "a"}', "status"),
        ('{"status": "passed"}', "name"),
    ],
)
def test_json_out_of_range_is_refused_by_name(text, named):
    with pytest.raises(ValueError, match=named):
        TestResult.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"tests": [],\n"coverage": 2}',
        '{"tests": [{"name": "a", "status": "error",\n"duration_ms": -1}]}',
    ],
)
def test_a_json_refusal_never_points_at_line_zero(text):
    with pytest.raises(ValueError) as refused:
        SuiteResult.from_json(text)
    assert "line 0" not in str(refused.value)
