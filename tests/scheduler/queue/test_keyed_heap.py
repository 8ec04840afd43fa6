"""The heap pops in order whatever was put, replaced and removed before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nominee.scheduler.queue.keyed_heap import KeyedHeap

KEYS = st.integers(0, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 5)),
        st.tuples(st.just("remove"), KEYS, st.just(0)),
        st.tuples(st.just("pop"), st.just(0), st.just(0)),
    ),
    max_size=200,
)


@given(STEPS)
def test_as_a_sorted_dictionary(steps: list[tuple[str, int, int]]) -> None:
    heap: KeyedHeap[int, tuple[int, int]] = KeyedHeap(lambda item: item[1])
    model: dict[int, tuple[int, int]] = {}
    for what, key, rank in steps:
        if what == "put":
            heap.put(key, (key, rank))
            model[key] = (key, rank)
        elif what == "remove":
            assert heap.remove(key) == model.pop(key, None)
        else:
            popped = heap.pop()
            assert (popped is None) == (not model)
            if popped is not None:
                assert popped[1] == min(rank for _, rank in model.values())
                assert model.pop(popped[0]) == popped
        assert len(heap) == len(model)
        assert {item[0] for item in heap} == model.keys()
        ranks = [item[1] for item in heap]
        assert ranks == sorted(ranks)


def test_equals_come_in_the_order_they_were_put() -> None:
    heap: KeyedHeap[str, str] = KeyedHeap(lambda item: 0)
    for name in "cab":
        heap.put(name, name)
    heap.put("a", "again")
    assert [heap.pop() for _ in range(4)] == ["c", "again", "b", None]
