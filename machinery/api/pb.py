"""Kubernetes' messages under short names: `core.Pod`, `meta.ObjectMeta`, `policy.PodDisruptionBudget`.

The modules are generated from proto/ by `make setup`. Importing this one costs about 25 ms.
`resource` has Quantity; `devices` is the API group resource.k8s.io; `workloads` has PodGroup and Workload.
"""

from __future__ import annotations

from nominee.pb.k8s.io.api.apps.v1 import generated_pb2 as apps
from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling_v1
from nominee.pb.k8s.io.api.autoscaling.v2 import generated_pb2 as autoscaling
from nominee.pb.k8s.io.api.batch.v1 import generated_pb2 as batch
from nominee.pb.k8s.io.api.certificates.v1 import generated_pb2 as certificates
from nominee.pb.k8s.io.api.coordination.v1 import generated_pb2 as coordination
from nominee.pb.k8s.io.api.core.v1 import generated_pb2 as core
from nominee.pb.k8s.io.api.discovery.v1 import generated_pb2 as discovery
from nominee.pb.k8s.io.api.events.v1 import generated_pb2 as events
from nominee.pb.k8s.io.api.flowcontrol.v1 import generated_pb2 as flowcontrol
from nominee.pb.k8s.io.api.networking.v1 import generated_pb2 as networking
from nominee.pb.k8s.io.api.node.v1 import generated_pb2 as node
from nominee.pb.k8s.io.api.policy.v1 import generated_pb2 as policy
from nominee.pb.k8s.io.api.rbac.v1 import generated_pb2 as rbac
from nominee.pb.k8s.io.api.resource.v1 import generated_pb2 as devices
from nominee.pb.k8s.io.api.scheduling.v1 import generated_pb2 as scheduling
from nominee.pb.k8s.io.api.scheduling.v1alpha2 import generated_pb2 as workloads
from nominee.pb.k8s.io.api.storage.v1 import generated_pb2 as storage
from nominee.pb.k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1 import generated_pb2 as extensions
from nominee.pb.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as resource
from nominee.pb.k8s.io.apimachinery.pkg.apis.meta.v1 import generated_pb2 as meta
from nominee.pb.k8s.io.apimachinery.pkg.runtime import generated_pb2 as runtime
from nominee.pb.k8s.io.apimachinery.pkg.util.intstr import generated_pb2 as intstr

__all__ = [
    "apps",
    "autoscaling",
    "autoscaling_v1",
    "batch",
    "certificates",
    "coordination",
    "core",
    "devices",
    "discovery",
    "events",
    "extensions",
    "flowcontrol",
    "intstr",
    "meta",
    "networking",
    "node",
    "policy",
    "rbac",
    "resource",
    "runtime",
    "scheduling",
    "storage",
    "workloads",
]
