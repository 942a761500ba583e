package api

import (
	"encoding/json"
	"testing"
)

// Whoever reads a durable stream is told what its acknowledgements mean, wherever it is shown.
func TestDurableStreamsTellTheFsyncModeWhereItIsKnown(t *testing.T) {
	for _, mode := range []string{"periodic", ""} {
		b := newBench(t, func(o *Options) { o.FsyncMode = mode })
		token := b.admin()
		tells := func(what string, a answer, status int, durable bool) {
			t.Helper()
			got, told := into[map[string]json.RawMessage](b, what, a, status)["fsync_mode"]
			if told != (durable && mode != "") || told && string(got) != `"`+mode+`"` {
				t.Errorf("mode %q, %s: %s", mode, what, a.body)
			}
		}
		tells("create durable", b.do("POST", streams, token, `{"stream":"d","durable":true}`), 201, true)
		tells("create durable again", b.do("POST", streams, token, `{"stream":"d","durable":true}`), 200, true)
		tells("create ephemeral", b.do("POST", streams, token, `{"stream":"e"}`), 201, false)
		tells("get durable", b.do("GET", streams+"/d", token, ""), 200, true)
		tells("get ephemeral", b.do("GET", streams+"/e", token, ""), 200, false)
		tells("patch durable", b.do("PATCH", streams+"/d", token, `{"compress":true}`), 200, true)
		page := into[Page[streamView]](b, "list", b.do("GET", streams, token, ""), 200)
		if len(page.Items) != 2 {
			t.Fatalf("listed %+v", page)
		}
		tells("no such stream", b.do("GET", streams+"/none", token, ""), 404, false)
		var listed struct{ Items []map[string]json.RawMessage }
		if err := json.Unmarshal(b.do("GET", streams, token, "").body, &listed); err != nil {
			t.Fatal(err)
		}
		got, told := listed.Items[0]["fsync_mode"]
		if _, other := listed.Items[1]["fsync_mode"]; other || told != (mode != "") || told && string(got) != `"`+mode+`"` {
			t.Errorf("mode %q, listed %v", mode, listed.Items)
		}
	}
}
