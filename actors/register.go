package actors

import "github.com/asynkron/protoactor-go/actor"

// spawn starts b at the top level.
func (s *System) spawn(b *mailbox) error {
	b.path = b.name
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrStopped
	}
	if _, taken := s.tops[b.name]; taken {
		s.mu.Unlock()
		return ErrNameTaken
	}
	s.tops[b.name] = b
	s.mu.Unlock()
	if err := s.register(b, s.proto.Root.SpawnNamed); err != nil {
		s.forget(b)
		return err
	}
	return nil
}

// register hands b to protoactor.
func (s *System) register(b *mailbox, spawn func(*actor.Props, string) (*actor.PID, error)) error {
	var d actor.Dispatcher = s.scheduler
	if b.w.spec.tenant != "" {
		d = s.fair.join(b)
	}
	b.kind.add(b)
	props := actor.PropsFromProducer(func() actor.Actor { return &b.w }, actor.WithMailbox(func() actor.Mailbox { return b }),
		actor.WithDispatcher(d), actor.WithSupervisor(s.supervisor))
	if _, err := spawn(props, b.name); err != nil {
		b.kind.remove(b)
		s.leave(b)
		return mapSpawnError(err)
	}
	b.kind.spawned.Inc()
	return nil
}

// ended is called at the end of each incarnation.
func (s *System) ended(b *mailbox, top bool) {
	s.leave(b)
	if top {
		s.forget(b)
	}
}

func (s *System) leave(b *mailbox) {
	if b.w.spec.tenant != "" {
		s.fair.leave(b)
	}
}

// forget frees the name of a top-level actor.
func (s *System) forget(b *mailbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tops, b.name)
	if s.closing && len(s.tops) == 0 {
		close(s.empty)
	}
}
