"""PersistentVolumes and their claims."""
