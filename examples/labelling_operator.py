"""An operator with one handler: it labels each new pod of the class "labelled"."""

import kopf


@kopf.on.create("pods", annotations={"example.com/class": "labelled"})
def label(patch, **_):
    patch.metadata.labels["example.com/seen"] = "yes"
