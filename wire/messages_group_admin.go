package wire

import "github.com/felixd/felixd/wire/id"

// Consumer groups: records given up on, and the group as a whole.

// GroupDeadLetter gives up on a record, needs FeatureGroupClaimControl. Answered by CacheOK.
type GroupDeadLetter struct {
	GroupTarget
	Offset id.Offset
}

// GroupDeadLetters asks for the records given up on, needs FeatureGroupDeadLetters. Answered by GroupDeadLetterList.
type GroupDeadLetters struct{ GroupTarget }

// GroupDiscard forgets a record given up on, needs FeatureGroupDeadLetters. Answered by CacheOK.
type GroupDiscard struct {
	GroupTarget
	Offset id.Offset
}

// GroupRedrive hands out a record given up on again, needs FeatureGroupDeadLetters. Answered by CacheOK.
type GroupRedrive struct {
	GroupTarget
	Offset id.Offset
}

// GroupSeek moves the group, needs FeatureGroupAdmin. Answered by GroupPosition.
type GroupSeek struct {
	GroupTarget
	Start Start
	IfNew bool // only if the group has no position yet
}

// GroupDescribe asks how far the group is, needs FeatureGroupAdmin. Answered by GroupInfo.
type GroupDescribe struct{ GroupTarget }

// GroupDelete removes the group, needs FeatureGroupAdmin. Answered by GroupDeleted.
type GroupDelete struct{ GroupTarget }

// MessageType returns "group_dead_letter".
func (*GroupDeadLetter) MessageType() string { return "group_dead_letter" }

func (m *GroupDeadLetter) fields(f *fields) {
	m.target(f)
	uintField(f, "offset", &m.Offset)
}

// MessageType returns "group_dead_letters".
func (*GroupDeadLetters) MessageType() string { return "group_dead_letters" }

func (m *GroupDeadLetters) fields(f *fields) { m.target(f) }

// MessageType returns "group_discard".
func (*GroupDiscard) MessageType() string { return "group_discard" }

func (m *GroupDiscard) fields(f *fields) {
	m.target(f)
	uintField(f, "offset", &m.Offset)
}

// MessageType returns "group_redrive".
func (*GroupRedrive) MessageType() string { return "group_redrive" }

func (m *GroupRedrive) fields(f *fields) {
	m.target(f)
	uintField(f, "offset", &m.Offset)
}

// MessageType returns "group_seek".
func (*GroupSeek) MessageType() string { return "group_seek" }

func (m *GroupSeek) fields(f *fields) {
	m.target(f)
	f.start("start", &m.Start)
	f.flag("if_new", &m.IfNew)
}

// MessageType returns "group_describe".
func (*GroupDescribe) MessageType() string { return "group_describe" }

func (m *GroupDescribe) fields(f *fields) { m.target(f) }

// MessageType returns "group_delete".
func (*GroupDelete) MessageType() string { return "group_delete" }

func (m *GroupDelete) fields(f *fields) { m.target(f) }
