"""Connecting: protocol negotiation, tokens, identities."""

from __future__ import annotations

from suite.checks import equal, raises, true
from suite.records import expect, payload, publish_all
from suite.runner import scenario


async def _works(stage, client, stream: str, tag: str) -> None:
    """One record through the client and back."""
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)
    await publish_all(stage, client, stream, [payload(tag, 0)])
    await expect(stage, handle, stream, [payload(tag, 0)])
    await handle.close()


@scenario()
async def connects_without_alpn(stage, client):
    """The client offers no protocol by default and must be let in; it learns who serves."""
    stream = stage.stream(1)
    await _works(stage, await stage.connect(), stream, "plain")
    equal(await client.endpoints(), [stage.dev.client_addr], "endpoints")


@scenario()
async def connects_with_alpn(stage, client):
    """The same with felix/1 offered."""
    stream = stage.stream(1)
    await _works(stage, await stage.connect(offer_alpn=True), stream, "alpn")


@scenario()
async def connects_with_provider(stage, client):
    """A token that is fetched when it is needed."""
    stream = stage.stream(1)
    provider = stage.surface.provider(stage.dev.client_token)
    await _works(stage, await stage.connect(token=None, token_provider=provider), stream, "provider")


@scenario()
async def bad_tokens_are_refused(stage, client):
    """Garbage, a token of the control plane, another tenant: all are AuthError, and name no secret."""
    refused = {"code": "unauthenticated", "retry": "fatal"}
    felix, dev = stage.felix, stage.dev
    tampered = dev.client_token[:-4] + ("AAAA" if not dev.client_token.endswith("AAAA") else "BBBB")
    for what, options in (
        ("garbage", {"token": "not-a-token"}),
        ("a tampered token", {"token": tampered}),
        ("a control plane token", {"token": dev.admin_token}),
        ("another tenant", {"tenant_id": "conformance-other"}),
    ):
        error = await raises(felix.AuthError, stage.connect(**options), what, **refused)
        secret = options.get("token", dev.client_token)
        true(secret == "not-a-token" or secret not in str(error), f"{what}: the error contains the token")


@scenario()
async def identities_stand_apart(stage, client):
    """A second identity made from a client works or is refused by its own token; the first goes on."""
    stream = stage.stream(1)
    felix = stage.felix
    twin = await client.with_identity(stage.tenant, stage.dev.client_token)
    await _works(stage, twin, stream, "twin")

    async def intruder():
        stranger = await client.with_identity(stage.tenant, "not-a-token")
        await stranger.publish(stage.tenant, stage.namespace, stream, b"from a stranger")

    await raises(felix.AuthError, intruder(), "publish with a bad identity", code="unauthenticated")
    await _works(stage, client, stream, "first")
