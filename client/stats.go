package client

import (
	"sync/atomic"
	"time"
)

// Stats are the counters of a client since Connect. All only grow.
type Stats struct {
	FramesOut, FramesIn uint64 // frames on publish and cache streams, and frames of events
	BytesOut            uint64 // of publish and cache frames
	PublishBatches      uint64 // publishes sent, one frame each
	PublishRecords      uint64 // records in them
	Forwarded           uint64 // publishes that a broker passed on to the owner of the shard: mis-aimed ones
	Cancelled           uint64 // publishes whose caller gave up waiting after they were on their way
	Events              uint64 // events received
	Dropped             uint64 // events that the queues of QueueDropNew dropped
	Retries             uint64 // tries that failed and were followed by another
	Resumes             uint64 // event streams that took over from a lost one
	Connects            uint64 // connections made
	Disconnects         uint64 // connections that ended
}

type counters struct {
	framesOut, framesIn, bytesOut           atomic.Uint64
	publishBatches, publishRecords          atomic.Uint64
	forwarded, cancelled                    atomic.Uint64
	events, dropped                         atomic.Uint64
	retries, resumes, connects, disconnects atomic.Uint64
}

// Stats returns the counters. It is cheap enough to be called at each scrape.
func (c *Client) Stats() Stats {
	s := &c.stats
	return Stats{
		FramesOut: s.framesOut.Load(), FramesIn: s.framesIn.Load(), BytesOut: s.bytesOut.Load(),
		PublishBatches: s.publishBatches.Load(), PublishRecords: s.publishRecords.Load(),
		Forwarded: s.forwarded.Load(), Cancelled: s.cancelled.Load(), Events: s.events.Load(), Dropped: s.dropped.Load(),
		Retries: s.retries.Load(), Resumes: s.resumes.Load(), Connects: s.connects.Load(), Disconnects: s.disconnects.Load(),
	}
}

// ConnectionStats is an open connection in numbers.
type ConnectionStats struct {
	ConnectionInfo
	Busy int // streams with requests under way, and open subscriptions

	RTT, MinRTT              time.Duration // smoothed, and the least seen
	BytesSent, BytesReceived uint64        // UDP payload
	PacketsSent, PacketsLost uint64
	CongestionWindow         uint64 // bytes that may be in flight
}

// Connections describes the open connections, in the order they were made.
func (c *Client) Connections() []ConnectionStats {
	links := c.life.open()
	all := make([]ConnectionStats, len(links))
	for i, l := range links {
		q := l.conn.ConnectionStats()
		all[i] = ConnectionStats{
			ConnectionInfo: l.info(), Busy: int(l.busy.Load()), RTT: q.SmoothedRTT, MinRTT: q.MinRTT,
			BytesSent: q.BytesSent, BytesReceived: q.BytesReceived,
			PacketsSent: q.PacketsSent, PacketsLost: q.PacketsLost, CongestionWindow: q.CongestionWindow,
		}
	}
	return all
}

func (l *link) info() ConnectionInfo {
	return ConnectionInfo{Addr: l.addr, Kind: l.kind.String(), Since: l.since}
}
