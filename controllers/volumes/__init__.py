"""Volumes: binding claims to volumes, the provisioner `nominee.dev/delayed`, and protection of what is in use.

`binding` decides for the persistent volume controller; `provisioner` is what an external provisioner does.
"""
