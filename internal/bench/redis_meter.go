package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// redisInfo bounds a section of what a redis-server tells of itself; it has a few hundred bytes.
const redisInfo = 64 << 10

// Usage implements Meter: the CPU time of the process.
func (r *Redis) Usage(context.Context) (ServerUsage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, _, err := r.control.do(make([]byte, redisInfo), []byte("INFO"), []byte("cpu"))
	if err != nil {
		return ServerUsage{}, fmt.Errorf("ask redis-server: %w", err)
	}
	u := ServerUsage{At: time.Now()}
	var cpu float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(infoField(info, name), 64)
		if err != nil {
			return ServerUsage{}, fmt.Errorf("ask redis-server: %s is no number: %w", name, err)
		}
		cpu += seconds
	}
	u.CPU = ptr(time.Duration(cpu * float64(time.Second)))
	return u, nil
}

// infoField is the value of a line "name:value"; "" when there is none.
func infoField(info []byte, name string) string {
	for line := range strings.Lines(string(info)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
