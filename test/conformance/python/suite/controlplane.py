"""The catalog API, as far as the suite needs it: create and delete streams and caches."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request

from suite.devfile import Dev


class ControlPlaneError(Exception):
    """The catalog API refused a request or could not be reached."""


class ControlPlane:
    """Talks to the catalog of one namespace over verified TLS with the admin token."""

    def __init__(self, dev: Dev):
        base = f"/v1/tenants/{_part(dev.tenant_id)}/namespaces/{_part(dev.namespace)}"
        self._base = dev.control_plane + base
        self._token = dev.admin_token
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self._base.startswith("https:"):
            context = ssl.create_default_context(cafile=dev.ca_file)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def create_stream(self, name: str, shards: int, durable: bool = False, retention_bytes: int | None = None) -> None:
        """Create a stream; done when the catalog has it, not yet when it is served."""
        body = {"stream": name, "shards": shards, "durable": durable}
        if retention_bytes is not None:
            body["retention"] = {"max_size_bytes": retention_bytes}
        self._send("POST", "/streams", body, (200, 201))

    def create_cache(self, name: str, shards: int, in_memory: bool = False) -> None:
        """Create a cache, kept in a log unless in_memory; done when the catalog has it, not yet when it is served."""
        body = {"cache": name, "display_name": name, "shards": shards}
        if in_memory:
            body["in_memory"] = True
        self._send("POST", "/caches", body, (200, 201))

    def delete_stream(self, name: str) -> None:
        """Delete a stream and what it holds."""
        self._send("DELETE", f"/streams/{_part(name)}", None, (200, 204))

    def delete_cache(self, name: str) -> None:
        """Delete a cache and what it holds."""
        self._send("DELETE", f"/caches/{_part(name)}", None, (200, 204))

    def _send(self, method: str, path: str, body: dict | None, accepted: tuple[int, ...]) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data=data, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=10) as answer:
                status, text = answer.status, answer.read(4096)
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read(4096)
        except OSError as error:
            raise ControlPlaneError(f"{method} {self._base}{path}: {error}") from error
        if status not in accepted:
            detail = text.decode(errors="replace").strip()
            raise ControlPlaneError(f"{method} {self._base}{path}: status {status}: {detail}")


def _part(name: str) -> str:
    return urllib.parse.quote(name, safe="")
