package client

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// check refuses options that cannot work, with an *ArgumentError.
func (o *Options) check() error {
	bad := func(argument, problem string) error {
		return &ArgumentError{Op: "connect", Argument: argument, Problem: problem}
	}
	tokens := 0
	for _, given := range []bool{o.Token != "", o.TokenProvider != nil, o.TokenSource != nil} {
		if given {
			tokens++
		}
	}
	switch {
	case len(o.Addrs) == 0:
		return bad("Addrs", `is empty; give at least one "host:port"`)
	case o.TenantID == "" || len(o.TenantID) > wire.MaxNameBytes:
		return bad("TenantID", fmt.Sprintf("has %d bytes; 1 to %d are allowed", len(o.TenantID), wire.MaxNameBytes))
	case tokens == 0:
		return bad("Token", "is empty and there is no TokenProvider or TokenSource; give one of them")
	case o.TokenProvider != nil && o.TokenSource != nil:
		return bad("TokenSource", "is given besides TokenProvider; give one of them")
	case o.CAFile != "" && len(o.CAPEM) > 0:
		return bad("CAFile", "is given besides CAPEM; give one of them")
	case min(o.AckTimeout, o.RetryDeadline, o.DialTimeout) < 0:
		return bad("Options", "hold a negative time; use a positive one, or 0 for the default")
	case o.PublishSharding > RoundRobin:
		return bad("PublishSharding", "is none of HashStream, RoundRobin")
	case o.SubQueuePolicy > QueueDropNew:
		return bad("SubQueuePolicy", "is none of QueueBlock, QueueDropNew")
	}
	for _, n := range o.numbers() {
		if n.value < 0 || n.value > n.most {
			return bad(n.name, fmt.Sprintf("is %d; use 1 to %d, or 0 for the default", n.value, n.most))
		}
	}
	return nil
}

// Upper bounds of options: far beyond use, and small enough for what is allocated or added up by them.
const (
	connsMax  = 256                        // half of what a broker admits from one address
	lanesMax  = connsMax * wire.MaxStreams // streams a pool of that size could carry
	queueMax  = 1 << 20
	windowMax = 1 << 40
	triesMax  = 1 << 20
)

type numberOption struct {
	name        string
	value, most int64
}

func (o *Options) numbers() []numberOption {
	return []numberOption{
		{"PublishConns", int64(o.PublishConns), connsMax}, {"EventConns", int64(o.EventConns), connsMax},
		{"CacheConns", int64(o.CacheConns), connsMax}, {"PublishStreams", int64(o.PublishStreams), lanesMax},
		{"CacheStreams", int64(o.CacheStreams), lanesMax}, {"PublishInflightBytes", o.PublishInflightBytes, windowMax},
		{"PublishQueueDepth", int64(o.PublishQueueDepth), laneDepthMax}, {"PublishChunkBytes", int64(o.PublishChunkBytes), wire.MaxPayload},
		{"SubQueueCapacity", int64(o.SubQueueCapacity), queueMax}, {"EventRouterMaxPending", int64(o.EventRouterMaxPending), queueMax},
		{"MaxFrameBytes", int64(o.MaxFrameBytes), wire.MaxPayload}, {"Attempts", int64(o.Attempts), triesMax},
		{"EventConnRecvWindow", int64(o.EventConnRecvWindow), windowMax}, {"EventStreamRecvWindow", int64(o.EventStreamRecvWindow), windowMax},
		{"EventSendWindow", int64(o.EventSendWindow), windowMax}, {"CacheConnRecvWindow", int64(o.CacheConnRecvWindow), windowMax},
		{"CacheStreamRecvWindow", int64(o.CacheStreamRecvWindow), windowMax}, {"CacheSendWindow", int64(o.CacheSendWindow), windowMax},
	}
}
