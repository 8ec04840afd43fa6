"""The shell of the controller that deletes old certificate signing requests."""

from __future__ import annotations

from typing import Final

from nominee.controllers.certificates.cleaning import is_garbage
from nominee.controllers.certificates.signing import end_of
from nominee.controllers.shell.controller import Context, Runner
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found

PERIOD_SECONDS: Final = 3600.0


class Cleaner(Runner):
    """Deletes old requests, once an hour."""

    name = "certificatesigningrequest-cleaner-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._requests = context.informers.of(kinds.CERTIFICATE_SIGNING_REQUEST)

    async def run(self) -> None:
        while True:
            await self._clean()
            await self.clock.sleep(PERIOD_SECONDS)

    async def _clean(self) -> None:
        for request in self._requests.list():
            if not is_garbage(request, self.clock.now(), end_of):
                continue
            metadata = request.metadata
            try:
                await self.client.delete(kinds.CERTIFICATE_SIGNING_REQUEST, metadata.name, uid=metadata.uid)
            except StatusError as error:
                if not is_not_found(error):
                    self.log.warning("request not deleted", request=metadata.name, error=str(error))
