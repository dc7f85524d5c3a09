"""Tests of `heapq`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution

NUMBERS = [5, 3, 8, 1, 9, 2, 7, 4, 6, 0]


def heap_of(numbers):
    heap = []
    for number in numbers:
        solution.heappush(heap, number)
    return heap


def is_heap(heap):
    return all(heap[(child - 1) // 2] <= heap[child] for child in range(1, len(heap)))


@pytest.mark.critical
def test_heappush_keeps_the_smallest_first():
    assert heap_of(NUMBERS)[0] == 0


def test_heappush_keeps_the_invariant():
    assert is_heap(heap_of(NUMBERS))


@pytest.mark.critical
def test_heappop_returns_items_in_order():
    heap = heap_of(NUMBERS)
    assert [solution.heappop(heap) for _ in NUMBERS] == list(range(10))


@pytest.mark.critical
def test_heapify_keeps_the_invariant():
    heap = list(NUMBERS)
    solution.heapify(heap)
    assert is_heap(heap)
    assert sorted(heap) == list(range(10))


def test_heapify_then_heappop_sorts():
    heap = [21, 13, 34, 5, 55, 8, 3, 1, 2, 1]
    solution.heapify(heap)
    assert [solution.heappop(heap) for _ in range(10)] == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


@pytest.mark.minor
def test_heappop_of_an_empty_heap_is_an_index_error():
    with pytest.raises(IndexError):
        solution.heappop([])


@pytest.mark.minor
def test_one_item_is_a_heap():
    heap = [7]
    assert solution.heappop(heap) == 7
    assert heap == []


def test_heappushpop_returns_a_small_new_item():
    heap = heap_of([3, 5, 4])
    assert solution.heappushpop(heap, 1) == 1
    assert sorted(heap) == [3, 4, 5]


def test_heappushpop_swaps_a_large_new_item():
    heap = heap_of([3, 5, 4])
    assert solution.heappushpop(heap, 9) == 3
    assert sorted(heap) == [4, 5, 9]


def test_heapreplace_pops_before_it_pushes():
    heap = heap_of([3, 5, 4])
    assert solution.heapreplace(heap, 1) == 3
    assert sorted(heap) == [1, 4, 5]


@pytest.mark.parametrize("count", [0, 1, 3, 10, 20])
def test_nsmallest_is_the_start_of_the_sorted_list(count):
    assert solution.nsmallest(count, iter(NUMBERS)) == sorted(NUMBERS)[:count]


@pytest.mark.parametrize("count", [0, 1, 3, 10, 20])
def test_nlargest_is_the_end_of_the_sorted_list(count):
    assert solution.nlargest(count, iter(NUMBERS)) == sorted(NUMBERS, reverse=True)[:count]


def test_nsmallest_with_a_key():
    assert solution.nsmallest(2, ["ccc", "a", "dddd", "bb"], key=len) == ["a", "bb"]


def test_nlargest_with_a_key():
    assert solution.nlargest(2, ["ccc", "a", "dddd", "bb"], key=len) == ["dddd", "ccc"]


def test_merge_joins_sorted_inputs():
    assert list(solution.merge([1, 3, 5], [0, 2, 4], [2])) == [0, 1, 2, 2, 3, 4, 5]
