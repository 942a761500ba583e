package crashtest
import ("testing";"os";"fmt";"path";"github.com/felixd/felixd/storage/vfs")
func TestTmpTrace(t *testing.T) {
	if os.Getenv("TRACE") == "" { t.Skip() }
	var seed uint64; fmt.Sscan(os.Getenv("TRACE"), &seed)
	traceOp = func(c *campaign, op vfs.Op) { if op.Phase != vfs.Before { fmt.Printf("%d step %d %s: %s %s off %d len %d err %v\n", c.ops, c.step, c.what, op.Call, path.Base(op.Name), op.Off, op.Len, op.Err) } }
	_, err := Run(Options{Seed: seed, Steps: 120, Cuts: 1, Stride: 3, Disrupt: true, Faults: true})
	fmt.Println(err)
}
