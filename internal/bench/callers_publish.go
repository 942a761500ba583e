package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/storage/vfs"
)

// ProducerPlan is a set of producers of single records, all in one client: each publishes again when it was answered.
type ProducerPlan struct {
	Options           client.Options // connections and streams are set from below
	Namespace, Stream string
	Payload           int // bytes of a record
	Callers           int
	Conns             int
}

// OpenProducers connects.
func OpenProducers(ctx context.Context, p ProducerPlan) (*Callers, error) {
	o := p.Options
	o.PublishConns, o.PublishStreams = p.Conns, p.Conns
	c, err := client.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	callers := &Callers{Close: c.Close}
	for range p.Callers {
		callers.All = append(callers.All, &producer{client: c, plan: &p, records: newRecords(Shape{Payload: p.Payload, Batch: 1})})
	}
	return callers, nil
}

type producer struct {
	client  *client.Client
	plan    *ProducerPlan
	records *records
}

// Call implements Caller.
func (p *producer) Call(ctx context.Context, n uint64) error {
	payload := p.records.fill(Batch{First: n})[0]
	_, err := p.client.Publish(ctx, p.plan.Namespace, p.plan.Stream, payload, client.WithAck(client.AckRecord))
	return orRefusal(err)
}

// BarePlan is one writer that appends to a file of its own and syncs it, and does nothing else: what a broker's disk gives to anybody.
type BarePlan struct {
	Folder string        // on the broker's disk
	Bytes  int           // of one write
	Every  time.Duration // between two syncs; 0: each write is synced
}

// OpenBare makes the file, which Close removes.
func OpenBare(_ context.Context, p BarePlan) (*Callers, error) {
	fail := func(err error) (*Callers, error) {
		return nil, fmt.Errorf("write beside the broker in %s: %w", p.Folder, err)
	}
	files, err := vfs.NewOS(p.Folder)
	if err != nil {
		return fail(err)
	}
	name := fmt.Sprintf("felixctl-bench-%d", time.Now().UnixNano())
	file, err := files.Create(name)
	if err != nil {
		return fail(err)
	}
	w := &bareWriter{file: file, every: p.Every, bytes: make([]byte, p.Bytes), synced: time.Now()}
	return &Callers{All: []Caller{w}, Close: func(context.Context) error {
		return errors.Join(file.Close(), files.Remove(name))
	}}, nil
}

type bareWriter struct {
	file   vfs.File
	every  time.Duration
	bytes  []byte
	at     int64
	synced time.Time
}

// Call implements Caller.
func (w *bareWriter) Call(context.Context, uint64) error {
	if _, err := w.file.WriteAt(w.bytes, w.at); err != nil {
		return err
	}
	w.at += int64(len(w.bytes))
	if w.every > 0 && time.Since(w.synced) < w.every {
		return nil
	}
	err := w.file.Sync()
	w.synced = time.Now()
	return err
}

// OpenEchoThenBare is callers that get an echo and then write and sync, each as those of OpenEcho and OpenBare do: what a durable publish
// can't do without, in the order in which it needs them. A disk that is asked again at once answers faster than one that is asked after a
// message has come, so that this takes longer than the sum of both alone.
func OpenEchoThenBare(ctx context.Context, echo EchoPlan, bare BarePlan) (*Callers, error) {
	first, err := OpenEcho(ctx, echo)
	if err != nil {
		return nil, err
	}
	second, err := OpenBare(ctx, bare)
	if err != nil {
		return nil, errors.Join(err, first.Close(ctx))
	}
	return &Callers{All: []Caller{inTurn{first.All[0], second.All[0]}}, Close: func(ctx context.Context) error {
		return errors.Join(first.Close(ctx), second.Close(ctx))
	}}, nil
}

// inTurn is callers one after the other.
type inTurn []Caller

// Call implements Caller.
func (c inTurn) Call(ctx context.Context, n uint64) error {
	for _, one := range c {
		if err := one.Call(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Disk is a folder on the disk of a broker's logs.
type Disk string

// DiskOf is the folder of a broker's data, which the file with its context lies in.
func DiskOf(contextFile string) Disk { return Disk(filepath.Dir(contextFile)) }
