package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire"
)

// mission 198
func TestTheSumsOfWindowsAreTheClients(t *testing.T) {
	page := pages(t)["performance-tuning.md"]
	base := client.Options{}
	for name, o := range map[string]client.Options{
		"`Options{}`, `Shared()`": base, "`LowLatency()`": base.LowLatency(), "`Pooled()`": base.Pooled(), "`HighThroughput()`": base.HighThroughput(),
	} {
		row := "| " + name + " |"
		_, line, ok := strings.Cut(page, row)
		line, _, _ = strings.Cut(line, "\n")
		want := fmt.Sprintf("| %d MiB |", o.ReceiveWindowBytes()>>20)
		if !ok || !strings.HasSuffix(line, want) {
			t.Errorf("the row of %s is %q, want it to end with %s", name, line, want)
		}
	}
	if base.Shared().ReceiveWindowBytes() != base.ReceiveWindowBytes() {
		t.Error("Shared is not what the zero options mean")
	}
}

func TestTheDefaultsOfDeliveryAreInForce(t *testing.T) {
	page := pages(t)["performance-tuning.md"]
	for _, row := range []string{
		fmt.Sprintf("| `FELIX_EVENT_BATCH_MAX_EVENTS` | %d |", wire.EventBatchMaxEvents),
		fmt.Sprintf("| `FELIX_EVENT_BATCH_MAX_BYTES` | %d |", wire.EventBatchMaxBytes),
		fmt.Sprintf("| `FELIX_EVENT_BATCH_MAX_DELAY_US` | %d |", wire.EventBatchMaxDelayMicros),
		fmt.Sprintf("| `FELIX_SUBSCRIBER_QUEUE_CAPACITY` | %d batches |", wire.SubscriberQueueCapacity),
		fmt.Sprintf("| `FELIX_SUB_QUEUE_MAX_BYTES` | %d MiB |", wire.SubscriberQueueBytes>>20),
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page has no row %s", row)
		}
	}
}
