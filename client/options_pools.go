package client

import (
	"github.com/felixd/felixd/transport"
)

// Sizes of the pools for those who want connections apart for each kind of traffic: what Pooled sets.
const (
	DefaultEventConnPool         = 8 // event_conn_pool
	DefaultCacheConnPool         = 8 // cache_conn_pool
	DefaultPublishConnPool       = 4 // publish_conn_pool
	DefaultPublishStreamsPerConn = 2 // publish_streams_per_conn
	DefaultCacheStreamsPerConn   = 4 // cache_streams_per_conn
)

// Defaults of the windows, in bytes.
const (
	DefaultEventConnRecvWindow   = 256 << 20
	DefaultEventStreamRecvWindow = 64 << 20
	DefaultEventSendWindow       = 256 << 20
	DefaultCacheConnRecvWindow   = 256 << 20
	DefaultCacheStreamRecvWindow = 64 << 20
	DefaultCacheSendWindow       = 256 << 20
)

// withPools returns o with other pools.
func (o Options) withPools(event, cache, publish, publishStreams, cacheStreams int) Options {
	o.EventConns, o.CacheConns, o.PublishConns = event, cache, publish
	o.PublishStreams, o.CacheStreams = max(publish, 1)*publishStreams, max(cache, 1)*cacheStreams
	return o
}

// Shared returns o with one connection for everything, which is what the zero value means: right for most programs. One
// connection is served by one core; bulk publishers and readers want more.
func (o Options) Shared() Options {
	return o.withPools(0, 0, 0, DefaultPublishStreams, DefaultCacheStreams)
}

// Pooled returns o with pools of 8 event, 8 cache and 4 publish connections, 2 publish and 4 cache streams on each.
func (o Options) Pooled() Options {
	return o.withPools(DefaultEventConnPool, DefaultCacheConnPool, DefaultPublishConnPool, DefaultPublishStreamsPerConn, DefaultCacheStreamsPerConn)
}

// LowLatency returns o with fewer of everything, so that what is used stays warm: 4 event connections, 4 for the cache with 2
// streams each, 2 for publishes with 1.
func (o Options) LowLatency() Options { return o.withPools(4, 4, 2, 1, 2) }

// HighThroughput returns o with 16 event connections, 16 for the cache with 8 streams each, 8 for publishes with 4.
func (o Options) HighThroughput() Options { return o.withPools(16, 16, 8, 4, 8) }

func (o Options) withWindows() Options {
	o.EventConnRecvWindow = orDefault(o.EventConnRecvWindow, DefaultEventConnRecvWindow)
	o.EventStreamRecvWindow = orDefault(o.EventStreamRecvWindow, min(DefaultEventStreamRecvWindow, o.EventConnRecvWindow))
	o.EventSendWindow = orDefault(o.EventSendWindow, DefaultEventSendWindow)
	o.CacheConnRecvWindow = orDefault(o.CacheConnRecvWindow, DefaultCacheConnRecvWindow)
	o.CacheStreamRecvWindow = orDefault(o.CacheStreamRecvWindow, min(DefaultCacheStreamRecvWindow, o.CacheConnRecvWindow))
	o.CacheSendWindow = orDefault(o.CacheSendWindow, DefaultCacheSendWindow)
	return o
}

// carries are the kinds of traffic on a kind of connection. Defaults are filled in, or do not matter.
func (o *Options) carries(kind linkKind) (publish, event, cache bool) {
	shared := kind == sharedLink
	return kind == publishLink || shared && o.PublishConns == 0,
		kind == eventLink || shared && o.EventConns == 0,
		kind == cacheLink || shared && o.CacheConns == 0
}

// windows are the receive windows of a kind of connection: the largest of what it carries. Answers to publishes need little.
func (o *Options) windows(kind linkKind) (transport.Windows, error) {
	w := transport.DefaultServerWindows()
	_, event, cache := o.carries(kind)
	if !event && !cache {
		return w, nil
	}
	var stream, conn uint64
	if event {
		stream, conn = o.EventStreamRecvWindow, o.EventConnRecvWindow
	}
	if cache {
		stream, conn = max(stream, o.CacheStreamRecvWindow), max(conn, o.CacheConnRecvWindow)
	}
	w, err := transport.DefaultClientWindows().WithMax(stream, conn)
	w.ConnInitial = w.ConnMax // whole from the start, also where it is larger: see DefaultClientWindows
	return w, err
}

// sendWindow is the send window of a kind of connection: the largest of what it carries.
func (o *Options) sendWindow(kind linkKind) int64 {
	var w uint64
	_, event, cache := o.carries(kind)
	if event {
		w = o.EventSendWindow
	}
	if cache {
		w = max(w, o.CacheSendWindow)
	}
	return int64(max(w, 1))
}

// checkWindows refuses windows that contradict each other.
func (o *Options) checkWindows() error {
	for _, kind := range []linkKind{sharedLink, publishLink, eventLink, cacheLink} {
		if _, err := o.windows(kind); err != nil {
			return &ArgumentError{Op: "connect", Argument: "windows of " + kind.String() + " connections", Problem: "are wrong: " + err.Error()}
		}
	}
	return nil
}

// ReceiveWindowBytes is the most that brokers can make this client hold in receive windows, in bytes, while it talks to one
// broker: for each pool its size times its connection window. In a cluster it is that much for each broker the client has
// connections to. With the defaults the shared connection may hold 256 MiB; Pooled adds up to 8 x 256 MiB for events,
// 8 x 256 MiB for the cache and 4 x 8 MiB for answers to publishes, 4 GiB and 32 MiB in all; HighThroughput to twice that.
// The window of a stream starts at 512 KiB and grows only while it is read, so that a connection holds that much for each subscription
// that is not. On top come PublishInflightBytes, up to the
// send windows for requests of the cache, and for each QueueDropNew subscription wire.SubscriberQueueBytes.
func (o Options) ReceiveWindowBytes() uint64 {
	o = o.withWindows()
	var sum uint64
	sizes := [linkKinds]int{sharedLink: 1, publishLink: o.PublishConns, eventLink: o.EventConns, cacheLink: o.CacheConns}
	for kind, size := range sizes {
		publish, event, cache := o.carries(linkKind(kind))
		if !publish && !event && !cache {
			continue // a shared connection that nothing uses is never made
		}
		if w, err := o.windows(linkKind(kind)); err == nil {
			sum += w.Total(size)
		}
	}
	return sum
}
