"""The pytest plugin: fixtures with clusters, whose logs are in the report of a failed test.

`nominee_cluster` is a cluster of the session with a namespace of the test's own. A project overrides
`nominee_cluster_options`; `nominee_cluster_factory` starts other clusters. With pytest-xdist each worker has
its own. The first fixture imports modules of Nominee: a run without one pays nothing.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from nominee.testing.cluster import Cluster, ClusterOptions, Moment

_NAME_CHARACTERS_MAX: Final = 40


class ClusterFactory:
    """Starts clusters, which end with the session: `nominee_cluster_factory(nodes=1)`.

    Options of the command line hold where the caller does not give them.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._version: str = config.getoption("nominee_version")
        gates: Sequence[str] = config.getoption("nominee_feature_gates")
        self._words = [word for text in gates for word in ("--feature-gates", text)]
        self.keeps: bool = config.getoption("nominee_keep")
        self.clusters: dict[Cluster, Moment | None] = {}
        """Running clusters, with the moment when the present test began; None: it has started them."""
        self.namespaces = 0
        self._stack = ExitStack()

    def __call__(self, **options: Unpack[ClusterOptions]) -> Cluster:
        """Start a cluster. Raises: ClusterStartError."""
        from nominee.testing.cluster import Cluster

        options = {"emulated_version": self._version, "detach": self.keeps, **options}
        if "feature_gates" not in options:
            options["options"] = (*self._words, *options.get("options", ()))
        cluster = self._stack.enter_context(Cluster(**options))
        self.clusters[cluster] = None
        return cluster

    def begin_test(self) -> None:
        """Note the moment of every cluster."""
        from nominee.localcluster.cluster import ClusterError
        from nominee.machinery.api.errors import StatusError

        for cluster, before in self.clusters.items():
            try:
                self.clusters[cluster] = cluster.now()
            except (ClusterError, StatusError):
                self.clusters[cluster] = before  # an earlier test has broken it

    def end(self) -> None:
        """Stop the clusters, except for those that are kept."""
        self._stack.close()


_FACTORY = pytest.StashKey[ClusterFactory]()
_VIEW = pytest.StashKey["Cluster"]()
_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("nominee", "clusters of Nominee")
    group.addoption(
        "--nominee-version",
        default="",
        metavar="1.NN",
        help="the Kubernetes version that the clusters of the nominee_cluster fixtures emulate",
    )
    group.addoption(
        "--nominee-feature-gates",
        action="append",
        default=[],
        metavar="COMPONENT=Gate=bool,...",
        help="their feature gates; Gate=bool without a component is for all",
    )
    group.addoption(
        "--nominee-keep",
        action="store_true",
        help="let a cluster run on after a failed test; its report has the commands to reach and stop it",
    )


@pytest.fixture(scope="session")
def nominee_cluster_factory(pytestconfig: pytest.Config) -> Iterator[ClusterFactory]:
    """Start clusters of processes: `nominee_cluster_factory(nodes=1)`; they end with the session."""
    factory = pytestconfig.stash[_FACTORY] = ClusterFactory(pytestconfig)
    yield factory
    factory.end()


@pytest.fixture(scope="session")
def nominee_cluster_options() -> ClusterOptions:
    """Return the options of the cluster of `nominee_cluster`; a project overrides this fixture."""
    return {}


@pytest.fixture(scope="session")
def nominee_session_cluster(
    nominee_cluster_factory: ClusterFactory, nominee_cluster_options: ClusterOptions
) -> Cluster:
    """Start the cluster of `nominee_cluster`."""
    return nominee_cluster_factory(**nominee_cluster_options)


@pytest.fixture
def nominee_cluster(
    nominee_session_cluster: Cluster, nominee_cluster_factory: ClusterFactory, request: pytest.FixtureRequest
) -> Iterator[Cluster]:
    """Return the session's cluster, with a new namespace that is deleted after the test."""
    nominee_cluster_factory.namespaces += 1
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:_NAME_CHARACTERS_MAX].strip("-")
    view = nominee_session_cluster.in_new_namespace(f"{words}-{nominee_cluster_factory.namespaces}")
    request.node.stash[_VIEW] = view
    yield view
    if not (nominee_cluster_factory.keeps and request.node.stash.get(_FAILED, False)):
        view.delete_namespace()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note when the test begins."""
    factory = item.config.stash.get(_FACTORY, None)
    if factory is not None and _uses_clusters(item):
        factory.begin_test()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the clusters' logs, events and history to the report of a failed test."""
    report = yield
    factory = item.config.stash.get(_FACTORY, None)
    if report.failed and factory is not None and _uses_clusters(item):
        from nominee.testing.report import sections

        item.stash[_FAILED] = True
        view = item.stash.get(_VIEW, None)
        for cluster, began in factory.clusters.items():
            is_viewed = view is not None and view.directory == cluster.directory
            shown = view if view is not None and is_viewed else cluster
            if factory.keeps and cluster.outlives:
                report.sections.append((f"nominee: {cluster.directory} runs on", cluster.keep()))
            report.sections += sections(shown, began)
    return report


def _uses_clusters(item: pytest.Item) -> bool:
    return "nominee_cluster_factory" in getattr(item, "fixturenames", ())
