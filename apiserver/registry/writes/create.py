"""POST of an object: defaults, admission, the strategy's rules, one write.

Source: kube-apiserver 1.36, registry/rest/create.go, endpoints/handlers/create.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nominee.apiserver.kinds import conversion
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects import generate_name
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Create, WriteOptions
from nominee.apiserver.registry import rules
from nominee.apiserver.registry.body_checks import check_namespace
from nominee.apiserver.registry.context import RegistryContext
from nominee.apiserver.registry.writes import emulation_warnings, imports, tracking
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of


async def create(context: RegistryContext, request: Create, warnings: list[str]) -> CachedObject:
    """Create an object, adding to `warnings`. Raises: StatusError 400, 403, 409, 413, 422."""
    kind, options = request.kind, request.options
    strategy = strategy_of(kind)
    rules.check_options("CreateOptions", options)
    obj = conversion.as_stored(kind, request.body)
    check_namespace(strategy, request.namespace, obj.metadata)
    env = context.environment(options.origin)
    context.complete(strategy.kind, obj)
    if options.imported:
        imports.fill_metadata(obj.metadata, context.new_uid(), env)
    else:
        rules.fill_metadata(obj.metadata, context.new_uid(), env)
        tracking.create(strategy.kind, obj, options, env.now)
    rules.warn_of_double_owners(obj.metadata, options, warnings)
    return await Creation(context, kind, strategy, options, env, warnings).run(obj)


@dataclass(frozen=True, slots=True)
class Creation:
    """The creation of an object that has its defaults, uid and managedFields; adds to `warnings`."""

    context: RegistryContext
    kind: AnyKind
    strategy: Strategy[Any]
    options: WriteOptions
    env: Environment
    warnings: list[str]

    async def run(self, obj: Any) -> CachedObject:
        """Create the object; generate its name from generateName. Raises: as `create`."""
        context, warnings = self.context, self.warnings
        asked = context.admission_request("CREATE", self.kind, obj, None, self.options)
        await context.admission.admit(asked)
        prefix = "" if obj.metadata.name else obj.metadata.generateName
        if not prefix:
            return conversion.convert_stored(self.kind, await self._create(obj))
        for attempt in range(generate_name.ATTEMPTS_MAX):
            trial = copy_of(obj)
            trial.metadata.name = generate_name.generate(prefix, context.rng)
            before = len(warnings)
            try:
                return conversion.convert_stored(self.kind, await self._create(trial))
            except StatusError as error:
                if not errors.is_already_exists(error):
                    raise
                if attempt + 1 == generate_name.ATTEMPTS_MAX:
                    raise errors.generate_name_conflict(self.strategy.kind, trial.metadata.name) from error
            del warnings[before:]
        raise AssertionError("unreachable")

    async def _create(self, obj: Any) -> CachedObject:
        """Allocate addresses and ports, and write the object."""
        claims = self.context.claims(self.strategy.kind, dry_run=self.options.dry_run)
        if claims is None:
            return await self._check_and_write(obj)
        async with claims:
            await claims.renew(obj, None)
            return await self._check_and_write(obj)

    async def _check_and_write(self, obj: Any) -> CachedObject:
        context, strategy, options, kind = self.context, self.strategy, self.options, self.strategy.kind
        if options.warn:
            self.warnings.extend(strategy.early_warnings(obj))
        prepare = imports.before_create if options.imported else rules.before_create
        prepare(strategy, obj, self.env)
        if options.warn:
            self.warnings.extend(strategy.warnings(obj, None))
            if not options.imported:
                self.warnings.extend(emulation_warnings.of_creation(kind, obj))
        await context.admission.validate(context.admission_request("CREATE", kind, obj, None, options))
        created = await context.store.create(
            kind, obj, dry_run=options.dry_run, lease_seconds=context.lease_seconds(strategy)
        )
        await context.settle(kind, created)
        return created
