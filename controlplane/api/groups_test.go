package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
)

func TestAListingOfGroupsSaysWhatTheBrokersKnow(t *testing.T) {
	var names []string
	var failure error
	b := newBench(t, func(o *Options) {
		o.Groups = func(_ context.Context, stream model.ResourceName, most int) ([]string, error) {
			if stream.Name != "jobs" || most != groupsMax+1 {
				t.Errorf("%d groups of %v were asked for", most, stream)
			}
			return names, failure
		}
	})
	token := b.admin()
	b.do("POST", streams, token, `{"stream":"jobs","durable":true}`)
	if got := into[groupList](b, "no groups", b.do("GET", streams+"/jobs/groups", token, ""), 200); len(got.Items) != 0 || got.Items == nil {
		t.Errorf("%+v", got)
	}
	names = []string{"a b", "workers"}
	if got := into[groupList](b, "two groups", b.do("GET", streams+"/jobs/groups", token, ""), 200); len(got.Items) != 2 || got.Items[0].Group != "a b" || got.Truncated {
		t.Errorf("%+v", got)
	}
	names = nil
	for i := range groupsMax + 1 {
		names = append(names, fmt.Sprintf("%06d", i))
	}
	if got := into[groupList](b, "too many", b.do("GET", streams+"/jobs/groups", token, ""), 200); len(got.Items) != groupsMax || !got.Truncated {
		t.Errorf("%d, %v", len(got.Items), got.Truncated)
	}
	if a := b.do("GET", streams+"/none/groups", token, ""); a.status != 404 {
		t.Errorf("of no stream: %d", a.status)
	}
	if a := b.do("GET", streams+"/jobs/groups", "", ""); a.status != 401 {
		t.Errorf("without a token: %d", a.status)
	}
	failure = errors.New("a shard does not serve")
	if a := b.do("GET", streams+"/jobs/groups", token, ""); a.status != 503 {
		t.Errorf("while a shard does not serve: %d %s", a.status, a.body)
	}
}
