package client

import "time"

// sentBatch is a batch under way.
type sentBatch struct {
	batch   *openBatch
	pending underWay
}

// underWay is a publish whose outcome may be read once Done is closed.
type underWay interface {
	Done() <-chan struct{}
	outcome() (PublishResult, error)
}

// start puts a batch on its way.
func (b *Batcher) start(batch *openBatch) (underWay, error) {
	if b.opts.Producer == nil {
		p, err := b.client.start(b.ctx, batch.pub)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	p, err := b.opts.Producer.start(b.ctx, batch.pub)
	if err != nil {
		return nil, err
	}
	b.client.chunks.put(batch.buf) // the producer has a copy
	batch.buf = nil
	return p, nil
}

// send is the goroutine that publishes the batches of a shard, in order, and takes their outcomes. It ends when there is
// nothing left.
func (q *collector) send() {
	var under fifo[sentBatch]
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		batch, linger, over := q.next(under.len())
		switch {
		case over:
			return
		case batch != nil:
			q.publish(batch, &under)
			continue
		}
		var answered <-chan struct{} // never, while none is under way
		if under.len() > 0 {
			answered = under.at(0).pending.Done()
		}
		var lingered <-chan time.Time
		if linger > 0 {
			timer.Reset(linger)
			lingered = timer.C
		}
		select {
		case <-answered:
			oldest := under.remove(0)
			result, err := oldest.pending.outcome()
			q.settle(oldest.batch, result, err)
		case <-lingered:
		case <-q.wake:
		}
	}
}

// publish sends one batch. It waits for what publishes wait for, until the batcher is given up.
func (q *collector) publish(batch *openBatch, under *fifo[sentBatch]) {
	b := q.batcher
	batch.pub.count, batch.pub.bytes = batch.count, batch.bytes()
	size := int64(len(batch.buf.bytes))
	if b.ctx.Err() != nil {
		q.settle(batch, PublishResult{}, b.closedError())
		return
	}
	pending, err := b.start(batch)
	if err != nil {
		if b.ctx.Err() != nil {
			err = b.closedError()
		}
		q.settle(batch, PublishResult{}, err)
		return
	}
	if batch.held > size { // the buffer has done its service; its bytes are under way
		b.budget.give(&q.share, batch.held-size)
		batch.held = size
	}
	under.push(sentBatch{batch, pending})
}
