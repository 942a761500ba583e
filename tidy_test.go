package felixd_test

import (
	"os"
	"sync"
	"testing"

	"github.com/felixd/felixd/internal/tidy"
)

// places is who may import whom. Arrows run one way: wire/id <- storage <- shardactor <- sessionactor <- cmd; only cmd (and
// the simulation) sees everything; internal/node is a broker as a library. A package that is not here fails the test: add it with what it needs, and no more.
//
// mission 176, mission 333
var places = tidy.Layout{Where: "tidy_test.go", Places: []tidy.Place{
	{Package: ".", May: []string{"internal/tidy"}}, // tests only

	// Every byte that leaves a process.
	{Package: "wire", May: []string{"wire/id"}},
	{Package: "wire/id"},
	{Package: "wire/peer", May: []string{"wire", "wire/id"}},

	// One shard's log. It knows of the wire only what a stored batch is.
	{Package: "storage", May: []string{"wire/id", "storage/batch", "storage/vfs"}},
	{Package: "storage/batch", May: []string{"wire/id"}},
	{Package: "storage/vfs", Third: []string{"golang.org/x/sys"}},
	{Package: "storage/segment", May: []string{"wire/id", "storage/batch"}},
	{Package: "storage/diskpool"},
	{Package: "storage/disklog", May: []string{"wire/id", "storage/batch", "storage/vfs", "storage/segment", "storage/diskpool"}, Third: []string{"github.com/klauspost/compress"}},
	{Package: "storage/disklog/crashtest", May: []string{"wire/id", "storage/batch", "storage/vfs", "storage/segment", "storage/diskpool", "storage/disklog"}},
	{Package: "storage/durable", May: []string{"wire/id", "storage", "storage/batch", "storage/disklog"}},
	{Package: "storage/inspect", May: []string{"wire/id", "storage/batch", "storage/vfs", "storage/segment", "storage/disklog"}},
	{Package: "storage/keyed", May: []string{"wire/id", "storage", "storage/batch", "storage/vfs"}},

	// The actor runtime: the only one that knows protoactor.
	{Package: "actors", Third: []string{"github.com/asynkron/protoactor-go/actor", "github.com/prometheus/client_golang"}},
	{Package: "actors/simrt", May: []string{"actors"}},

	// QUIC and TLS.
	{Package: "transport", May: []string{"wire", "wire/id"}, Third: []string{"github.com/quic-go/quic-go", "golang.org/x/sys", "golang.org/x/net"}},

	// A replica of a shard: cores that see neither actors nor files, and the actors around them.
	{Package: "shardactor", Third: []string{"github.com/prometheus/client_golang"}, May: []string{
		"actors", "internal/stages", "wire", "wire/id", "storage", "storage/batch", "storage/keyed", "storage/durable", "storage/disklog", "storage/diskpool", "storage/segment", "storage/vfs",
		"shardactor/shardcore", "shardactor/cursorcore", "shardactor/groupcore", "shardactor/hosting", "shardactor/reading", "shardactor/route",
	}},
	{Package: "shardactor/shardcore", May: []string{"wire", "wire/id", "storage/batch"}},
	{Package: "shardactor/cursorcore", May: []string{"wire", "wire/id", "storage/batch"}},
	{Package: "shardactor/groupcore", May: []string{"wire", "wire/id", "storage/batch"}},
	{Package: "shardactor/hosting", May: []string{}},
	{Package: "shardactor/reading", May: []string{"wire/id", "storage/batch", "storage/keyed"}},
	{Package: "shardactor/route", May: []string{"wire", "wire/id"}},

	// Links between brokers.
	{Package: "peeractor", Third: []string{"github.com/hashicorp/memberlist", "github.com/quic-go/quic-go", "github.com/prometheus/client_golang"}, May: []string{
		"actors", "wire", "wire/id", "wire/peer", "transport", "peeractor/linkcore",
	}},
	{Package: "peeractor/linkcore", May: []string{"wire", "wire/id", "wire/peer"}},

	// Clients. The sessions themselves don't know QUIC, so that a simulation runs them over streams in memory.
	{Package: "sessionactor", Third: []string{"github.com/prometheus/client_golang"}, May: []string{
		"actors", "internal/gather", "internal/stages", "wire", "wire/id", "storage", "storage/batch", "storage/keyed", "sessionactor/sessioncore",
		"shardactor", "shardactor/groupcore", "shardactor/reading", "shardactor/route", "shardactor/shardcore",
	}},
	{Package: "sessionactor/sessioncore", May: []string{"wire", "wire/id"}},
	{Package: "sessionactor/quicconn", May: []string{"sessionactor", "transport"}, Third: []string{"github.com/quic-go/quic-go"}},

	// Metadata and placement.
	{Package: "controlplane/model"},
	{Package: "controlplane/plan", May: []string{"controlplane/model"}},
	{Package: "controlplane/store", May: []string{"controlplane/model"}},
	{Package: "controlplane/store/catalogfile", May: []string{"controlplane/model", "controlplane/store", "storage/vfs"}},
	{Package: "controlplane/store/storetest", May: []string{"controlplane/model", "controlplane/store"}},
	{Package: "controlplane/auth", May: []string{"controlplane/model"}, Third: []string{"github.com/golang-jwt/jwt/v5"}},
	{Package: "controlplane/api", Third: []string{"github.com/klauspost/compress", "github.com/prometheus/client_golang"}, May: []string{
		"controlplane/model", "controlplane/plan", "controlplane/store", "controlplane/auth",
	}},
	{Package: "controlplane/watch", Third: []string{"github.com/prometheus/client_golang"}, May: []string{
		"actors", "controlplane/model", "controlplane/store", "shardactor/route", "wire", "wire/id",
	}},

	// The Go SDK: wire and transport, nothing of the broker.
	{Package: "client", May: []string{"internal/gather", "wire", "wire/id", "transport"}, Third: []string{"github.com/quic-go/quic-go"}},
	{Package: "client/testbroker", May: []string{"client", "wire", "wire/id", "transport"}, Third: []string{"github.com/quic-go/quic-go"}},

	// Composition only.
	{Package: "cmd/felixctl/...", May: []string{"client", "wire", "wire/id", "transport", "internal/bench/...", "internal/rawquic", "internal/version", "cmd/felixctl/..."}, Third: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys"}},
	{Package: "cmd/felixd/...", Third: []string{
		"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/prometheus/client_golang",
		"github.com/quic-go/quic-go", "golang.org/x/sys", "go.yaml.in/yaml/v3",
	}, May: []string{
		"actors", "wire", "wire/id", "storage/...", "transport", "shardactor/...", "peeractor", "sessionactor/...", "controlplane/...", "internal/node", "internal/stages", "internal/version", "cmd/felixd/...",
	}},

	{Package: "internal/node", Third: []string{"github.com/prometheus/client_golang"}, May: []string{
		"actors", "internal/stages", "wire", "wire/id", "storage/...", "shardactor/...", "sessionactor/...", "peeractor",
	}},

	// Whole worlds in one goroutine: the real node, and everything around it made up. It sees everything.
	{Package: "sim", Third: []string{"github.com/prometheus/client_golang"}, May: []string{
		"actors", "actors/simrt", "wire", "wire/id", "storage/...", "shardactor/...", "sessionactor/...", "internal/node", "internal/effort",
	}},

	// How writes of several streams share a packet, at both ends.
	{Package: "internal/gather", May: []string{}},

	// Where the time of a request goes.
	{Package: "internal/stages", Third: []string{"github.com/prometheus/client_golang"}},

	// Loads, their measurement, and the plain QUIC peers that they are compared with.
	{Package: "internal/bench", May: []string{"client", "internal/bench/machine", "internal/rawquic", "storage/vfs", "transport", "wire"}, Third: []string{"github.com/HdrHistogram/hdrhistogram-go", "github.com/quic-go/quic-go"}},
	{Package: "internal/bench/machine", Third: []string{"golang.org/x/sys"}},
	{Package: "internal/rawquic", May: []string{"internal/bench/machine", "transport"}, Third: []string{"github.com/quic-go/quic-go"}},

	// Programs that show a promise, on a broker of their own.
	{Package: "demos/local", Third: []string{"github.com/prometheus/client_golang"}, May: []string{
		"actors", "client", "internal/node", "sessionactor/quicconn", "sessionactor/sessioncore", "shardactor", "shardactor/route", "storage/disklog", "storage/diskpool", "storage/vfs", "transport", "wire",
	}},
	{Package: "demos/cache", May: []string{"client", "demos/local", "internal/node", "shardactor/reading"}},
	{Package: "demos/durablerestart", May: []string{"client", "demos/local", "wire/id"}},
	{Package: "demos/queue", May: []string{"client", "demos/local", "shardactor", "wire/id"}},
	{Package: "demos/slowconsumer", May: []string{"client", "demos/local", "internal/node", "storage", "storage/batch", "transport", "wire"}},

	// What tests of whole brokers share.
	{Package: "internal/testkit", Third: []string{"github.com/prometheus/client_golang"}, May: []string{
		"actors", "client", "internal/effort", "internal/node", "sessionactor/quicconn", "sessionactor/sessioncore", "shardactor/route", "storage/vfs", "transport", "wire",
	}},

	{Package: "internal/version", May: []string{"wire"}},
	{Package: "internal/effort"},
	{Package: "internal/effort/cmd", May: []string{"internal/effort"}},
	{Package: "internal/tidy"},
	// Tests only.
	{Package: "test/cache"}, {Package: "test/clientguide"}, {Package: "test/crash"}, {Package: "test/crash/images"}, {Package: "test/durable"}, {Package: "test/fair"}, {Package: "test/hostile"}, {Package: "test/pages"},
	{Package: "test/protocoldoc"}, {Package: "test/queue"}, {Package: "test/streams"},
}, TestThird: []string{"github.com/anishathalye/porcupine", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/quic-go/quic-go", "github.com/prometheus/client_golang", "github.com/prometheus/client_model"}}

// never is what must not be reached, however many imports lie between.
//
// mission 174, mission 352
var never = []tidy.Never{
	{From: []string{"wire/...", "storage/...", "shardactor/shardcore", "shardactor/cursorcore", "shardactor/groupcore", "shardactor/hosting", "shardactor/reading", "shardactor/route", "sessionactor/sessioncore"},
		To:  []string{"net", "crypto/tls", "github.com/quic-go/quic-go", "github.com/asynkron/protoactor-go", module + "/actors", module + "/transport"},
		Why: "the protocol, the log and the cores have no network and no runtime: they run in a test, a simulation or a tool"},
	{From: []string{"shardactor", "sessionactor", "actors/..."},
		To:  []string{"github.com/quic-go/quic-go", module + "/transport"},
		Why: "a node without listeners has no QUIC in it, so that many of them run in one process"},
	{From: []string{"client/..."},
		To:  []string{module + "/actors", module + "/storage", module + "/shardactor", module + "/sessionactor", module + "/controlplane", module + "/peeractor"},
		Why: "whoever takes the client into a program must not take the broker along"},
}

var apart = []tidy.Apart{{
	A: "sessionactor/...", B: "controlplane/...", Except: []string{"cmd/...", "sim/..."},
	Why: "sessions serve from the route table alone: a control plane that is gone stops no client",
}}

// pure are the packages that get time, chance and the outside as arguments.
var pure = []string{
	"wire/...", "storage/batch", "storage/segment", "shardactor/shardcore", "shardactor/cursorcore", "shardactor/groupcore", "shardactor/hosting", "shardactor/reading", "shardactor/route",
	"sessionactor/sessioncore", "peeractor/linkcore", "controlplane/model", "controlplane/plan",
}

// diskless are the packages of a broker. Those that compose programs, and tools, read files of their own: settings, certificates, reports.
var diskless = []string{
	"wire/...", "storage/...", "actors/...", "transport", "shardactor/...", "sessionactor/...", "peeractor/...", "controlplane/...", "internal/node", "internal/gather", "internal/stages",
}

// components are tested alone: with what they are made of, and with stand-ins for the rest.
var components = []string{"wire/...", "storage/...", "actors/...", "transport", "shardactor/...", "sessionactor/...", "peeractor/...", "controlplane/...", "client/..."}

// ordered are the cores and shells that a simulation replays: nothing in them may depend on the order of a map.
var ordered = []string{
	"wire/...", "storage/...", "shardactor/...", "sessionactor/...", "actors/...", "peeractor/...",
	"controlplane/model", "controlplane/plan", "controlplane/store/...",
}

// partial are closed sets whose readers take one side: wire.Message holds what both ends of a connection say.
var partial = []string{"wire.Message"}

const (
	module    = "github.com/felixd/felixd"
	linesMost = 600 // for one file without tests
)

// tree is loaded once for all rules.
var tree = sync.OnceValues(func() (*tidy.Tree, error) { return tidy.Load(".") })

// judge runs one rule and prints each finding with its why.
func judge(t *testing.T, rule func(*tidy.Tree) ([]tidy.Finding, error)) {
	t.Helper()
	house, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	findings, err := rule(house)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tidy.Sorted(findings) {
		t.Error(f)
	}
}

func TestEveryPackageCompilesAndIsThisModule(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) {
		if house.Module != module {
			t.Errorf("the module is %s, want %s", house.Module, module)
		}
		return tidy.Broken(house), nil
	})
}

func TestImportsRunOneWay(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) {
		return append(append(tidy.Imports(house, places), tidy.Separate(house, apart)...), tidy.Reach(house, never)...), nil
	})
}

