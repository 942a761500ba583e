package rawquic

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzOrder reads whatever a stranger may begin a stream with: an order that says the same when it is written again, or an error.
func FuzzOrder(f *testing.F) {
	f.Add(Order{Role: Sink, Unit: 1 << 40, Group: 3}.append(nil))
	f.Add(Order{Role: Subscribe, Group: 1<<64 - 1}.append(nil))
	f.Add([]byte("RAW1"))
	f.Add(append([]byte("FLX1"), make([]byte, OrderBytes)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := readOrder(bytes.NewReader(data))
		var wrong *OrderError
		switch {
		case err == nil:
			if again, err := readOrder(bytes.NewReader(o.append(nil))); err != nil || again != o {
				t.Fatalf("%+v became %+v, %v", o, again, err)
			}
		case len(data) < OrderBytes:
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d bytes: %v", len(data), err)
			}
		case !errors.As(err, &wrong):
			t.Fatalf("got %v", err)
		}
	})
}
