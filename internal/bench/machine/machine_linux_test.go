package machine

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childVariable makes this test program one that says where it runs.
const childVariable = "FELIX_TEST_WHERE"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	cpus, err := CPUs()
	fmt.Println(cpus, runtime.GOMAXPROCS(0), err)
}

func child(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd, out := exec.Command(os.Args[0]), new(bytes.Buffer)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stdout = out
	return cmd, out
}

func TestCPUTimeGrowsByTheWorkDone(t *testing.T) {
	before, err := CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; n++ {
	}
	after, err := CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	if used := after - before; used <= 0 || used > time.Duration(runtime.NumCPU())*10*time.Second {
		t.Fatalf("%d turns in 100 ms used %v", n, used)
	}
}

func TestPinnedProcessHasOneCPUAndOneP(t *testing.T) {
	before, err := CPUs()
	if err != nil {
		t.Fatal(err)
	}
	procs := runtime.GOMAXPROCS(0)
	last := before[len(before)-1]
	undo, err := Pin(last)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := CPUs(); err != nil || !slices.Equal(now, []int{last}) || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("pinned to %d: CPUs %v, %v, GOMAXPROCS %d", last, now, err, runtime.GOMAXPROCS(0))
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if now, err := CPUs(); err != nil || !slices.Equal(now, before) || runtime.GOMAXPROCS(0) != procs {
		t.Errorf("undone: CPUs %v, %v, GOMAXPROCS %d; want %v and %d", now, err, runtime.GOMAXPROCS(0), before, procs)
	}
}

func TestPinnedChildHasItsPlaceAndTheParentKeepsItsOwn(t *testing.T) {
	before, err := CPUs()
	if err != nil {
		t.Fatal(err)
	}
	first := before[0]
	cmd, out := child(t)
	if err := Start(cmd, first); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), fmt.Sprintf("[%d] 1 <nil>\n", first); got != want {
		t.Errorf("the child says %q, want %q", got, want)
	}
	cmd, out = child(t)
	if err := Start(cmd, Any); err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(cmd.Process.Pid); err != nil || group != cmd.Process.Pid {
		t.Errorf("the child is in process group %d, %v; want one of its own", group, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), fmt.Sprintf("%v %d <nil>\n", before, runtime.GOMAXPROCS(0)); got != want {
		t.Errorf("the child that may run anywhere says %q, want %q", got, want)
	}
	if after, err := CPUs(); err != nil || !slices.Equal(after, before) {
		t.Errorf("the parent may run on %v, %v; want %v", after, err, before)
	}
}

func TestCPUThatIsNotThereIsRefusedAndNothingIsStarted(t *testing.T) {
	const missing = 1000
	cmd, _ := child(t)
	if err := Start(cmd, missing); err == nil || cmd.Process != nil || !strings.Contains(err.Error(), "pin to CPU 1000") {
		t.Errorf("got %v, process %v", err, cmd.Process)
	}
	before, err := CPUs()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pin(missing); err == nil || !strings.Contains(err.Error(), "pin to CPU 1000") {
		t.Errorf("got %v", err)
	}
	if after, err := CPUs(); err != nil || !slices.Equal(after, before) {
		t.Errorf("after a failure: CPUs %v, %v; want %v", after, err, before)
	}
}

func TestFactsNameTheMachine(t *testing.T) {
	f := Read()
	if f.Go != runtime.Version() || f.CPUs != runtime.NumCPU() || f.GOMAXPROCS != runtime.GOMAXPROCS(0) || !strings.HasPrefix(f.System, runtime.GOOS+"/"+runtime.GOARCH) {
		t.Fatalf("got %+v", f)
	}
}

func TestModulesAreThoseAskedForAsTheyWereBuiltIn(t *testing.T) {
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "example.org/b", Version: "v2.0.0"},
		{Path: "example.org/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1"}},
	}}
	got := pick(info, []string{"example.org/a", "example.org/never", "example.org/b"})
	if want := []Module{{"example.org/a", "v1.0.1"}, {"example.org/b", "v2.0.0"}}; !slices.Equal(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if _, err := ModulesOf("missing"); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Fatalf("a file that is not there: %v", err)
	}
}
