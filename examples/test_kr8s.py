"""kr8s: https://kr8s.org."""

from kr8s.objects import Pod

from nominee.testing import pod


def test_a_pod_is_deleted(nominee_cluster):
    api = nominee_cluster.client("kr8s")
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": nominee_cluster.namespace},
        "spec": {"containers": [{"name": "c", "image": "pause"}], "terminationGracePeriodSeconds": 1},
    }
    made = Pod(manifest, api=api)
    made.create()
    nominee_cluster.wait(pod("a"), {"condition": "Ready=True"}, timeout=60)
    made.delete()

    nominee_cluster.wait(pod("a"), {"exists": False}, timeout=60)

    assert [each.verb for each in nominee_cluster.history(pod("a"))][-1] == "deleted"
