package main

import (
	"context"
	"testing"
)

func TestCacheValuesAreWrittenByteForByte(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.input("line\n\xff").run(exitOK, "cache", "put", "c", "k")
	wantText(t, c.run(exitOK, "cache", "get", "c", "k"), "line\n\xff")
	wantText(t, c.run(exitOK, "cache", "get", "c", "k", "--json"), `{"namespace":"default","cache":"c","key":"k","value_base64":"bGluZQr/"}`+"\n")
	c.run(exitOK, "cache", "put", "c", "k", "text", "--ttl", "1h")
	wantText(t, c.run(exitOK, "cache", "get", "c", "k", "--json"), `{"namespace":"default","cache":"c","key":"k","value":"text"}`+"\n")
	c.onTerminal()
	wantText(t, c.run(exitOK, "cache", "get", "c", "k"), "text\n")
	wantText(t, c.run(exitOK, "cache", "put", "c", "k", "v"), "wrote 1 byte to key \"k\" in cache default/c\n")
	wantText(t, c.run(exitOK, "cache", "rm", "c", "k"), "removed key \"k\" from cache default/c\n")
}

func TestKeyThatIsNotThereIsExitCode5(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	wantText(t, c.run(exitNotFound, "cache", "get", "c", "k"), "")
	wantContains(t, c.stderr.String(), `key "k" in cache default/c does not exist`)
	c.run(exitNotFound, "cache", "rm", "c", "k")
	c.run(exitNotFound, "cache", "get", "nosuch", "k")
	c.run(exitUsage, "cache", "put", "c", "k", "v", "--ttl", "-1s")
	c.onTerminal().run(exitUsage, "cache", "put", "c", "k")
}

func TestExpiredValueIsNotThere(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.run(exitOK, "cache", "put", "c", "k", "v", "--ttl", "1ns") // one millisecond, over before the next process could start
	for ctx, cancel := context.WithTimeout(context.Background(), patience); ctx.Err() == nil; {
		if run(ctx, []string{"cache", "get", "c", "k"}, c.sys) == exitNotFound {
			cancel()
			return
		}
	}
	t.Fatal("the value outlived its time")
}

func TestFunctionsThatMakeBytesSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain é": "plain é", "tab\t": `tab\t`, "\x1b[0m": `\x1b[0m`, "\xff": `\xff`, "\u200b": `\u200b`, "": "",
	} {
		if got := escape([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
