"""Tests of `statistics`, written from its documentation."""

# mypy: ignore-errors
from fractions import Fraction

import pytest
import solution


@pytest.mark.critical
def test_mean_of_integers_can_be_a_float():
    assert solution.mean([1, 2, 3, 4, 4]) == 2.8


def test_mean_of_fractions_is_exact():
    assert solution.mean([Fraction(3, 7), Fraction(1, 21)]) == Fraction(5, 21)


@pytest.mark.minor
@pytest.mark.parametrize("function", ["mean", "median", "median_low", "median_high", "mode"])
def test_no_data_is_an_error(function):
    with pytest.raises(solution.StatisticsError):
        getattr(solution, function)([])


@pytest.mark.critical
def test_median_of_an_odd_number_is_the_middle_item():
    assert solution.median([1, 5, 3]) == 3


@pytest.mark.critical
def test_median_of_an_even_number_is_between_the_middle_items():
    assert solution.median([7, 1, 5, 3]) == 4.0


def test_median_of_two_is_their_mean():
    assert solution.median([1, 2]) == 1.5


def test_median_low_takes_the_lower_item():
    assert solution.median_low([1, 3, 5, 7]) == 3


def test_median_high_takes_the_upper_item():
    assert solution.median_high([1, 3, 5, 7]) == 5


def test_multimode_lists_all_modes_in_order():
    assert solution.multimode("aabbbbccddddeeffffgg") == ["b", "d", "f"]


def test_quartiles_cut_at_the_exclusive_points():
    assert solution.quantiles([1, 2, 3, 4, 5, 6, 7]) == [2.0, 4.0, 6.0]


def test_quartiles_of_an_even_number_are_interpolated():
    assert solution.quantiles([10, 20, 30, 40]) == [12.5, 25.0, 37.5]


def test_inclusive_quartiles_use_the_end_points():
    assert solution.quantiles([1, 2, 3, 4, 5], method="inclusive") == [2.0, 3.0, 4.0]


def test_n_quantiles_have_n_minus_one_cut_points():
    assert len(solution.quantiles(range(100), n=10)) == 9


@pytest.mark.minor
def test_an_unknown_quantile_method_is_refused():
    with pytest.raises(ValueError, match="method"):
        solution.quantiles([1, 2, 3], method="other")


def test_variance_divides_by_n_minus_one():
    assert solution.variance([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx(32 / 7)


def test_pvariance_divides_by_n():
    assert solution.pvariance([2, 4, 4, 4, 5, 5, 7, 9]) == 4


def test_covariance_of_a_rising_pair():
    assert solution.covariance([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]) == pytest.approx(2.5)


def test_covariance_of_a_pair_with_noise():
    x, y = [1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert solution.covariance(x, y) == pytest.approx(0.75)


def test_covariance_needs_equal_lengths():
    with pytest.raises(solution.StatisticsError):
        solution.covariance([1, 2], [1, 2, 3])


def test_harmonic_mean_of_two_speeds():
    assert solution.harmonic_mean([40, 60]) == pytest.approx(48.0)


def test_geometric_mean_of_growth():
    assert solution.geometric_mean([54, 24, 36]) == pytest.approx(36.0)
