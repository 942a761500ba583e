// Package client is the Go client of a Felix broker: publishing, subscribing, and the cache, over QUIC.
//
// A Client holds connections to one broker at a time, out of a list of addresses, and dials again by itself when a
// connection died. It is safe for concurrent use; one per process is the intended number.
//
// What a caller can rely on:
//
//   - Publishes of one key (and all without a key) to one stream reach the broker in the order of the calls. Many may be
//     under way at once; see PublishAsync.
//   - A publish is sent at most once. When it is not known whether it took effect, the error matches ErrOutcomeUnknown.
//   - A subscription never drops: a slow reader makes the client stop reading, and the broker decides what that means. A
//     canceled context loses no event; the next call returns it.
//   - Byte slices passed in are not kept after the call returns, and byte slices returned belong to the caller.
//   - Errors say what was tried, what went wrong and what to do. Ask them with errors.Is (ErrNotFound, ErrOverloaded, ...)
//     and errors.As (*BrokerError, *ConnectError, *CursorError, *SubscriptionLostError, ...), never by their text.
//   - A request that the broker did not advertise is not sent; it fails with an *UnsupportedError.
package client
