package actors

import "time"

// Bounds of this package, each with its reason.
const (
	// turnItemsMax ends a turn after so many messages: batching has paid off by then (6.5 ns an item), and a core that takes
	// 10 us a message still gives the executor back within a millisecond.
	turnItemsMax = 64

	// turnBytesMax ends a turn after so many bytes of data messages; the first message of a turn is taken whatever its size.
	turnBytesMax = 64 << 10

	// turnDataMin is what the control lane leaves to a waiting data lane in each turn, so that completions can't starve requests.
	turnDataMin = 16

	// turnsPerDispatch is how many turns a pooled actor takes before it queues behind others, so that hot actors can't occupy all
	// workers of the pool for ever.
	turnsPerDispatch = 64

	// quantumBytes is what a tenant gains per round of the fair dispatcher: one full turn.
	quantumBytes = turnBytesMax

	// turnChargeMin is charged for a turn on top of its bytes: the fixed cost of a turn is about that of moving 1 KiB, and a tenant
	// with many tiny turns must not ride for free.
	turnChargeMin = 1 << 10

	// workersMax bounds the goroutines of a pool: actors do not block, so more would only hold stacks (256 x 8 KiB = 2 MiB).
	// Runs beyond it wait in a queue, which holds each live actor at most once.
	workersMax = 256

	// workerIdleAfter is how long a goroutine of the pool may be unused before it ends; it may live up to twice that.
	workerIdleAfter = 10 * time.Second

	// ExecutorsDefault and executorsMax bound the fair dispatcher's parallelism. More than a few only add contention: a shard's
	// turn never waits.
	ExecutorsDefault = 4
	executorsMax     = 64

	// cellsDefault is the number of distinct (sender, kind) pairs an actor accepts when its Bounds name none: followers, routes and
	// a cluster's nodes are tens to hundreds.
	cellsDefault = 1024

	// cellsKept is how many slots an idle actor keeps allocated (512 bytes), and up to where slots are searched rather than indexed.
	cellsKept = 16

	// stackBytesMax bounds the stack in a PanicInfo: the frames nearest to the panic fit in a few KiB.
	stackBytesMax = 16 << 10

	// nameBytesMax bounds an actor's name: a client-chosen group name (255 bytes) with a prefix fits.
	nameBytesMax = 512

	// fullEventEvery is the least time between two MailboxFull events of one actor; refusals between are counted.
	fullEventEvery = 10 * time.Second

	// FaultTimeMax bounds a pause, a slowdown and the delay of a slowed turn: what was injected and
	// forgotten is over soon, and no experiment of the mission's needs longer.
	FaultTimeMax = 10 * time.Minute

	// FaultListMax is the most actors in one answer of Faults.List: some screens full, and tens of KiB as text.
	FaultListMax = 256

	// turnSampleEvery takes the duration of one turn in so many, because reading the clock twice costs as much as a small turn.
	turnSampleEvery = 64
)
