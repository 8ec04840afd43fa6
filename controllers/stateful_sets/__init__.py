"""Stateful sets: pods with an ordinal, a stable name and claims of their own.

Start with `rollout`: which pods and claims a reconciliation creates, changes and deletes, in which order.
`identity` has names, ordinals and new pods, `retention` the owners of claims, `status` the status; `shell`
has the controller. Revisions of the template are in `controllers/revisions`.

Source: kube-controller-manager 1.36, pkg/controller/statefulset.
"""
