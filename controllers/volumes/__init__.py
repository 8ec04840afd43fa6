"""Volumes: binding claims to them, the provisioner `delayed.nominee.dev`, protection of what is in use.

`binding` decides for the persistent volume controller; `provisioner` is what an external provisioner does.
"""
