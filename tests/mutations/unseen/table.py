"""All unseen mutations, by component."""

from __future__ import annotations

from typing import Final

from tests.mutations.unseen.apiserver import APISERVER
from tests.mutations.unseen.autoscaler import AUTOSCALER
from tests.mutations.unseen.controllers import CONTROLLERS
from tests.mutations.unseen.holdout import HOLDOUT
from tests.mutations.unseen.holdout2 import HOLDOUT2
from tests.mutations.unseen.holdout3 import HOLDOUT3
from tests.mutations.unseen.holdout4 import HOLDOUT4
from tests.mutations.unseen.holdout5 import HOLDOUT5
from tests.mutations.unseen.holdout6 import HOLDOUT6
from tests.mutations.unseen.holdout7 import HOLDOUT7
from tests.mutations.unseen.kubelet import KUBELET
from tests.mutations.unseen.localcluster import LOCALCLUSTER
from tests.mutations.unseen.machinery import MACHINERY
from tests.mutations.unseen.scheduler import SCHEDULER
from tests.mutations.unseen.unseen import Unseen

UNSEEN: Final[tuple[Unseen, ...]] = (
    *APISERVER,
    *SCHEDULER,
    *KUBELET,
    *AUTOSCALER,
    *CONTROLLERS,
    *MACHINERY,
    *LOCALCLUSTER,
    *HOLDOUT,
    *HOLDOUT2,
    *HOLDOUT3,
    *HOLDOUT4,
    *HOLDOUT5,
    *HOLDOUT6,
    *HOLDOUT7,
)
UNSEEN_BY_NAME: Final = {each.mutation.name: each for each in UNSEEN}
