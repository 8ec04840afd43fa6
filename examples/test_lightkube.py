"""lightkube: https://lightkube.readthedocs.io."""

from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

from nominee.testing import ref


def test_a_deployment_survives_a_restart_of_the_scheduler(nominee_cluster):
    client = nominee_cluster.client("lightkube")
    labels = {"app": "web"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container("c", image="pause")])
    )
    spec = DeploymentSpec(replicas=3, selector=LabelSelector(matchLabels=labels), template=template)
    client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
    nominee_cluster.restart("scheduler", kill=True)

    nominee_cluster.wait(ref("Deployment", "web"), {"condition": "Available=True"}, timeout=60)

    assert len(list(client.list(Pod, labels=labels))) == 3
