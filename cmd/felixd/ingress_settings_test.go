package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestSettingsOfIngressReachTheNode(t *testing.T) {
	parse := func(environ ...string) Config {
		t.Helper()
		all := settings()
		flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
		addFlags(flags, all)
		c, warnings, err := load(all, flags, environ)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%v, %q", err, warnings)
		}
		return c
	}
	d := parse()
	if d.Limits.QueueWait != 0 || d.Limits.IngressWait || d.timingEvery() != 64 || d.Limits.TenantLabels != 100 || d.Limits.AnswerBytes != 64<<20 {
		t.Errorf("defaults: %+v", d)
	}
	c := parse("FELIX_PUBLISH_QUEUE_WAIT_MS=250", "FELIX_PUB_INGRESS_WAIT=1", "FELIX_ANSWER_MEMORY_BYTES=2097152", "FELIX_TENANT_METRICS_MAX=3", "FELIX_TIMING_SAMPLE_EVERY=7")
	if c.Limits.QueueWait != 250*time.Millisecond || !c.Limits.IngressWait || c.Limits.AnswerBytes != 2<<20 || c.Limits.TenantLabels != 3 || c.timingEvery() != 7 {
		t.Errorf("%+v", c)
	}
	if c := parse("FELIX_TIMING_SAMPLE_EVERY=7", "FELIX_DISABLE_TIMINGS=true"); c.timingEvery() != 0 {
		t.Errorf("one in %d is timed although timings are disabled", c.timingEvery())
	}
}
