"""Tests of `fractions`, written from its documentation."""

# mypy: ignore-errors
import math

import pytest
from solution import Fraction


@pytest.mark.critical
def test_a_fraction_is_in_lowest_terms():
    value = Fraction(16, -10)
    assert (value.numerator, value.denominator) == (-8, 5)


def test_a_fraction_reads_text():
    assert Fraction(" -3/7 ") == Fraction(-3, 7)
    assert Fraction("1.25") == Fraction(5, 4)


@pytest.mark.minor
def test_a_denominator_of_zero_is_refused():
    with pytest.raises(ZeroDivisionError):
        Fraction(1, 0)


@pytest.mark.critical
def test_add_with_coprime_denominators():
    assert Fraction(1, 2) + Fraction(1, 3) == Fraction(5, 6)


def test_add_with_a_common_factor():
    assert Fraction(1, 6) + Fraction(1, 10) == Fraction(4, 15)


def test_add_an_integer():
    assert Fraction(1, 3) + 2 == Fraction(7, 3)


def test_subtract():
    assert Fraction(1, 2) - Fraction(1, 3) == Fraction(1, 6)


def test_multiply_cancels():
    value = Fraction(2, 3) * Fraction(9, 4)
    assert (value.numerator, value.denominator) == (3, 2)


def test_divide_by_a_negative_number():
    value = Fraction(1, 2) / Fraction(-3, 4)
    assert (value.numerator, value.denominator) == (-2, 3)


def test_a_negative_power_turns_over():
    assert Fraction(2, 3) ** -2 == Fraction(9, 4)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [("7/4", 2), ("7/5", 1), ("3/2", 2), ("7/2", 4), ("5/2", 2), ("-3/2", -2), ("3/5", 1)],
)
def test_round_takes_halves_to_the_even_side(value, rounded):
    assert round(Fraction(value)) == rounded


def test_round_to_digits():
    assert round(Fraction(22, 7), 2) == Fraction(157, 50)


def test_floor_and_ceil_of_a_negative_number():
    assert math.floor(Fraction(-7, 2)) == -4
    assert math.ceil(Fraction(-7, 2)) == -3


def test_limit_denominator_finds_famous_pis():
    pi = Fraction("3.1415926535897932")
    assert pi.limit_denominator(1000) == Fraction(355, 113)
    assert pi.limit_denominator(10) == Fraction(22, 7)


def test_limit_denominator_may_use_the_limit_itself():
    pi = Fraction("3.1415926535897932")
    assert pi.limit_denominator(113) == Fraction(355, 113)
    assert pi.limit_denominator(7) == Fraction(22, 7)


def test_limit_denominator_keeps_a_small_one():
    assert Fraction(3, 8).limit_denominator(8) == Fraction(3, 8)


@pytest.mark.minor
def test_limit_denominator_of_zero_is_refused():
    with pytest.raises(ValueError, match="max_denominator"):
        Fraction(1, 2).limit_denominator(0)


def test_fractions_compare_with_floats():
    assert Fraction(1, 2) == 0.5
    assert Fraction(1, 3) < 0.5


def test_equal_numbers_have_equal_hashes():
    assert hash(Fraction(6, 3)) == hash(2)
    assert hash(Fraction(1, 4)) == hash(0.25)
