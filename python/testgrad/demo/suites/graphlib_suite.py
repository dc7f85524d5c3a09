"""Tests of `graphlib`, written from its documentation."""

# mypy: ignore-errors
import pytest
from solution import CycleError, TopologicalSorter

GRAPH = {"D": {"B", "C"}, "B": {"A"}, "C": {"A"}}


def prepared(graph):
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    return sorter


@pytest.mark.critical
def test_static_order_puts_predecessors_first():
    order = list(TopologicalSorter(GRAPH).static_order())
    assert sorted(order) == ["A", "B", "C", "D"]
    assert order[0] == "A"
    assert order[-1] == "D"


@pytest.mark.critical
def test_a_chain_has_one_order():
    assert list(TopologicalSorter({3: [2], 2: [1]}).static_order()) == [1, 2, 3]


@pytest.mark.minor
def test_an_empty_graph_has_an_empty_order():
    assert list(TopologicalSorter().static_order()) == []


def test_add_joins_predecessors_of_repeated_calls():
    sorter = TopologicalSorter()
    sorter.add(3, 1)
    sorter.add(3, 2)
    assert sorted(sorter.static_order()) == [1, 2, 3]


def test_a_node_without_predecessors_is_kept():
    sorter = TopologicalSorter()
    sorter.add("alone")
    assert list(sorter.static_order()) == ["alone"]


def test_nodes_become_ready_in_groups():
    sorter = prepared(GRAPH)
    assert sorter.get_ready() == ("A",)
    assert sorter.get_ready() == ()
    sorter.done("A")
    assert sorted(sorter.get_ready()) == ["B", "C"]


def test_a_node_waits_for_all_its_predecessors():
    sorter = prepared(GRAPH)
    sorter.done(*sorter.get_ready())
    sorter.get_ready()
    sorter.done("B")
    assert sorter.get_ready() == ()
    sorter.done("C")
    assert sorter.get_ready() == ("D",)


def test_the_sorter_is_active_until_all_is_done():
    sorter = prepared({2: [1]})
    assert sorter.is_active()
    handed_out = sorter.get_ready()
    assert sorter.is_active()
    sorter.done(*handed_out)
    sorter.done(*sorter.get_ready())
    assert not sorter.is_active()
    assert not sorter


@pytest.mark.critical
def test_a_cycle_is_found():
    with pytest.raises(CycleError) as caught:
        prepared({1: [2], 2: [3], 3: [1]})
    cycle = caught.value.args[1]
    assert cycle[0] == cycle[-1]
    assert sorted(cycle[1:]) == [1, 2, 3]


def test_add_after_prepare_is_refused():
    with pytest.raises(ValueError, match="prepare"):
        prepared(GRAPH).add("E")


@pytest.mark.parametrize("method", ["get_ready", "is_active", "done"])
def test_prepare_comes_first(method):
    with pytest.raises(ValueError, match="prepare"):
        getattr(TopologicalSorter(GRAPH), method)()


def test_done_with_an_unknown_node():
    with pytest.raises(ValueError, match="not added"):
        prepared(GRAPH).done("Z")


@pytest.mark.parametrize("node", ["A", "D"])
def test_done_with_a_node_that_was_not_handed_out(node):
    with pytest.raises(ValueError, match="not passed out"):
        prepared(GRAPH).done(node)


def test_done_twice_is_refused():
    sorter = prepared(GRAPH)
    sorter.done(*sorter.get_ready())
    with pytest.raises(ValueError, match="already"):
        sorter.done("A")
