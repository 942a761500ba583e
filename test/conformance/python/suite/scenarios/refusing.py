"""What the token does not allow."""

from __future__ import annotations

from suite.checks import equal, raises
from suite.records import expect, publish_all
from suite.runner import scenario
from suite.scenarios.caching import Cache

# The dev token covers the namespace of dev.json only. A refusal comes before any look at what exists.
FORBIDDEN_NAMESPACE = "restricted"
FORBIDDEN_TENANT = "conformance-other"


@scenario()
async def forbidden_actions(stage, client):
    """Another namespace and another tenant are AuthError, code forbidden, at once; the client goes on."""
    felix, tenant, name = stage.felix, stage.tenant, "anything"
    refused = {"code": "forbidden", "retry": "fatal", "within": 2.0}
    stream, cache = stage.stream(1), Cache(stage, client, stage.cache(1))
    handle = await client.subscribe(tenant, stage.namespace, stream)
    for _ in range(2):
        for what, call in (
            ("publish", client.publish(tenant, FORBIDDEN_NAMESPACE, name, b"x")),
            ("keyed publish", client.publish(tenant, FORBIDDEN_NAMESPACE, name, b"x", key=b"k")),
            ("subscribe", client.subscribe(tenant, FORBIDDEN_NAMESPACE, name)),
            ("get", client.cache_get(tenant, FORBIDDEN_NAMESPACE, name, "k")),
            ("put", client.cache_put(tenant, FORBIDDEN_NAMESPACE, name, "k", b"v")),
            ("delete", client.cache_delete(tenant, FORBIDDEN_NAMESPACE, name, "k")),
            ("publish to a tenant", client.publish(FORBIDDEN_TENANT, stage.namespace, stream, b"x")),
            ("get of a tenant", client.cache_get(FORBIDDEN_TENANT, stage.namespace, name, "k")),
        ):
            await raises(felix.AuthError, call, f"forbidden {what}", **refused)
        await client.publish(tenant, FORBIDDEN_NAMESPACE, name, b"x", ack="none")
        await publish_all(stage, client, stream, [b"allowed"])
        await expect(stage, handle, stream, [b"allowed"])
        await cache.put("k", b"v")
        equal(await cache.get("k"), b"v", "get after refusals")
