package groupcore

import "time"

// running is a group that runs, as a Door knows it.
type running struct {
	given   uint64 // requests, since it is up
	leaving bool   // it was let go of at rest: what comes for it waits for the one after it
}

// Up says that a group was brought up.
func (d *Door) Up(group string) {
	if d.groups == nil {
		d.groups = make(map[string]*running)
	}
	if d.groups[group] != nil {
		panic("groupcore: a group is brought up that runs")
	}
	d.groups[group] = &running{}
}

// Given says that a group that runs was given a request which had been let in.
func (d *Door) Given(group string) { d.groups[group].given++ }

// GivenTo is how many requests a group was given since it is up; 0 if it does not run.
func (d *Door) GivenTo(group string) uint64 {
	if x := d.groups[group]; x != nil {
		return x.given
	}
	return 0
}

// Rests takes a group's word that it held nothing which is not in the logs after so many requests, and decides whether it is let go of now: it
// is not if it was given more since, since it may hold claims again. Whoever comes for it from then on waits until it is Over.
func (d *Door) Rests(group string, given uint64) bool {
	x := d.groups[group]
	if x == nil || x.leaving || x.given != given {
		return false
	}
	x.leaving = true
	d.leaving++
	return true
}

// Over says that a group has ended, for whatever reason. It returns who waited for that, in the order they came, to be let in.
func (d *Door) Over(now time.Duration, group string) []Visit {
	x := d.groups[group]
	if x == nil {
		panic("groupcore: a group ends that does not run")
	}
	delete(d.groups, group)
	if !x.leaving {
		return nil
	}
	d.leaving--
	if d.stage != doorOpen {
		return nil // they wait for that, too
	}
	return letIn(now, d.take(func(x *visitor) bool { return x.Group == group }))
}

// Staying is how many groups run that were not let go of.
func (d *Door) Staying() int { return len(d.groups) - d.leaving }

func (d *Door) leaves(group string) bool {
	x := d.groups[group]
	return x != nil && x.leaving
}
