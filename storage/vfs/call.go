package vfs

import "strconv"

// Call is one kind of call on an FS or a File.
type Call uint8

// The calls of an FS, then those of a File.
const (
	CallCreate Call = iota + 1
	CallOpen
	CallMkdir
	CallReadDir
	CallStat
	CallRename
	CallRemove
	CallSyncDir
	CallLock
	CallDevice
	CallFree
	CallRead
	CallWrite
	CallTruncate
	CallSync
	CallSize
	CallPreallocate
	CallClose

	callEnd // one past the last
)

// String is the name that rules of a Fault use.
func (c Call) String() string {
	switch c {
	case CallCreate:
		return "create"
	case CallOpen:
		return "open"
	case CallMkdir:
		return "mkdir"
	case CallReadDir:
		return "readdir"
	case CallStat:
		return "stat"
	case CallRename:
		return "rename"
	case CallRemove:
		return "remove"
	case CallSyncDir:
		return "syncdir"
	case CallLock:
		return "lock"
	case CallDevice:
		return "device"
	case CallFree:
		return "free"
	case CallRead:
		return "read"
	case CallWrite:
		return "write"
	case CallTruncate:
		return "truncate"
	case CallSync:
		return "sync"
	case CallSize:
		return "size"
	case CallPreallocate:
		return "preallocate"
	case CallClose:
		return "close"
	}
	return "call " + strconv.Itoa(int(c))
}

// ParseCall is the inverse of String.
func ParseCall(s string) (Call, bool) {
	for c := CallCreate; c < callEnd; c++ {
		if c.String() == s {
			return c, true
		}
	}
	return 0, false
}
