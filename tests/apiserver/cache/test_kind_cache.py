"""The cache of one kind against a plain dictionary, and the events that watchers with selectors receive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nominee.apiserver.cache.kind_cache import KindCache
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.machinery.api import kinds
from nominee.machinery.wire import envelope
from tests.apiserver.cache.test_watch_cache import pod

NAMESPACES = ("a", "a-b", "b")
NAMES = ("x", "y", "z")
Step = tuple[str, str, str | None]
STEPS = st.lists(
    st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES), st.sampled_from(["on", "off", None])),
    max_size=30,
)


def stored(namespace: str, name: str, label: str, revision: int) -> CachedObject:
    data = envelope.encode(pod(name, namespace, app=label))
    return CachedObject(kinds.POD, namespace, name, revision, stored=data)


def play(steps: list[Step], history_max: int) -> tuple[KindCache, list[dict[str, str]]]:
    """The cache after the steps, and the model's state (key to label) at each revision from 1 on."""
    cache = KindCache(kinds.POD, history_max=history_max)
    cache.replace([], 1)
    states: list[dict[str, str]] = [{}, {}]
    for revision, (namespace, name, label) in enumerate(steps, start=2):
        key, state = f"{namespace}/{name}", dict(states[-1])
        current = stored(namespace, name, label, revision) if label is not None else None
        transition = cache.apply(key, current, revision)
        assert (transition is None) == (label is None and key not in state)
        if label is None:
            state.pop(key, None)
        else:
            state[key] = label
        states.append(state)
    return cache, states


@given(STEPS)
def test_lists_and_counts_are_those_of_a_sorted_dictionary(steps: list[Step]) -> None:
    cache, states = play(steps, history_max=100)
    state = states[-1]
    for namespace in ("", *NAMESPACES):
        below = sorted(k for k in state if not namespace or k.startswith(f"{namespace}/"))
        found = [f"{o.namespace}/{o.name}" for o in cache.in_order(namespace)]
        assert found == below
        assert cache.count(namespace) == len(below)
        for start in ("x", "y\0", "a/x\0", "b/"):
            first = f"{namespace}/{start}" if namespace else start
            rest = [k for k in below if k >= first]
            assert [f"{o.namespace}/{o.name}" for o in cache.in_order(namespace, start)] == rest
            assert cache.count(namespace, start) == len(rest)


@given(STEPS, st.integers(0, 30), st.integers(1, 40), st.booleans())
def test_a_watch_from_any_revision_in_the_window_leads_to_the_present(
    steps: list[Step], since: int, history_max: int, select: bool
) -> None:
    cache, states = play(steps, history_max)
    since = min(max(since, cache.oldest), len(states) - 1)

    def selected(obj: CachedObject) -> bool:
        return obj.labels.get("app") == "on"

    def visible(state: dict[str, str]) -> dict[str, str]:
        return {key: label for key, label in state.items() if not select or label == "on"}

    shown = visible(states[since])
    for transition in cache.since(since):
        event = transition.event(selected if select else None)
        if event is None:
            continue
        assert event.revision == transition.revision
        key = f"{event.object.namespace}/{event.object.name}"
        # Each event is the only one possible in what the watcher has been shown.
        if event.type.name == "ADDED":
            assert key not in shown
            shown[key] = event.object.labels["app"]
        elif event.type.name == "MODIFIED":
            assert key in shown
            shown[key] = event.object.labels["app"]
        else:
            del shown[key]
    assert shown == visible(states[-1])
