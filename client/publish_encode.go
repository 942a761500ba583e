package client

import "github.com/felixd/felixd/wire"

// encode makes the frame for a lane: binary where the broker reads it, JSON elsewhere.
func (p *publication) encode(l *lane, id uint64, out *outbox) error {
	flags := p.flags()
	var err error
	if l.control.grant.Flags.Has(flags) {
		err = p.encodeBinary(l.client, id, flags, out)
	} else {
		err = p.encodeJSON(l.client, id, out)
	}
	if err == nil {
		l.client.stats.publishBatches.Add(1)
		l.client.stats.publishRecords.Add(uint64(p.count))
		p.payloads, p.batch, p.key = nil, nil, nil // whoever keeps the publish for its outcome does not keep its bytes
	}
	return err
}

func (p *publication) flags() wire.Flags {
	flags := wire.FlagPublishBatch
	if p.ack != AckNone {
		flags |= wire.FlagPublishAcked
	}
	if p.keyed {
		flags |= wire.FlagPublishKeyed
	}
	return flags
}

// head is the frame without its region.
func (p *publication) head(c *Client, id uint64, flags wire.Flags) wire.Publish {
	return wire.Publish{
		Flags: flags, RequestID: id, Ack: p.ack.mode(), Key: p.key,
		Tenant: c.tenant, Namespace: []byte(p.namespace), Stream: []byte(p.stream), Count: uint32(p.count),
	}
}

// headBytes is how long the binary frame is without its region, its header included.
func (p *publication) headBytes(c *Client) int {
	n := wire.HeaderSize + 2 + len(c.tenant) + 2 + len(p.namespace) + 2 + len(p.stream) + 4
	if p.ack != AckNone {
		n += 8 + 1
	}
	if p.keyed {
		n += 2 + len(p.key)
	}
	return n
}

func (p *publication) encodeBinary(c *Client, id uint64, flags wire.Flags, out *outbox) error {
	size := p.headBytes(c) + p.bytes
	if n := size - wire.HeaderSize; n > c.opts.MaxFrameBytes {
		return tooManyBytes.error(p.String(), n, c.opts.MaxFrameBytes)
	}
	head := p.head(c, id, flags)
	header := wire.Header{Flags: flags, Length: uint32(size - wire.HeaderSize)}
	if p.batch != nil {
		p.batch.finish(&head, header, out)
		return nil
	}
	ch := out.room(size)
	start := len(ch.bytes)
	ch.bytes = wire.AppendPublish(ch.bytes, &head)
	for _, b := range p.payloads {
		ch.bytes = wire.AppendPayload(ch.bytes, b)
	}
	wire.PutHeader(ch.bytes[start:], header) // with the region counted in
	return nil
}

func (p *publication) encodeJSON(c *Client, id uint64, out *outbox) error {
	message := wire.PublishBatchMessage{
		TenantID: c.opts.TenantID, Namespace: p.namespace, Stream: p.stream,
		Records: p.region(), Count: uint32(p.count), Ack: p.ack.mode(),
	}
	if p.ack != AckNone {
		message.RequestID = wire.Some(id)
	}
	if p.keyed {
		message.Key = wire.Some(p.key)
	}
	return out.takeJSON(p.String, &message, c.opts.MaxFrameBytes, tooManyBytes)
}

func (p *publication) region() wire.Region {
	if p.batch != nil {
		return p.batch.region()
	}
	region := make(wire.Region, 0, p.bytes)
	for _, b := range p.payloads {
		region = wire.AppendPayload(region, b)
	}
	return region
}
