"""Tests of `colorsys`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution

COLOURS = {
    "red": ((1.0, 0.0, 0.0), 0.0),
    "yellow": ((1.0, 1.0, 0.0), 1 / 6),
    "green": ((0.0, 1.0, 0.0), 2 / 6),
    "cyan": ((0.0, 1.0, 1.0), 3 / 6),
    "blue": ((0.0, 0.0, 1.0), 4 / 6),
    "magenta": ((1.0, 0.0, 1.0), 5 / 6),
}
NAMES = sorted(COLOURS)
MIXED = [(0.2, 0.4, 0.4), (0.9, 0.5, 0.1), (0.3, 0.4, 0.2), (0.3, 0.3, 0.3)]


@pytest.mark.critical
@pytest.mark.parametrize("name", NAMES)
def test_rgb_to_hsv_of_pure_colours(name):
    rgb, hue = COLOURS[name]
    assert solution.rgb_to_hsv(*rgb) == pytest.approx((hue, 1.0, 1.0))


@pytest.mark.critical
@pytest.mark.parametrize("name", NAMES)
def test_rgb_to_hls_of_pure_colours(name):
    rgb, hue = COLOURS[name]
    assert solution.rgb_to_hls(*rgb) == pytest.approx((hue, 0.5, 1.0))


@pytest.mark.parametrize("rgb", MIXED)
def test_hsv_to_rgb_undoes_rgb_to_hsv(rgb):
    assert solution.hsv_to_rgb(*solution.rgb_to_hsv(*rgb)) == pytest.approx(rgb)


@pytest.mark.parametrize("rgb", MIXED)
def test_hls_to_rgb_undoes_rgb_to_hls(rgb):
    assert solution.hls_to_rgb(*solution.rgb_to_hls(*rgb)) == pytest.approx(rgb)


def test_yiq_to_rgb_undoes_rgb_to_yiq():
    assert solution.yiq_to_rgb(*solution.rgb_to_yiq(0.2, 0.4, 0.4)) == pytest.approx(
        (0.2, 0.4, 0.4)
    )


def test_rgb_to_yiq_of_white_has_no_chrominance():
    assert solution.rgb_to_yiq(1.0, 1.0, 1.0) == pytest.approx((1.0, 0.0, 0.0))


@pytest.mark.minor
def test_grey_has_no_saturation():
    assert solution.rgb_to_hsv(0.5, 0.5, 0.5) == (0.0, 0.0, 0.5)
    assert solution.hsv_to_rgb(0.3, 0.0, 0.5) == (0.5, 0.5, 0.5)
