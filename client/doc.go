// Package client is the Go client of a Felix broker: publishing, subscribing, work queues, and the cache, over QUIC.
//
// A Client talks to one broker out of a list of addresses, asks it for the others, goes to the owners of shards that answers
// name, and dials again by itself when a connection died. It is safe for concurrent use; one per process is the intended
// number.
//
// # What a caller can rely on
//
//   - Publishes of one key (and all without a key) to one stream reach the broker in the order of the calls, also when the
//     shard gets another owner meanwhile. Many may be under way at once: see PublishAsync, and Batcher for many small ones.
//   - A publish is sent once. When it is not known whether it took effect, the error matches ErrOutcomeUnknown.
//     PublishAtLeastOnce is the exception, by name, and a Producer: it numbers its batches, so that they may be sent again and
//     are written once.
//   - A subscription goes on by itself after a lost connection, a lag or a move, as its Resume says. Where events have
//     offsets none is missing and none comes twice; on in-memory streams Event.Gap marks where some may be missing.
//   - Position and Positions are where to go on in another process: the offset after the last event returned. An offset that
//     retention dropped, or that is past the end, is a *CursorError that names the nearest one, never silently another.
//   - PublishIf, Commit, CommitIf, CachePutIf, CacheDeleteIf and CounterAdd take effect once or not at all; without an answer the
//     error matches ErrOutcomeUnknown.
//   - A cache watch hands out each change of a shard once, in order, and goes on by itself like a subscription. Where the broker
//     no longer has what it missed, it is told so, and gets the current values instead: see ItemSnapshot.
//   - Consume shares the records of a stream with the other workers of a group. A record is handed to a handler once or more, and
//     not again after its ack was answered, unless the group is moved back. What is in hand is claimed: the claim is prolonged while the handler runs.
//   - A slow reader makes the client stop reading, unless its policy is QueueDropNew, which counts what it drops. A canceled
//     context loses no event; the next call returns it.
//   - Byte slices passed in are not kept after the call returns, and byte slices returned belong to the caller.
//   - Errors say what was tried, what went wrong and what to do. Ask them with errors.Is (ErrNotFound, ErrOverloaded, ...)
//     and errors.As (*BrokerError, *ConnectError, *CursorError, *SubscriptionLostError, ...), never by their text. Retryable
//     tells whether the same call may be made again.
//   - A request that the broker did not advertise is not sent; it fails with an *UnsupportedError.
//   - Close flushes, and leaves no goroutine behind.
//
// # What is repeated
//
//	                       Publish, PublishAsync     PublishAtLeastOnce       Subscribe, questions
//	fatal                  returned                  returned                 returned
//	retry, redirect        returned (1)              repeated                 repeated; redirects followed (2)
//	retry_after            returned                  repeated (3)             repeated (3)
//	outcome_unknown        returned                  repeated                 -
//	nobody reached         repeated: not sent yet    repeated                 repeated
//
// (1) Refused by a remembered owner of the shard, Publish sends once more through the entry; PublishAsync and Batcher keep no
// copy and do not. (2) Up to three hops, never twice to one broker. (3) After the pause the broker asks for, and not_found
// only for five seconds. A cache read, or that of a counter, whose connection was lost is asked once more; a cache write or an
// addition to a counter never. WatchCache is repeated as Subscribe is.
//
// A Producer repeats like PublishAtLeastOnce, by time only: see ProducerOptions.Patience. Read, OffsetForTime and StateGet are
// questions. PublishIf and Commit are repeated, and redirects followed, while the broker says that nothing happened, and returned
// as soon as the outcome is unknown. So are the settlements of a group, except GroupAck and GroupExtend, which may be done twice and
// are repeated then too; a Consumer repeats all it settles until there is an answer.
//
// Repetition is up to Options.Attempts tries with pauses that grow from 200 ms to 2 s, each a random part of that, and up to
// Options.RetryDeadline. A subscription that was established tries for 30 s, or RetryDeadline. A dead broker is noticed after
// at most seven seconds of silence (transport.ClientIdleTimeout), and one that was killed and is there again within about two while
// requests wait for it, or four where only subscriptions do: where something waits and nothing is heard the broker is asked for a sign of
// life. A call that finds nobody fails as Options.DialTimeout says.
//
// # What it holds
//
// Memory is bounded by options: PublishInflightBytes for publishes and the batches of producers, the send windows for cache requests, the receive windows
// of the connections (Options.ReceiveWindowBytes adds them up), the queues of those subscriptions that have one, and what ConsumeOptions let a Consumer have in hand.
package client
