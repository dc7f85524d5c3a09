"""Every public value: pickled, copied, compared, hashed, written, matched; what is refused."""

import copy
import json
import math
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import testgrad
from generated import texts
from testgrad import (
    Binary,
    CodeSubmission,
    Curriculum,
    FeedbackEntry,
    Gated,
    History,
    LearningPoint,
    Limits,
    Mark,
    MultiSignal,
    NoVerdict,
    PassRate,
    Progression,
    RewardSignal,
    RewardWeights,
    SeverityWeighted,
    StoreError,
    SuiteResult,
    TaskError,
    TestgradError,
    TestResult,
    TestSeverity,
    TestStatus,
    batch,
    build_feedback,
    compute_reward_signal,
    reward_trend,
    sandbox,
    speed_score,
    tasks,
)

NASTY = "a'b\"c\\d\n\te\0é🦀{}\x7f\u2028"
ODD = RewardWeights(0.1, 0.2, 0.3, 0.4, 0.5)
RESULT = TestResult(
    NASTY, "error", 3, NASTY, 0.1, details=NASTY, reason="timeout", file="t.py", line=7
)
SUITE = SuiteResult(
    [TestResult("a", "passed"), RESULT],
    NASTY,
    coverage=0.1,
    duration_ms=1e-300,
    problems=[NASTY],
    warnings=["w"],
    hidden=["a", NASTY],
    marks=[Mark("blocked", NASTY, test="a")],
    trust="shared",
    containment=sandbox.Containment([sandbox.Layer("pid", "enforced", NASTY)]),
)
ENTRY = build_feedback(CodeSubmission(NASTY, 2, "refactor"), SUITE, SuiteResult([]))
HISTORY = History([ENTRY, ENTRY], task={"n": [1, None]}, stopped_by="patience", duration_ms=0.5)
(GROUP_SIGNAL,) = batch.group_signal({"mine": [0.0, 1.0]}, 2)
TASK = tasks.Task(
    NASTY,
    kind="function",
    entry_point="f",
    cases=[{"args": [NASTY, (1, {2.5})], "kwargs": {"k": math.nan}, "expected": {10**40: None}}],
    tolerance=0.1,
    stub={NASTY: NASTY},
    variants={NASTY: "x"},
    source=("a.jsonl", 3),
)

# Each value beside one of its class that is different.
VALUES = [
    (TestResult("a", "passed"), TestResult("a", "failed")),
    (RESULT, TestResult(NASTY, "error", 3, NASTY, 0.1)),
    (SuiteResult([]), SuiteResult([TestResult("a", "passed")])),
    (SUITE, SuiteResult(SUITE)),
    (RewardWeights(), ODD),
    (ODD, RewardWeights(0.1, 0.2, 0.3, 0.4, 0.6)),
    (RewardSignal(0.1, 0.2, -0.3, 0.4, 0.5, 1e300), RewardSignal(0.1, 0.2, -0.3, 0.4, 0.5, 0.6)),
    (CodeSubmission("x = 1", 1), CodeSubmission("x = 1", 2)),
    (CodeSubmission(NASTY, 2, NASTY), CodeSubmission(NASTY, 2, "refactor")),
    (ENTRY, build_feedback(CodeSubmission(NASTY, 2), SUITE)),
    (LearningPoint(1, 0.1, 0.2, 0.3, 4, 5), LearningPoint(1, 0.1, 0.2, 0.3, 4, 6)),
    (Limits(), Limits(timeout_s=1.5)),
    (Limits(cpu_s=0.1, memory_bytes=1 << 25), Limits(memory_bytes=1 << 25)),
    (Mark("gap", NASTY), Mark("gap", NASTY, test="a")),
    (sandbox.Layer("pid", "partial", NASTY), sandbox.Layer("pid", "enforced", NASTY)),
    (SUITE.containment, sandbox.Containment([])),
    (Binary(), PassRate()),
    (PassRate(), Progression()),
    (SeverityWeighted(), Binary()),
    (Progression(), SeverityWeighted()),
    (MultiSignal(ODD, 3.0), MultiSignal(ODD, 4.0)),
    (Gated(ODD, 3.0), Gated(RewardWeights(), 3.0)),
    (Curriculum(0.5, ODD, 3.0), Curriculum(0.6, ODD, 3.0)),
    (HISTORY, History([ENTRY], task={"n": [1, None]}, stopped_by="patience", duration_ms=0.5)),
    (TASK, tasks.Task("a", NASTY, kind="command")),
    (GROUP_SIGNAL, batch.group_signal({"mine": [1.0, 1.0]}, 2)[0]),
    (TestStatus.PASSED, TestStatus.FAILED),
    (TestSeverity.MINOR, TestSeverity.MAJOR),
]
CALL_REPRS = (
    Limits,
    Mark,
    sandbox.Layer,
    TestResult,
    RewardWeights,
    RewardSignal,
    CodeSubmission,
    LearningPoint,
    Binary,
    PassRate,
    SeverityWeighted,
    Progression,
    MultiSignal,
    Gated,
    Curriculum,
)


