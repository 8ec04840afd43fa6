"""The annotations and finalizers of the volume controllers (Kubernetes 1.36).

Those that the scheduler uses too are in `nominee.machinery.scheduling.volume_matching`.
"""

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
PVC_PROTECTION = "kubernetes.io/pvc-protection"
PV_PROTECTION = "kubernetes.io/pv-protection"
DELAYED_PROVISIONER = "delayed.nominee.dev"
PROVISIONING_DELAY = "nominee.dev/provisioning-delay"
"""On a claim of `delayed.nominee.dev`: its own delay, not its class's; may be changed meanwhile."""
