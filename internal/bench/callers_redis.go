package bench

import (
	"context"
	"errors"
	"fmt"
)

// RedisCalls is a set of callers towards a redis-server.
type RedisCalls struct {
	Server  *Redis
	Op      CacheOp
	Payload int // bytes of a value
	Keys    int // that are used in turn
	Callers int
	Conns   int // at most as many as callers; several callers of one connection do not wait for each other
}

// OpenRedis connects, and for Hit and Put writes all keys once.
func OpenRedis(ctx context.Context, p RedisCalls) (_ *Callers, err error) {
	var conns redisConns
	defer func() {
		if err != nil {
			err = errors.Join(err, conns.close(ctx))
		}
	}()
	for range p.Conns {
		conn, err := dialRedis(ctx, ctx, p.Server.addr, p.Server.config)
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
	}
	names, value := cacheKeys(p.Op, p.Keys), newRecords(Shape{Payload: p.Payload, Batch: 1}).payloads[0]
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = []byte(name)
	}
	callers := &Callers{Close: conns.close}
	for i := range p.Callers {
		callers.All = append(callers.All, &redisCaller{conn: conns[i%len(conns)], op: p.Op, keys: keys, value: value, at: i * p.Keys / p.Callers, room: make([]byte, max(redisLine, p.Payload))})
	}
	if p.Op == Miss {
		return callers, nil
	}
	return callers, fill(ctx, p.Callers, p.Keys, func(_ context.Context, caller, key int) error {
		return callers.All[caller].(*redisCaller).put(keys[key])
	})
}

type redisConns []*redisConn

func (all redisConns) close(context.Context) error {
	var err error
	for _, c := range all {
		err = errors.Join(err, c.close())
	}
	return err
}

// redisCaller asks for the keys in turn; callers begin at different ones.
type redisCaller struct {
	conn  *redisConn
	op    CacheOp
	keys  [][]byte
	value []byte
	at    int
	room  []byte
}

// Call implements Caller.
func (c *redisCaller) Call(_ context.Context, n uint64) error {
	key := c.keys[(uint64(c.at)+n)%uint64(len(c.keys))]
	if c.op == Put {
		return orRedisRefusal(c.put(key))
	}
	value, found, err := c.conn.do(c.room, []byte("GET"), key)
	switch {
	case err != nil:
		return orRedisRefusal(err)
	case found != (c.op == Hit):
		return fmt.Errorf("get %q for a %s from redis-server: found is %v", key, c.op, found)
	case found && len(value) != len(c.value):
		return fmt.Errorf("get %q from redis-server: %d bytes, want %d", key, len(value), len(c.value))
	}
	return nil
}

func (c *redisCaller) put(key []byte) error {
	_, _, err := c.conn.do(c.room, []byte("SET"), key, c.value)
	return err
}

// orRedisRefusal makes a refusal of what the server said no to.
func orRedisRefusal(err error) error {
	var no *RedisError
	if errors.As(err, &no) {
		return &RefusedError{err}
	}
	return err
}
