"""Volumes: binding claims to them, the provisioner `delayed.nominee.dev`, protection of those in use.

Start with `binding`, which yields the next step (`steps`) of a claim or a volume; `provisioning` decides what
an external provisioner does. `shell` has the controllers, also those that keep what is in use.

Source: kube-controller-manager 1.36, pkg/controller/volume.
"""
