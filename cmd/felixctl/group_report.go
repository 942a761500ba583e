package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/client"
)

// rateTime is the shortest time over which a rate is taken.
const rateTime = time.Second

// progress is the line for people at a time. One goroutine calls it.
func (w *worker) progress(now time.Time, s client.ConsumerStats) string {
	if d := now.Sub(w.sampled); d >= rateTime {
		w.rate = float64(s.Acked-w.acked) / d.Seconds()
		w.sampled, w.acked = now, s.Acked
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d acked, %.1f/s, %d in flight, %d put off, %d failed, %d given up", s.Acked, w.rate, s.Running, w.counts[postponed], w.counts[failed], w.counts[hopeless])
}

// say tells people something, over the progress line if there is one.
func (w *worker) say(format string, args ...any) {
	w.app.note("%s", w.app.clearLine()+fmt.Sprintf(format, args...))
}

// clearLine takes a progress line away that what follows would be written behind.
func (a *app) clearLine() string {
	if a.sys.stderrTerminal && !a.flags.quiet {
		return "\r\x1b[K"
	}
	return ""
}

// tell takes what the consumer reports. What commands came to has been told, and what ends the work is the error of this command: neither is
// told twice.
func (w *worker) tell(m *client.Message, err error) {
	var e *execution
	switch {
	case m == nil && w.ends(err), errors.As(err, &e):
	case w.app.flags.json:
		line := troubleLine{Event: "trouble", groupName: w.group, Error: err.Error()}
		if m != nil {
			line.place = &place{Shard: m.Shard, Offset: m.Offset}
		}
		if err := writeJSON(w.app.sys.stdout, line); err != nil {
			w.fail(err)
		}
	default:
		w.say("%v", err)
	}
}

// ends reports whether the consumer has ended by itself because of err. It is asked by goroutines that a consumer starts last, so that the
// wait is short.
func (w *worker) ends(err error) bool {
	<-w.joined
	return w.consumer != nil && errors.Is(w.consumer.Err(), err)
}

// troubleLine is something that went wrong and is tried again, or a settlement that was refused, in JSON.
type troubleLine struct {
	Event string `json:"event"` // trouble
	groupName
	*place        // of a settlement
	Error  string `json:"error"`
}

// workedLine is a command that ended, in JSON.
type workedLine struct {
	Event string `json:"event"` // record
	groupName
	place
	Attempts uint32  `json:"attempts"`
	Outcome  outcome `json:"outcome"`
	Exit     *int    `json:"exit,omitempty"` // absent when it did not exit by itself
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty"`
}

// print tells what a command came to: people in few words, and nothing if it was planned.
func (w *worker) print(e *execution) error {
	if e.outcome != succeeded && e.outcome != postponed {
		w.say("%v", e)
	}
	if !w.app.flags.json {
		return nil
	}
	line := workedLine{Event: "record", groupName: w.group, place: place{Shard: e.message.Shard, Offset: e.message.Offset}, Attempts: e.message.Attempts, Outcome: e.outcome, Seconds: e.took.Seconds()}
	if e.code >= 0 {
		line.Exit = &e.code
	}
	if e.outcome != succeeded {
		line.Error = e.Error()
	}
	return writeJSON(w.app.sys.stdout, line)
}

// workSummary is what came of all, in JSON. The settlements are those that the broker has answered.
type workSummary struct {
	Event string `json:"event"` // summary
	groupName
	Seconds      float64 `json:"seconds"`
	Received     uint64  `json:"received"`
	Redelivered  uint64  `json:"redelivered"` // of those, handed out before
	Acked        uint64  `json:"acked"`
	Nacked       uint64  `json:"nacked"`
	DeadLettered uint64  `json:"dead_lettered"` // given up by a command; not those that were delivered too often
	GivenBack    uint64  `json:"given_back"`    // without a command, or not to its end
	PutOff       uint64  `json:"put_off"`       // commands that said not now
	Failed       uint64  `json:"failed"`        // commands that failed
	Stale        uint64  `json:"stale"`         // settlements that came too late
}

// summary tells what came of all.
func (w *worker) summary(s client.ConsumerStats) error {
	w.mu.Lock()
	out := workSummary{
		Event: "summary", groupName: w.group, Seconds: time.Since(w.began).Seconds(), Received: s.Received, Redelivered: s.Redelivered, Acked: s.Acked, Nacked: s.Nacked,
		DeadLettered: s.DeadLettered, GivenBack: s.GivenBack, PutOff: w.counts[postponed], Failed: w.counts[failed], Stale: s.Stale,
	}
	w.mu.Unlock()
	if w.app.flags.json {
		return writeJSON(w.app.sys.stdout, out)
	}
	w.say("%d acked, %d given back (%d put off, %d failed), %d given up (exit code 65), in %v", out.Acked, out.Nacked+out.GivenBack, out.PutOff, out.Failed, out.DeadLettered,
		time.Since(w.began).Round(time.Millisecond))
	return nil
}
