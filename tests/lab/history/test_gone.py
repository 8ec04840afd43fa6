"""The names of objects that are gone at the end of a history."""

from __future__ import annotations

from nominee.lab.history.gone import names_of_gone
from nominee.machinery.api.pb import meta, workloads
from tests.lab.invariants.histories import History, node, pod


def test_uids_and_names_of_deleted_objects_are_gone_unless_another_one_has_them() -> None:
    first, second = pod("a", uid="1"), pod("a", uid="2")
    history = History().put(first, node("n1"), pod("b")).delete(first).delete(node("n1")).put(second)
    assert names_of_gone(history.revisions) == {"1", "uid-n1"}
    assert names_of_gone(history.delete(second).revisions) == {"1", "2", "default/a", "uid-n1"}


def test_the_name_of_a_group_to_which_a_pod_belongs_is_in_use() -> None:
    group = workloads.PodGroup(metadata=meta.ObjectMeta(name="g", namespace="default", uid="group"))
    member = pod("member")
    member.spec.schedulingGroup.podGroupName = "g"
    history = History().put(group, member).delete(group)
    assert names_of_gone(history.revisions) == {"group"}
    assert names_of_gone(history.delete(member).revisions) == {
        "group",
        "default/g",
        "uid-member",
        "default/member",
    }
