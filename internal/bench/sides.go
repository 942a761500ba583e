package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/rawquic"
	"github.com/felixd/felixd/transport"
)

// Felixd is the side that is measured.
type Felixd struct {
	Options   client.Options // address, tenant, token, trust; connections and streams are set by each experiment
	Namespace string
	Meter     Meter // nil: nobody tells what the broker used and dropped
}

// tls is what the client would use.
func (f Felixd) tls() (*tls.Config, error) {
	o := transport.ClientTLSOptions{CAPEM: f.Options.CAPEM, ServerName: f.Options.ServerName, OfferALPN: f.Options.OfferALPN}
	if f.Options.CAFile != "" {
		pem, err := os.ReadFile(f.Options.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		o.CAPEM = pem
	}
	if o.ServerName == "" {
		o.ServerName = client.DefaultServerName
	}
	return transport.ClientTLS(o)
}

// keys asks the broker for what ShardKeys needs.
func (f Felixd) keys(ctx context.Context, stream string, n int) ([][]byte, error) {
	if n <= 1 {
		return ShardKeys(ctx, nil, f.Namespace, stream, n)
	}
	c, err := client.Connect(ctx, f.Options)
	if err != nil {
		return nil, err
	}
	keys, err := ShardKeys(ctx, c, f.Namespace, stream, n)
	return keys, errors.Join(err, c.Close(ctx))
}

// Shards is how many shards a stream has.
func (f Felixd) Shards(ctx context.Context, stream string) (int, error) {
	c, err := client.Connect(ctx, f.Options)
	if err != nil {
		return 0, err
	}
	shards, err := c.StreamShards(ctx, f.Namespace, stream)
	return int(shards.Count), errors.Join(err, c.Close(ctx))
}

// Raw is the side that it is compared with. A nil *Raw leaves that side out.
type Raw struct {
	Process *rawquic.Process
	groups  atomic.Uint64 // that were used
}

func (r *Raw) meter() Meter { return RawMeter{Process: r.Process} }

// inFlight is how many payload bytes fit under way: the receive windows of a broker with default settings, and what our client keeps
// on top.
func inFlight(conns, streams int) float64 {
	w := transport.DefaultServerWindows()
	perConn := min(float64(w.ConnMax), float64(w.StreamMax)*float64(max(1, streams/max(1, conns))))
	return perConn*float64(conns) + client.DefaultPublishInflightBytes
}

func settingOf(name string, value any) Setting { return Setting{Name: name, Value: fmt.Sprint(value)} }

func (s Shape) settings() []Setting {
	return []Setting{settingOf("payload", fmt.Sprintf("%d B", s.Payload)), settingOf("batch", s.Batch)}
}
