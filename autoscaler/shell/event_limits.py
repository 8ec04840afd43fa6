"""Limits of the autoscaler's events.

Source: cluster-autoscaler 1.36, utils/kubernetes event recorder.
"""

from __future__ import annotations

from collections.abc import Hashable

from nominee.autoscaler.options import Options
from nominee.machinery.api.pb import core
from nominee.machinery.events.correlator import CorrelatorOptions, EventCorrelator, object_key

KEYS_MAX = 8192
_STATUS = ("ConfigMap", "kube-system", "cluster-autoscaler-status")


def event_correlator(options: Options) -> EventCorrelator:
    """Return a correlator that sends one event of each reason about an object in five minutes.

    Events about the status ConfigMap (of the default name only, as upstream) are limited by message. With
    `--record-duplicated-events` the limits are those of every other component.
    """
    if options.record_duplicated_events:
        return EventCorrelator()
    return EventCorrelator(CorrelatorOptions(burst=1, keys_max=KEYS_MAX, spam_key=_spam_key))


def _spam_key(event: core.Event) -> Hashable:
    about = event.involvedObject
    if (about.kind, about.namespace, about.name) == _STATUS:
        return event.message
    return event.reason, object_key(event)
