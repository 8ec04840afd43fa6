"""Scenario files: the stories, risks and upgrade paths of the KEPs. `nominee scenario run FILE` plays one."""
