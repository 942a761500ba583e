package wire

import "testing"

func TestLimitsFitTogether(t *testing.T) {
	relations := []struct {
		holds bool
		why   string
	}{
		{MaxPreauthPayload < MaxPayload, "a stream gains room by authenticating"},
		{MaxTokenBytes+MaxNameBytes+1024 < MaxPreauthPayload, "an auth with the largest token fits before auth"},
		{FirstBodyAllocation >= MaxPreauthPayload, "a frame before auth never needs a second allocation"},
		{FirstBodyAllocation < MaxPayload, "a header alone does not reserve the largest payload"},
		{MaxStreams*FirstBodyAllocation <= NodePublishBytes, "headers on all streams of a connection cost no more than the node budget"},
		{ConnPublishBytes >= MaxPayload, "the largest frame fits an idle connection"},
		{NodePublishBytes >= 2*ConnPublishBytes, "one connection cannot take the whole node"},
		{PreauthStreamsRead <= PreauthStreamsMax && PreauthStreamsMax < MaxStreams, "unauthenticated streams stay few"},
		{PreauthStreamsMax*MaxPreauthPayload <= ConnPublishBytes, "an unknown peer holds less than a known one"},
		{MaxNameBytes < MaxKeyBytes && MaxKeyBytes <= 1<<16-1, "names and keys fit their u16 lengths"},
		{MaxPublisherBytes <= 1<<8-1, "a publisher fits its u8 length"},
		{MaxErrorTextBytes <= 1<<16-1, "an error text fits its u16 length"},
		{EventBatchMaxBytes < MaxPayload/4*3, "an event batch fits a frame in base64 too"},
		{SubscriberQueueCapacity <= SubscriberQueueCapacityMax, "the default queue is one a reader may ask for"},
		{SubscriberQueueBytes >= 2*EventBatchMaxBytes, "a reader's queue holds more than the batch being written"},
		{NodeReaderBytes >= 2*SubscriberQueueBytes, "one slow reader does not use up what is there for all"},
		{MaxSubscriptionsPerConnTotal >= MaxSubscriptionsPerConn, "a connection holds what one of its principals may have"},
		{EventBatchMaxEvents <= ClientQueue, "one frame does not overflow a client's queue of events"},
		{PublishWindow >= 64, "the reference client keeps 64 batches in flight"},
		{MaxStreams >= 41, "a Python client opens 41 streams at once"},
		{MaxSubscriptionsPerConn > MaxStreams, "subscriptions are bounded by their own limit, not by control streams"},
		{AuthTimeoutMillis*1000 > 100*EventBatchMaxDelayMicros, "delays of delivery are not on the scale of timeouts"},
		{MaxJSONDepth > 4, "the deepest message of the protocol has 4 levels"},
		{InspectPage <= MaxInspectPage, "the default page is one that may be asked for"},
		{MaxTypeBytes > 23, "the longest type has 23 bytes"},
	}
	for _, r := range relations {
		if !r.holds {
			t.Errorf("broken: %s", r.why)
		}
	}
}

func TestTypesOfTheProtocolFitTheirLimit(t *testing.T) {
	for _, row := range requestTable {
		if len(row.typ) > 23 {
			t.Errorf("%s has %d bytes", row.typ, len(row.typ))
		}
	}
}