func TestCoresArePure(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.Purity(house, pure), nil })
}

func TestNoPackageHasStateOfItsOwn(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) {
		var every []string
		for _, p := range house.Packages {
			every = append(every, p.Path)
		}
		return tidy.Variables(house, every), nil
	})
}

// mission 334
func TestComponentsAreTestedWithoutTheOthers(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) {
		return tidy.Alone(house, components, []string{"internal/effort"}), nil
	})
}

// What is on a disk is opened, kept and recovered by storage/ alone, through storage/vfs.
//
// mission 343
func TestOnlyTheStorageOpensFiles(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.Doors(house, diskless, "storage/vfs"), nil })
}

func TestNothingDependsOnTheOrderOfAMap(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.MapRanges(house, ordered), nil })
}

func TestActorTablesTellWhatActorsAccept(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.Actors(house, "actors"), nil })
}

func TestSwitchesOverClosedSetsForgetNothing(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.SumTypes(house, partial), nil })
}

// mission 216
func TestDesignNamesWhatIsThere(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.Named(house, "DESIGN.md") })
}

func TestEveryDependencyHasItsSentence(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.Dependencies(house, "DESIGN.md") })
}

func TestTestsDoNotSleep(t *testing.T) {
	judge(t, tidy.Sleeps)
}

func TestFilesAreShort(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) { return tidy.LongFiles(house, linesMost), nil })
}

func TestOnlyWhatRunsBesideNothingIsLeftOutOfTheRaceDetector(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) {
		return tidy.Unraced(house, ".ci/unraced", []string{"demos/...", "test/crash"})
	})
}

func TestLandingRunsTheCommandOfTheReadme(t *testing.T) {
	judge(t, func(house *tidy.Tree) ([]tidy.Finding, error) {
		return tidy.LandingCommand(house, "README.md", ".ci/run")
	})
	for _, script := range []string{".ci/run", ".ci/full"} {
		if info, err := os.Stat(script); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s is not a program: %v", script, err)
		}
	}
}