def named(value):
    return type(value).__name__


def each(condition=lambda value: True):
    """All values of the table for which the condition holds."""
    return pytest.mark.parametrize(
        "value", [value for value, _ in VALUES if condition(value)], ids=named
    )


@pytest.mark.parametrize("name", sorted({*testgrad.__all__, *batch.__all__, *tasks.__all__}))
def test_every_public_class_that_compares_by_value_is_in_the_table(name):
    thing = next(vars(place)[name] for place in (testgrad, batch, tasks) if name in vars(place))
    by_value = isinstance(thing, type) and thing.__eq__ is not object.__eq__
    assert not by_value or thing in {type(value) for value, _ in VALUES}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@each()
def test_a_value_pickles(value, protocol):
    assert pickle.loads(pickle.dumps(value, protocol)) == value


@each()
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_a_value_copies(value, copied):
    assert copied(value) == value


@pytest.mark.parametrize(("value", "other"), VALUES, ids=named)
def test_a_value_differs_from_another(value, other):
    assert value != other


@each()
@pytest.mark.parametrize("stranger", [None, 1.0, "a", (), object()], ids=repr)
def test_a_value_differs_from_strangers(value, stranger):
    assert value != stranger


@each(lambda value: not isinstance(value, History))
def test_equal_values_are_one_key(value):
    assert {value: 1}[copy.deepcopy(value)] == 1


def test_a_history_grows_and_so_has_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(HISTORY)


@pytest.mark.parametrize(
    "make",
    [
        lambda zero: TestResult("a", "passed", duration_ms=zero),
        lambda zero: SuiteResult([], coverage=zero, duration_ms=zero),
        lambda zero: RewardWeights(zero, zero, zero, zero, zero),
        lambda zero: RewardSignal(zero, zero, zero, zero, zero, zero),
        lambda zero: LearningPoint(1, zero, zero, zero, 0),
        lambda zero: Curriculum(zero, RewardWeights(zero)),
    ],
    ids=[
        "TestResult",
        "SuiteResult",
        "RewardWeights",
        "RewardSignal",
        "LearningPoint",
        "Curriculum",
    ],
)
def test_minus_zero_is_the_same_key_as_zero(make):
    assert make(0.0) == make(-0.0)
    assert hash(make(0.0)) == hash(make(-0.0))


@each(lambda value: hasattr(value, "to_json"))
def test_a_value_goes_through_json_and_back(value):
    assert type(value).from_json(value.to_json()) == value


@each(lambda value: hasattr(value, "to_json"))
def test_the_json_of_a_value_is_standard_json(value):
    def refuse(constant):
        raise AssertionError(f"{constant} is not json")

    assert isinstance(json.loads(value.to_json(), parse_constant=refuse), dict)


@each(lambda value: isinstance(value, CALL_REPRS))
def test_the_repr_of_a_value_is_a_call_that_makes_it_again(value):
    assert eval(repr(value), {**vars(testgrad), "Layer": sandbox.Layer}) == value


@settings(max_examples=150)
@given(
    name=texts,
    message=texts,
    details=texts,
    duration_ms=st.floats(0.0, allow_infinity=False),
    reason=st.none() | texts,
    line=st.none() | st.integers(1, 2**31),
)
def test_any_result_goes_through_repr_json_and_pickle(
    name, message, details, duration_ms, reason, line
):
    result = TestResult(
        name, "failed", "minor", message, duration_ms, details=details, reason=reason, line=line
    )
    assert eval(repr(result), vars(testgrad).copy()) == result
    assert TestResult.from_json(result.to_json()) == result
    assert pickle.loads(pickle.dumps(result)) == result


