package api

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/controlplane/model"
)

func (b *bench) makeStreams(names ...string) {
	b.t.Helper()
	for _, n := range names {
		into[model.Stream](b, "create "+n, b.do("POST", streams, b.admin(), `{"stream":"`+n+`"}`), 201)
	}
}

// pages walks all pages; between runs after each page but the last.
func (b *bench) pages(token string, limit int, between func(page int)) [][]string {
	b.t.Helper()
	var all [][]string
	path := fmt.Sprintf("%s?limit=%d", streams, limit)
	for next := path; ; {
		page := into[Page[model.Stream]](b, next, b.do("GET", next, token, ""), 200)
		var names []string
		for _, s := range page.Items {
			names = append(names, s.Stream)
		}
		all = append(all, names)
		if page.NextCursor == "" {
			return all
		}
		if len(names) != limit {
			b.t.Fatalf("a page that is not the last has %d of %d items", len(names), limit)
		}
		if last, ok := parseCursor(page.NextCursor); !ok || last != names[limit-1] {
			b.t.Fatalf("the cursor names %q, the last entry shown is %q", last, names[limit-1])
		}
		if between != nil {
			between(len(all))
		}
		next = path + "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

func TestCursorIsTheLastKeyAsJSONInBase64(t *testing.T) {
	if got := renderCursor("s2"); got != "InMyIg" {
		t.Fatalf("cursor of s2 is %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,127}`).Draw(t, "name")
		if got, ok := parseCursor(renderCursor(name)); !ok || got != name {
			t.Fatalf("%q comes back as %q, %v", name, got, ok)
		}
	})
}

func TestPagesAreFullButTheLast(t *testing.T) {
	b := newBench(t, nil)
	b.makeStreams("e", "a", "c", "b", "d")
	for limit, want := range map[int][][]string{
		2: {{"a", "b"}, {"c", "d"}, {"e"}}, 5: {{"a", "b", "c", "d", "e"}}, 10000: {{"a", "b", "c", "d", "e"}}, 1: {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}},
	} {
		if got := b.pages(b.admin(), limit, nil); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	empty := into[Page[model.Stream]](b, "behind the last", b.do("GET", streams+"?cursor="+renderCursor("zzz"), b.admin(), ""), 200)
	if empty.Items == nil || len(empty.Items) != 0 || empty.NextCursor != "" {
		t.Errorf("behind the last: %+v", empty)
	}
}

func TestPagingIsByKeyNotByPosition(t *testing.T) {
	b := newBench(t, nil)
	b.makeStreams("b", "d", "f", "h")
	got := b.pages(b.admin(), 2, func(page int) {
		if page == 1 {
			b.do("DELETE", streams+"/d", b.admin(), "") // the entry the cursor names
			b.makeStreams("a", "e")                     // one behind, one ahead
		}
	})
	if want := [][]string{{"b", "d"}, {"e", "f"}, {"h"}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("pages %v", got)
	}
}

func TestListsShowOnlyWhatTheCallerMayManage(t *testing.T) {
	b := newBench(t, nil)
	for i := range 2*scanItems + 10 { // more than the store is asked for at a time
		_, _, err := b.store.CreateStream(t.Context(), model.Stream{TenantID: "t1", Namespace: "pay", Stream: fmt.Sprintf("s%04d", i), Incarnation: 1,
			Kind: "Stream", Shards: 1, ReplicationFactor: 1, Consistency: "Leader", Delivery: "AtLeastOnce"})
		check(t, err)
	}
	mine := []string{"s0003", "s1000", "s1500", "s2005"}
	var permissions []string
	for _, n := range mine {
		permissions = append(permissions, "stream.manage:stream:t1/pay/"+n)
	}
	token := b.token("t1", permissions...)
	for limit, want := range map[int][][]string{2: {mine[:2], mine[2:]}, 3: {mine[:3], mine[3:]}, 4: {mine}} {
		if got := b.pages(token, limit, nil); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	if all := b.pages(b.admin(), 10000, nil); len(all) != 1 || len(all[0]) != 2*scanItems+10 {
		t.Errorf("the admin sees %d pages", len(all))
	}
	page := into[Page[model.Stream]](b, "default size", b.do("GET", streams, b.admin(), ""), 200)
	if len(page.Items) != pageItemsDefault || page.NextCursor == "" {
		t.Errorf("the default page has %d items", len(page.Items))
	}
	ns := into[Page[model.Namespace]](b, "namespaces", b.do("GET", "/v1/tenants/t1/namespaces", b.token("t1", "ns.manage:namespace:t1/other"), ""), 200)
	if len(ns.Items) != 0 {
		t.Errorf("namespaces of others are shown: %+v", ns)
	}
}

func TestOddPageParametersAreRefused(t *testing.T) {
	b := newBench(t, nil)
	for _, query := range []string{"limit=", "limit=0", "limit=10001", "limit=-1", "limit=+1", "limit=1.0", "limit=ten", "limit=1&limit=2", "limit=99999999999999999999",
		"cursor=", "cursor=s2", "cursor=InMyIg%3D%3D", "cursor=InMyIg&cursor=InMyIg", "cursor=bnVsbA", "cursor=NQ", "cursor=IGEi",
		"cursor=" + renderCursor("a/b"), "cursor=" + renderCursor(""), "cursor=InMyIh", "cursor=InMy%0AIg", "limit=%zz", "a;b=1"} {
		b.fails(query, b.do("GET", streams+"?"+query, b.admin(), ""), 400, CodeInvalidRequest, "")
	}
	into[Page[model.Stream]](b, "unknown parameter", b.do("GET", streams+"?colour=red", b.admin(), ""), 200)
}

// FuzzCursor: only what renderCursor writes is read.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"InMyIg", "", "bnVsbA", "InMyIh", "IlxuIg", "InMy\nIg"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if name, ok := parseCursor(cursor); ok && renderCursor(name) != cursor {
			t.Fatalf("%q is read as %q, whose cursor is %q", cursor, name, renderCursor(name))
		}
	})
}
