"""Fields of pods for Windows: options of security contexts, host processes (kube-apiserver 1.36)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.pods.every_container import containers_with_paths, security_contexts
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_CREDENTIAL_KIB_MAX = 64
_DOMAIN_LENGTH_MAX = 256
_USER_LENGTH_MAX = 104
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*", re.ASCII)
_BAD_CHARACTERS = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS_AND_SPACES = re.compile(r"[. ]+")


def options(path: str, found: core.WindowsSecurityContextOptions) -> Iterator[Cause]:
    """Check the options of a security context for Windows."""
    if found.HasField("gmsaCredentialSpecName"):
        at, name = f"{path}.gmsaCredentialSpecName", found.gmsaCredentialSpecName
        yield from field.check(at, name, names.dns_subdomain)
    if found.HasField("gmsaCredentialSpec"):
        at, text = f"{path}.gmsaCredentialSpec", found.gmsaCredentialSpec
        if not text:
            yield field.invalid(at, text, "gmsaCredentialSpec cannot be an empty string")
        elif len(text.encode()) > _CREDENTIAL_KIB_MAX * 1024:
            yield field.invalid(at, text, f"gmsaCredentialSpec size must be under {_CREDENTIAL_KIB_MAX} KiB")
    if found.HasField("runAsUserName"):
        at, name = f"{path}.runAsUserName", found.runAsUserName
        yield from (field.invalid(at, name, f"runAsUserName{problem}") for problem in _user_problems(name))


def _user_problems(text: str) -> list[str]:
    """Return the problems of `user` or `DOMAIN\\user`."""
    if not text:
        return [" cannot be an empty string"]
    if _CONTROL.search(text):
        return [" cannot contain control characters"]
    if text.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    problems: list[str] = []
    domain, separator, user = text.rpartition("\\")
    if len(domain.encode()) >= _DOMAIN_LENGTH_MAX:
        problems.append(f"'s Domain length must be under {_DOMAIN_LENGTH_MAX} characters")
    if separator and not (_NETBIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
        problems.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("'s User cannot be empty")
    elif len(user.encode()) > _USER_LENGTH_MAX:
        problems.append(f"'s User length must not be longer than {_USER_LENGTH_MAX} characters")
    if _DOTS_AND_SPACES.fullmatch(user):
        problems.append("'s User cannot contain only periods or spaces")
    if _BAD_CHARACTERS.search(user):
        problems.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


def host_processes(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    """Check that either all containers are processes of the host, or no container is."""
    of_pod = spec.securityContext.windowsOptions
    said = of_pod.HasField("hostProcess")
    if not said and not any(
        context.HasField("windowsOptions") for _, context in security_contexts(path, spec)
    ):
        return
    count = on_host = 0
    for at, container in containers_with_paths(path, spec):
        count += 1
        own = container.securityContext.windowsOptions
        if said and own.HasField("hostProcess") and own.hostProcess != of_pod.hostProcess:
            shown = "true" if of_pod.hostProcess else "false"
            problem = f"pod hostProcess value must be identical if both are specified, was {shown}"
            where = f"{at}.securityContext.windowsOptions.hostProcess"
            yield field.invalid(where, own.hostProcess, problem)
        on_host += own.hostProcess if own.HasField("hostProcess") else of_pod.hostProcess
    if not on_host:
        return
    if on_host != count:
        problem = (
            "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        )
        yield field.invalid(path, "", problem)
    if not spec.hostNetwork:
        problem = "hostNetwork must be true if pod contains any hostProcess containers"
        yield field.invalid(f"{path}.hostNetwork", spec.hostNetwork, problem)
