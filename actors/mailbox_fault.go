package actors

import "time"

// inject changes the fault of an incarnation that is not stopping.
func (b *mailbox) inject(change func(x *fault, now time.Time)) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrStopped
	}
	if b.fault == nil {
		b.fault = new(fault)
	}
	change(b.fault, b.sys.clock.Now())
	b.settleFault()
	b.unlockAndWake()
	return nil
}

// faultDue is the clock's call: something injected may be over.
func (b *mailbox) faultDue() {
	b.mu.Lock()
	if b.closed || b.fault == nil { // a ring that was on its way when the fault was healed
		b.mu.Unlock()
		return
	}
	b.fault.armedFor = time.Time{}
	b.fault.expire(b.sys.clock.Now())
	b.settleFault()
	b.unlockAndWake()
}

// settleFault arms the timer for the next instant of the fault, or forgets a fault that is over; mu is held.
func (b *mailbox) settleFault() {
	f := b.fault
	if f.none() {
		b.forgetFault()
		return
	}
	at := f.next()
	if at.Equal(f.armedFor) {
		return
	}
	f.armedFor = at
	d := at.Sub(b.sys.clock.Now())
	switch {
	case at.IsZero():
		f.stopTimer()
	case f.timer == nil:
		f.timer = b.sys.clock.AfterFunc(d, b.faultDue)
	default:
		f.timer.Reset(d)
	}
}

// readyDespiteFault is ready for an actor with a fault: a crash needs no work, and nothing else goes past a pause or a delay. mu is held.
func (b *mailbox) readyDespiteFault() bool {
	f := b.fault
	switch {
	case f.crash:
		return true
	case !b.hasWork():
		return false
	case !f.holds():
		return true
	}
	f.await(b.sys.clock.Now())
	b.settleFault()
	return false
}

// dropFault ends what was injected together with the incarnation.
func (b *mailbox) dropFault() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault != nil {
		b.forgetFault()
	}
}

// forgetFault makes the mailbox as it was before the first injection; mu is held.
func (b *mailbox) forgetFault() {
	b.fault.stopTimer()
	b.fault = nil
}

func (f *fault) stopTimer() {
	if f.timer != nil {
		f.timer.Stop()
	}
}
