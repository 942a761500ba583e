package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/felixd/felixd/shardactor/route"
)

// The words of the commands that a broker's process takes, one line each.
const (
	wordLook    = "look"
	wordCollect = "collect" // look after a forced collection
	wordFault   = "fault"   // see faultOrder
	wordDrain   = "drain"   // as before an orderly stop; returns when it is done
	wordAssign  = "assign"  // see assign
)

// Fault says what to do to which actor.
type Fault struct {
	Do     string // crash, pause, slow, heal
	Stream string // whose shard it is; empty: the host of all shards, which keeps the route table
	Shard  uint32
	By     time.Duration // of slow: what each turn waits
	For    time.Duration // of pause and slow
}

// perform carries out one command and tells what the process holds then.
func (b *process) perform(command string) State {
	word, argument, _ := strings.Cut(command, " ")
	var err error
	switch word {
	case wordLook:
	case wordCollect:
		runtime.GC() // finalizers and pools give back with the second
		runtime.GC()
		debug.FreeOSMemory()
	case wordFault:
		err = b.fault(argument)
	case wordDrain:
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		err = b.node.Drain(ctx)
		cancel()
	case wordAssign:
		var all []Resource
		if err = json.Unmarshal([]byte(argument), &all); err == nil {
			b.assign(all)
		}
	default:
		if b.hooks.Perform == nil {
			err = fmt.Errorf("there is no command %q", word)
			break
		}
		b.hooks.Perform(word, argument)
	}
	s := b.state()
	if err != nil {
		s.Problem = err.Error()
	}
	return s
}

// fault uses the node's own door for faults.
func (b *process) fault(argument string) error {
	var f Fault
	if err := json.Unmarshal([]byte(argument), &f); err != nil {
		return err
	}
	path, err := b.path(f)
	if err != nil {
		return err
	}
	door := b.node.System.Faults()
	switch f.Do {
	case "crash":
		return door.Crash(path)
	case "pause":
		return door.Pause(path, f.For)
	case "slow":
		return door.Slow(path, f.By, f.For)
	case "heal":
		return door.Heal(path)
	}
	return fmt.Errorf("there is no fault %q", f.Do)
}

// path is the actor that a fault is meant for. A shard that has just failed is waited for: it is counted as there again, and its successor gets into
// the table, a moment after each other.
func (b *process) path(f Fault) (path string, err error) {
	for late := time.Now().Add(Patience); ; After(time.Millisecond) {
		if path, err = b.pathNow(f); err == nil || time.Now().After(late) {
			return path, err
		}
	}
}

func (b *process) pathNow(f Fault) (string, error) {
	if f.Stream == "" {
		return "shards", nil
	}
	e := b.node.Table.Get(route.Name{Kind: route.Stream, Tenant: Tenant, Namespace: Namespace, Name: f.Stream})
	if e == nil {
		return "", fmt.Errorf("there is no stream %q", f.Stream)
	}
	target, ok := e.Shard(f.Shard)
	if !ok || target.State != route.Local || !target.Shard.Ref.Alive() {
		return "", errors.New("the shard is not here")
	}
	return target.Shard.Ref.Path(), nil
}
