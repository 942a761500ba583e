"""dev.json: what `felixd dev` tells a client about itself."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, fields
from pathlib import Path


class DevFileError(Exception):
    """dev.json is missing, unreadable or incomplete, or its broker is not ready."""


@dataclass(frozen=True)
class Dev:
    """The keys of dev.json this suite uses. URLs carry a scheme and no trailing slash."""

    client_addr: str  # ip:port of the QUIC listener for clients
    control_plane: str  # URL of the catalog API
    http: str  # URL of liveness, readiness and metrics
    tenant_id: str
    namespace: str
    client_token: str
    admin_token: str
    ca_file: str  # PEM of the CA both listeners chain to


def read(path: Path) -> Dev:
    """Parse dev.json; DevFileError names the first thing that is wrong with it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DevFileError(f"read {path}: {error}") from error
    values = {}
    for field in fields(Dev):
        value = content.get(field.name) if isinstance(content, dict) else None
        if not isinstance(value, str) or not value:
            raise DevFileError(f"read {path}: key {field.name!r} is missing or no string")
        values[field.name] = value
    values["control_plane"] = _url(values["control_plane"], "https")
    values["http"] = _url(values["http"], "http")
    return Dev(**values)


def wait_until_ready(path: Path, seconds: float) -> Dev:
    """Wait until dev.json exists and its /ready answers 200, at most that many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            dev = read(path)
            _probe(dev.http + "/ready")
            return dev
        except (DevFileError, OSError) as error:
            if time.monotonic() >= deadline:
                raise DevFileError(f"broker not ready after {seconds:.0f} s: {error}") from error
        time.sleep(0.05)


def _probe(url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        if answer.status != 200:
            raise DevFileError(f"GET {url}: status {answer.status}, want 200")


def _url(value: str, scheme: str) -> str:
    if "://" not in value:
        value = f"{scheme}://{value}"
    return value.rstrip("/")
