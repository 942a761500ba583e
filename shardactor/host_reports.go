package shardactor

import (
	"sync"

	"github.com/felixd/felixd/wire/id"
)

// reportKind is what a durable shard, or the end of its files, has to tell the host.
type reportKind uint8

const (
	// shardServes: its log is open and its generation saved. Once per incarnation.
	shardServes reportKind = iota + 1
	// shardDamaged: what is stored cannot be used.
	shardDamaged
	// shardPoisoned: a sync failed; only a new process can go on.
	shardPoisoned
	// filesClosed: its files were closed. filesAside: they were taken out of the way as well.
	filesClosed
	filesAside
)

// report is one of these. err is nil, or what went wrong.
type report struct {
	what   reportKind
	of     *hosted
	shard  id.ShardID // the incarnation
	handle Handle     // of one that serves; who it is the host adds
	id     id.LogID
	err    error
}

// reports is where they wait. The host's mailbox holds one message that says to look, however many there are; and there are at most
// five of one incarnation.
type reports struct {
	mu   sync.Mutex
	ring func()
	rung bool
	list []report
}

func (r *reports) put(x report) {
	r.mu.Lock()
	r.list = append(r.list, x)
	call := !r.rung
	r.rung = true
	ring := r.ring
	r.mu.Unlock()
	if call {
		ring()
	}
}

func (r *reports) take() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.rung, r.list = false, nil
	return list
}

// look tells the host that there are reports.
type look struct{}

func (*look) hostMessage() {}
