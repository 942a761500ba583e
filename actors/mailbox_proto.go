package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

var _ actor.Mailbox = (*mailbox)(nil)

// PostUserMessage is protoactor's door for user messages. Nobody holds a PID of ours, so nothing can come.
func (b *mailbox) PostUserMessage(message any) {
	panic(fmt.Sprintf("actors: %s was sent a %T through protoactor: messages go through a Ref", b.path, message))
}

// PostSystemMessage queues one of protoactor's own messages. A Stop closes the mailbox at once: a parent that stops has decided for
// its children too.
func (b *mailbox) PostSystemMessage(message any) {
	b.mu.Lock()
	if _, ok := message.(*actor.Stop); ok {
		b.closed = true
	}
	b.sysq = append(b.sysq, message)
	b.unlockAndWake()
}

// RegisterHandlers is called by protoactor once, before Start.
func (b *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	b.invoker, b.dispatcher = invoker, dispatcher
}

// Start is called by protoactor once the actor may run.
func (b *mailbox) Start() {
	b.mu.Lock()
	b.started = true
	b.unlockAndWake()
}

// UserMessageCount is the number of data messages queued.
func (b *mailbox) UserMessageCount() int { return int(b.items.Load()) }
