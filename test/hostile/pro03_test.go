package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/felixd/felixd/client"
)

// tree lists everything below a folder.
func tree(t testing.TB, dir string) (list []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was renamed or deleted meanwhile
		}
		list = append(list, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// field case PRO-03 on the API: a bad name is refused with a typed error or stored as its own thing; no file appears, and what is
// accepted under two names is two things. The case after a restart, and names as folders, need the log on disk.
func TestPRO03_NamesThroughTheAPICannotLeaveOrCollide(t *testing.T) {
	aside(t)
	d := runDaemon(t)
	if !eventually(t, "the daemon has made its reserve, the last of its files", func() bool { _, err := os.Stat(filepath.Join(d.dir, "reserve")); return err == nil }) {
		return
	}
	before := tree(t, filepath.Dir(d.dir))
	var accepted []string
	for _, name := range append(badNames(), notUTF8()...) {
		quoted := string(must(json.Marshal(name))(t))
		if !utf8.ValidString(name) {
			quoted = `"` + name + `"`
		}
		for path, body := range map[string]string{
			"/v1/tenants": `{"tenant_id":` + quoted + `,"display_name":"x"}`,
			"/v1/tenants/" + d.TenantID + "/namespaces":                 `{"namespace":` + quoted + `,"display_name":"x"}`,
			"/v1/tenants/" + d.TenantID + "/namespaces/default/streams": `{"stream":` + quoted + `}`,
			"/v1/tenants/" + d.TenantID + "/namespaces/default/caches":  `{"cache":` + quoted + `}`,
		} {
			code, answer := d.call("POST", path, body)
			var typed struct {
				Code string `json:"code"`
			}
			switch err := json.Unmarshal([]byte(answer), &typed); {
			case code == 201 && strings.HasSuffix(path, "streams"):
				accepted = append(accepted, name)
			case code == 201:
			case code < 400 || code >= 500 || err != nil || typed.Code == "" || !utf8.ValidString(answer):
				t.Errorf("POST %s %.60s was answered %d %.200s", path, body, code, answer)
			}
		}
	}
	t.Logf("accepted as names of streams: %.40q", accepted)
	for _, name := range accepted {
		if strings.ContainsAny(name, "/\\\x00\n\r\x1b%*: ") || strings.HasPrefix(name, ".") || len(name) > 128 {
			t.Errorf("%.40q was accepted", name)
		}
	}
	if now := outsideOfLogs(t, d, tree(t, filepath.Dir(d.dir))); !slices.Equal(outsideOfLogs(t, d, before), now) {
		t.Errorf("files before %q, now %q", before, now)
	}
	shareNothing(t, d, accepted)
	if text := d.page("/metrics") + d.said.String(); !utf8.ValidString(text) || strings.ContainsRune(text, 0x1b) {
		t.Error("metrics or log carry bytes of a name")
	}
}

// outsideOfLogs leaves out the logs of caches, one folder each and files in it, whose names must be tame, and what the catalog is saved as before it
// takes its place.
func outsideOfLogs(t *testing.T, d *daemon, files []string) (rest []string) {
	t.Helper()
	tame := regexp.MustCompile(`^(caches|counters)/[A-Za-z0-9_-]{1,200}(/[a-z0-9.-]{1,64})?$`)
	for _, path := range files {
		if path == filepath.Join(d.dir, "catalog.json.new") {
			continue
		}
		inside, err := filepath.Rel(filepath.Join(d.dir, "log"), path)
		if err != nil || strings.HasPrefix(inside, "..") || !strings.Contains(inside, "/") {
			rest = append(rest, path)
			continue
		}
		if !tame.MatchString(filepath.ToSlash(inside)) {
			t.Errorf("a log is kept in %.200q", inside)
		}
	}
	return rest
}

// shareNothing publishes to each stream its own name, and reads from each what is there.
func shareNothing(t *testing.T, d *daemon, streams []string) {
	t.Helper()
	ctx, cancel := timeout(patience)
	defer cancel()
	c := must(client.Connect(ctx, client.Options{Addrs: []string{d.Client}, TenantID: d.TenantID, Token: d.Token, CAFile: d.CAFile}))(t)
	defer func() { _ = c.Close(ctx) }()
	for _, name := range streams {
		if _, err := c.PublishBatch(ctx, namespace, name, [][]byte{[]byte(name), []byte("end")}); err != nil {
			t.Errorf("publish to %.40q: %v", name, err)
		}
	}
	for _, name := range streams {
		sub, err := c.Subscribe(ctx, namespace, name, client.SubscribeOptions{From: client.Earliest()})
		if err != nil {
			t.Errorf("subscribe to %.40q: %v", name, err)
			continue
		}
		for _, want := range []string{name, "end"} {
			if e, err := sub.Next(ctx); err != nil || string(e.Payload) != want {
				t.Errorf("%.40q holds %s", name, fmt.Sprintf("%.40q, %v", e.Payload, err))
			}
		}
		sub.Close()
	}
}
