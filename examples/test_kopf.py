"""kopf: https://kopf.readthedocs.io. The operator runs as it would in production, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.testing import pod

OPERATOR = Path(__file__).with_name("labelling_operator.py")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {example.com/class: labelled}}
spec: {containers: [{name: c, image: pause}]}
"""


@pytest.fixture
def operator(nominee_cluster):
    """Run the operator for the namespace of the test."""
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", nominee_cluster.namespace]
    environment = {**os.environ, "KUBECONFIG": str(nominee_cluster.kubeconfig)}
    process = subprocess.Popen([*command, str(OPERATOR)], env=environment)
    yield
    process.terminate()
    process.wait(timeout=30)


def test_the_operator_labels_a_pod(nominee_cluster, operator):
    nominee_cluster.apply(POD)

    nominee_cluster.wait(pod("a"), "metadata.labels['example.com/seen'] == 'yes'", timeout=60)