@settings(max_examples=60)
@given(
    shares=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    progression=st.floats(-1, 1),
    total=st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_signal_goes_through_repr_json_and_pickle(shares, progression, total):
    signal = RewardSignal(*shares[:2], progression, *shares[2:], total)
    assert eval(repr(signal), vars(testgrad).copy()) == signal
    assert RewardSignal.from_json(signal.to_json()) == signal
    assert pickle.loads(pickle.dumps(signal)) == signal


@each(lambda value: hasattr(value, "__match_args__"))
def test_a_value_matches_by_position(value):
    fields = type(value).__match_args__
    places = ", ".join(f"got_{field}" for field in fields)
    scope = {"cls": type(value), "value": value}
    exec(f"match value:\n    case cls({places}): pass", scope)
    assert [scope[f"got_{field}"] for field in fields] == [getattr(value, f) for f in fields]


@each(lambda value: not isinstance(value, (TestStatus, TestSeverity)))
def test_a_value_matches_by_class(value):
    scope = {"cls": type(value), "value": value, "matched": False}
    exec("match value:\n    case cls(): matched = True", scope)
    assert scope["matched"]


def test_a_value_matches_by_keyword():
    match Curriculum(0.5, ODD, 3.0):
        case Curriculum(threshold=threshold, weights=RewardWeights(speed=speed), target_ms=target):
            matched = (threshold, speed, target)
    assert matched == (0.5, 0.5, 3.0)


@each(lambda value: not isinstance(value, (TestStatus, TestSeverity)))
def test_a_value_is_frozen(value):
    with pytest.raises(AttributeError):
        value.anything = 1


@each()
def test_a_value_is_found_where_its_class_says_it_lives(value):
    cls = type(value)
    assert getattr(sys.modules[cls.__module__], cls.__name__, None) is cls


@each()
def test_a_value_has_a_docstring(value):
    assert type(value).__doc__


@pytest.mark.parametrize(
    "error",
    [
        TestgradError("a"),
        NoVerdict("the sandbox broke"),
        StoreError("cut", path=Path("run.jsonl"), line=3),
        TaskError("cut", path="tasks.jsonl", line=3, format="apps"),
    ],
    ids=named,
)
def test_an_exception_pickles_with_all_it_says(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


# What is refused

TESTS = SuiteResult([TestResult("a", "passed")])
SUBMISSION = CodeSubmission("x", 1)
SIGNAL = RewardSignal(0, 0, 0, 0, 0, 0)
NAN, INF = math.nan, math.inf
STATUS = np.zeros((2, 2), dtype=np.uint8)


def row(name, allowed, call):
    return pytest.param(name, allowed, call, id=f"{name}-{call.__code__.co_firstlineno}")


OUT_OF_RANGE = [
    row("status", "passed, failed, error, skipped", lambda: TestResult("a", "broken")),
    row("severity", r"critical.*major.*minor", lambda: TestResult("a", "passed", "huge")),
    row("severity", r"critical.*major.*minor", lambda: TestResult("a", "passed", 0)),
    row("duration_ms", "finite and >= 0", lambda: TestResult("a", "passed", duration_ms=-1)),
    row("duration_ms", "finite and >= 0", lambda: TestResult("a", "passed", duration_ms=NAN)),
    row("duration_ms", "finite and >= 0", lambda: TestResult("a", "passed", duration_ms=INF)),
    row("line", ">= [01]", lambda: TestResult("a", "passed", line=-1)),
    row("coverage", "between 0 and 1", lambda: SuiteResult([], coverage=1.2)),
    row("coverage", "between 0 and 1", lambda: SuiteResult([], coverage=-0.1)),
    row("coverage", "between 0 and 1", lambda: SuiteResult([], coverage=NAN)),
    row("duration_ms", "finite and >= 0", lambda: SuiteResult([], duration_ms=-1)),
    row("duration_ms", "finite and >= 0", lambda: SuiteResult([], duration_ms=INF)),
    row("trust", "isolated, shared, reported", lambda: SuiteResult([], trust="blind")),
    row("pass_rate", "finite and >= 0", lambda: RewardWeights(pass_rate=-1)),
    row("severity", "finite and >= 0", lambda: RewardWeights(severity=NAN)),
    row("progression", "finite and >= 0", lambda: RewardWeights(progression=INF)),
    row("coverage", "finite and >= 0", lambda: RewardWeights(coverage=-5e-324)),
    row("speed", "finite and >= 0", lambda: RewardWeights(speed=-INF)),
    row("pass_rate", "between 0 and 1", lambda: RewardSignal(NAN, 0, 0, 0, 0, 0)),
    row("speed_score", "between 0 and 1", lambda: RewardSignal(0, 0, 0, 0, 1.5, 0)),
    row("progression", "between -1 and 1", lambda: RewardSignal(0, 0, -2, 0, 0, 0)),
    row("total", "finite", lambda: RewardSignal(0, 0, 0, 0, 0, INF)),
    row("coverage", "between 0 and 1", lambda: compute_reward_signal(TESTS, coverage=1.2)),
    row("coverage", "between 0 and 1", lambda: compute_reward_signal(TESTS, coverage=NAN)),
    row("target_ms", "finite and > 0", lambda: compute_reward_signal(TESTS, target_ms=0)),
    row("target_ms", "finite and > 0", lambda: compute_reward_signal(TESTS, target_ms=INF)),
    row("target_ms", "finite and > 0", lambda: speed_score(TESTS, -1)),
    row("target_ms", "finite and > 0", lambda: speed_score(TESTS, NAN)),
    row("target_ms", "finite and > 0", lambda: MultiSignal(target_ms=0)),
    row("target_ms", "finite and > 0", lambda: Gated(target_ms=-1)),
    row("target_ms", "finite and > 0", lambda: Curriculum(target_ms=NAN)),
    row("threshold", "between 0 and 1", lambda: Curriculum(1.01)),
    row("threshold", "between 0 and 1", lambda: Curriculum(NAN)),
    row("weights", "> 0", lambda: Gated(RewardWeights(0, 0))(TESTS)),
    row("coverage", "between 0 and 1", lambda: build_feedback(SUBMISSION, TESTS, coverage=2)),
    row("target_ms", "finite and > 0", lambda: build_feedback(SUBMISSION, TESTS, target_ms=0)),
    row("style", "markdown, xml, json", lambda: ENTRY.to_prompt(style="html")),
    row("max_chars", ">= 0", lambda: ENTRY.to_prompt(max_chars=-1)),
    row("iteration", ">= [01]", lambda: CodeSubmission("x", -1)),
    row("iteration", ">= [01]", lambda: FeedbackEntry(-1, SUBMISSION, TESTS, SIGNAL, ())),
    row("iteration", ">= [01]", lambda: LearningPoint(-1, 0, 0, 0, 0)),
    row("tests_fixed", ">= 0", lambda: LearningPoint(1, 0, 0, 0, -1)),
    row("pass_rate", "between 0 and 1", lambda: LearningPoint(1, NAN, 0, 0, 0)),
    row("total_reward", "finite", lambda: LearningPoint(1, 0, NAN, 0, 0)),
    row("window", ">= 2", lambda: reward_trend([], 1)),
    row("window", ">= 2", lambda: reward_trend([], -1)),
    row("stopped_by", "all_passed, max_iterations", lambda: History(stopped_by="luck")),
    row("duration_ms", ">= 0", lambda: History(duration_ms=-1)),
    row("duration_ms", ">= 0", lambda: History(duration_ms=NAN)),
]
ARRAYS_OUT_OF_RANGE = [
    row("status", r"row 1, column 0.*passed", lambda: batch.rewards_from_arrays([[0], [4]])),
    row("status", "uint8", lambda: batch.rewards_from_arrays([[256]])),
    row("status", "uint8", lambda: batch.rewards_from_arrays([[-1]])),
    row("status", "uint8", lambda: batch.rewards_from_arrays([[0.5]])),
    row("status", r"\(rollouts, tests\)", lambda: batch.rewards_from_arrays([0, 1])),
    row(
        "severity",
        r"minor.*major.*critical",
        lambda: batch.rewards_from_arrays(STATUS, severity=[1, 4]),
    ),
    row("severity", "uint8", lambda: batch.rewards_from_arrays(STATUS, severity=[1.5, 2])),
    row("severity", r"\[2\]", lambda: batch.rewards_from_arrays(STATUS, severity=[1])),
    row(
        "duration_ms",
        r"row 1, column 0.*finite and >= 0",
        lambda: batch.rewards_from_arrays(STATUS, duration_ms=[[0, 0], [-1, 0]]),
    ),
    row(
        "duration_ms",
        r"row 0, column 1.*finite and >= 0",
        lambda: batch.rewards_from_arrays(STATUS, duration_ms=[[0, NAN], [0, 0]]),
    ),
    row(
        "duration_ms", r"\[2, 2\]", lambda: batch.rewards_from_arrays(STATUS, duration_ms=[[1, 2]])
    ),
    row(
        "coverage",
        r"row 1.*between 0 and 1",
        lambda: batch.rewards_from_arrays(STATUS, coverage=[0.5, 1.2]),
    ),
    row("coverage", r"\[2\]", lambda: batch.rewards_from_arrays(STATUS, coverage=[0.5])),
    row(
        "previous",
        r"row 0, column 1.*passed",
        lambda: batch.rewards_from_arrays(STATUS, previous=[0, 9]),
    ),
    row(
        "previous",
        r"row 1.*between 0 and 1",
        lambda: batch.rewards_from_arrays(STATUS, previous=[0.5, 1.2]),
    ),
    row("previous", r"\[2, 2\]", lambda: batch.rewards_from_arrays(STATUS, previous=[[0, 1]])),
    row("previous", "1", lambda: batch.rewards([TESTS], previous=[])),
    row("coverage", "1", lambda: batch.rewards([TESTS], coverage=[0.1, 0.2])),
    row("coverage", "between 0 and 1", lambda: batch.rewards([TESTS], coverage=[1.2])),
    row("groups", "groups of 3", lambda: batch.advantages([0, 1], 3)),
    row("groups", ">= 1", lambda: batch.advantages([0, 1], 0)),
    row("groups", ">= 1|groups of -1", lambda: batch.advantages([0, 1], -1)),
    row("groups", "2", lambda: batch.advantages([0, 1], [0])),
    row("normalization", "mean, mean_std", lambda: batch.advantages([0], 1, normalization="z")),
    row("eps", "finite and >= 0", lambda: batch.advantages([0], 1, eps=-1)),
    row("rewards", r"\(rollouts,\)", lambda: batch.advantages([[0, 1]], 1)),
    row("components", "5 weights", lambda: batch.decoupled_advantages(np.zeros((2, 3)), 2)),
    row(
        "weights",
        "finite and >= 0",
        lambda: batch.decoupled_advantages(np.zeros((2, 1)), 2, weights=[-1]),
    ),
    row(
        "resolution",
        "finite and >= 0",
        lambda: batch.group_signal({"a": [1]}, 1, resolution=NAN),
    ),
]
WRONG_TYPES = [
    row("name", "str", lambda: TestResult(5, "passed")),
    row("status", "TestStatus", lambda: TestResult("a", None)),
    row("severity", "TestSeverity", lambda: TestResult("a", "passed", 2.0)),
    row("message", "str", lambda: TestResult("a", "passed", message=b"m")),
    row("duration_ms", "number", lambda: TestResult("a", "passed", duration_ms="1")),
    row(r"tests\[1\]", "TestResult", lambda: SuiteResult([*TESTS, "a"])),
    row("tests", "iterable", lambda: SuiteResult(5)),
    row("coverage", "number", lambda: SuiteResult([], coverage="0.5")),
    row("problems", "str", lambda: SuiteResult([], problems="one string")),
    row("hidden", "str", lambda: SuiteResult([], hidden=[1])),
    row("pass_rate", "number", lambda: RewardWeights(pass_rate="1")),
    row("suite", "SuiteResult", lambda: compute_reward_signal([])),
    row("previous", "SuiteResult", lambda: compute_reward_signal(TESTS, 1)),
    row("weights", "RewardWeights", lambda: compute_reward_signal(TESTS, weights={})),
    row("suite", "SuiteResult", lambda: Binary()(None)),
    row("previous", "SuiteResult", lambda: Gated()(TESTS, 1)),
    row("weights", "RewardWeights", lambda: MultiSignal(1)),
    row("code", "str", lambda: CodeSubmission(b"x", 1)),
    row(r"history\[0\]", "FeedbackEntry", lambda: reward_trend([5])),
    row(r"suites\[0\]", "SuiteResult", lambda: batch.rewards([5])),
    row(r"previous\[0\]", "SuiteResult", lambda: batch.rewards([TESTS], previous=[5])),
    row("strategy", "strategies", lambda: batch.rewards([TESTS], Binary)),
    row("strategy", "strategies", lambda: batch.rewards_from_arrays(STATUS, "binary")),
]


def said(error):
    """The message with the notes that a traceback shows below it."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


@pytest.mark.parametrize(("name", "allowed", "call"), OUT_OF_RANGE + ARRAYS_OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused_by_name_with_the_range(name, allowed, call):
    with pytest.raises(ValueError) as refused:
        call()
    text = said(refused.value)
    assert re.search(rf"\b{name}\b", text), text
    assert re.search(allowed, text), text


@pytest.mark.parametrize(("name", "expected", "call"), WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_refused_by_name(name, expected, call):
    with pytest.raises(TypeError) as refused:
        call()
    text = said(refused.value)
    assert re.search(name, text), text
    assert re.search(expected, text), text
