package simrt

import "time"

const (
	// StepTimeDefault is the most that one step takes in true time, with the zero Options: about the cost of a turn.
	StepTimeDefault = 20 * time.Microsecond

	// TurnItemsMax is the largest turn an actor is given; the runtime cuts off above it.
	TurnItemsMax = 64

	// turnBytesMax is the byte bound of a full turn, as of the real runtime.
	turnBytesMax = 64 << 10

	// ClockRateMin and ClockRateMax bound how fast a node's clock runs against true time, in parts per million: half and twice. A real
	// one is within 500 of a million; the rest is a virtual machine that was held up.
	ClockRateMin = 500_000
	ClockRateMax = 2_000_000

	// coroutinesMax is the most pumps alive at once: each has a stack of some KiB. More are a leak in what is simulated.
	coroutinesMax = 100_000
)
