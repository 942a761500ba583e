package crashtest
import ("testing";"os";"strconv";"time")
func TestTmpMany(t *testing.T) {
	from,_ := strconv.Atoi(os.Getenv("FROM"))
	if os.Getenv("FROM")=="" { t.Skip() }
	start := time.Now(); var sum Result; n:=0; bad := 0
	for s := uint64(from); time.Since(start) < 60*time.Second; s++ {
		r, err := Run(Options{Seed: s, Steps: 120, Cuts: 1, Disrupt: true, Faults: true, Stride: 3+int(s%3)})
		if err != nil { t.Error(err); bad++; if bad>3 {return} }
		n++; sum.Images += r.Images; sum.Distinct += r.Distinct; sum.Truncated += r.Truncated; sum.Acked+=r.Acked; sum.Refused += r.Refused; sum.Poisoned += r.Poisoned
	}
	t.Logf("%d seeds %+v", n, sum)
}
