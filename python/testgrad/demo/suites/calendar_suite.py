"""Tests of `calendar`, written from its documentation."""

# mypy: ignore-errors
import datetime

import pytest
import solution


@pytest.mark.critical
@pytest.mark.parametrize(
    ("year", "leap"), [(2024, True), (2023, False), (1900, False), (2000, True), (2100, False)]
)
def test_isleap(year, leap):
    assert solution.isleap(year) == leap


@pytest.mark.parametrize(
    ("start", "end", "days"), [(1999, 2001, 1), (1899, 1905, 1), (1, 401, 97), (1801, 2001, 49)]
)
def test_leapdays(start, end, days):
    assert solution.leapdays(start, end) == days


@pytest.mark.critical
def test_weekday_of_monday_is_zero():
    assert solution.weekday(2024, 1, 1) == 0


@pytest.mark.parametrize(
    ("year", "month", "expected"), [(2024, 2, (3, 29)), (2023, 2, (2, 28)), (2023, 12, (4, 31))]
)
def test_monthrange(year, month, expected):
    assert solution.monthrange(year, month) == expected


@pytest.mark.minor
@pytest.mark.parametrize("month", [0, 13])
def test_monthrange_of_a_wrong_month(month):
    with pytest.raises(solution.IllegalMonthError):
        solution.monthrange(2023, month)


def test_iterweekdays_starts_with_the_first_weekday():
    assert list(solution.Calendar(6).iterweekdays()) == [6, 0, 1, 2, 3, 4, 5]


def test_month_days_are_whole_weeks():
    days = list(solution.Calendar().itermonthdays(2023, 2))
    assert days == [0, 0, *range(1, 29), 0, 0, 0, 0, 0]


def test_month_days_with_weekdays():
    pairs = list(solution.Calendar(6).itermonthdays2(2023, 2))
    assert pairs[:4] == [(0, 6), (0, 0), (0, 1), (1, 2)]


def test_month_dates_begin_in_the_month_before():
    dates = list(solution.Calendar().itermonthdates(2024, 1))
    assert dates[0] == datetime.date(2024, 1, 1)
    assert dates[-1] == datetime.date(2024, 2, 4)


def test_month_dates_of_december_end_in_the_year_after():
    dates = list(solution.Calendar().itermonthdates(2023, 12))
    assert dates[0] == datetime.date(2023, 11, 27)
    assert dates[-1] == datetime.date(2023, 12, 31)
    assert solution.Calendar(6).monthdatescalendar(2023, 12)[-1][-1] == datetime.date(2024, 1, 6)


def test_month_dates_of_november_end_in_the_same_year():
    dates = list(solution.Calendar().itermonthdates(2023, 11))
    assert dates[-1] == datetime.date(2023, 12, 3)


def test_month_calendar_is_a_list_of_weeks():
    assert solution.monthcalendar(2021, 2) == [
        [1, 2, 3, 4, 5, 6, 7],
        [8, 9, 10, 11, 12, 13, 14],
        [15, 16, 17, 18, 19, 20, 21],
        [22, 23, 24, 25, 26, 27, 28],
    ]


def test_text_calendar_prints_a_month():
    text = solution.TextCalendar().formatmonth(2021, 2)
    assert text.splitlines()[1:3] == ["Mo Tu We Th Fr Sa Su", " 1  2  3  4  5  6  7"]


@pytest.mark.critical
def test_timegm_is_the_inverse_of_gmtime():
    assert solution.timegm((1970, 1, 2, 1, 1, 1)) == 90061
