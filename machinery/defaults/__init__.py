"""The defaults that the API server sets in objects, and quantities in canonical form.

`apply(kind, obj, gates)` changes the object in place, as kube-apiserver 1.36 does when it decodes one.
`pod` has the pod's defaults, `kinds` those of all others and the table.
"""

from nominee.machinery.defaults.kinds import NAMESPACE_NAME_LABEL, apply

__all__ = ["NAMESPACE_NAME_LABEL", "apply"]
