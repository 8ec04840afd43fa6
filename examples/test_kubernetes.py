"""The official client: https://github.com/kubernetes-client/python."""

from kubernetes import client

from nominee.testing import pod


def test_a_pod_is_bound(nominee_cluster):
    core = client.CoreV1Api(nominee_cluster.client("kubernetes"))
    container = client.V1Container(name="c", image="pause")
    body = client.V1Pod(metadata=client.V1ObjectMeta(name="a"), spec=client.V1PodSpec(containers=[container]))
    core.create_namespaced_pod(nominee_cluster.namespace, body)

    nominee_cluster.wait(pod("a"), "status.phase == 'Running'", timeout=60)

    found = core.read_namespaced_pod("a", nominee_cluster.namespace)
    assert found.spec.node_name in {node.metadata.name for node in core.list_node().items}
