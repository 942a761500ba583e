package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// enum is a flag whose values are words, with the control plane's words for them.
type enum struct {
	flag   string
	values [][2]string // flag word, API word
}

func streamEnums() []enum {
	return []enum{
		{"kind", [][2]string{{"stream", "Stream"}, {"queue", "Queue"}}},
		consistencyEnum(),
		{"delivery", [][2]string{{"at-least-once", "AtLeastOnce"}, {"at-most-once", "AtMostOnce"}}},
		{"routing", [][2]string{{"modulo", "modulo"}, {"jump-hash", "jump_hash"}}},
	}
}

func consistencyEnum() enum {
	return enum{"consistency", [][2]string{{"leader", "Leader"}, {"quorum", "Quorum"}}}
}

func (e enum) names() []string {
	names := make([]string, len(e.values))
	for i, v := range e.values {
		names[i] = v[0]
	}
	return names
}

// read returns the API word of a given flag; nil when the flag was not given. Both spellings count, in either case.
func (e enum) read(set *pflag.FlagSet) (*string, error) {
	if !set.Changed(e.flag) {
		return nil, nil
	}
	text, err := set.GetString(e.flag)
	if err != nil {
		return nil, err
	}
	for _, v := range e.values {
		if strings.EqualFold(text, v[0]) || strings.EqualFold(text, v[1]) {
			return &v[1], nil
		}
	}
	return nil, usagef("--%s is %q; use %s", e.flag, text, strings.Join(e.names(), " or "))
}

// given returns the value of a flag; nil when it was not given.
func given[T any](set *pflag.FlagSet, name string, get func(string) (T, error)) (*T, error) {
	if !set.Changed(name) {
		return nil, nil
	}
	v, err := get(name)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// streamSpecOf reads the flags of stream create.
func streamSpecOf(set *pflag.FlagSet, name string) (*streamSpec, error) {
	s := &streamSpec{Stream: name}
	for i, target := range []**string{&s.Kind, &s.Consistency, &s.Delivery, &s.Routing} { // in the order of streamEnums
		word, err := streamEnums()[i].read(set)
		if err != nil {
			return nil, err
		}
		*target = word
	}
	var err error
	if s.Shards, err = given(set, "shards", set.GetUint32); err != nil {
		return nil, err
	}
	if s.ReplicationFactor, err = given(set, "replication", set.GetUint32); err != nil {
		return nil, err
	}
	if s.Durable, err = given(set, "durable", set.GetBool); err != nil {
		return nil, err
	}
	if s.Region, err = given(set, "region", set.GetString); err != nil {
		return nil, err
	}
	if s.Compress, err = given(set, "compress", set.GetBool); err != nil {
		return nil, err
	}
	if s.Retention, err = retentionOf(set); err != nil {
		return nil, err
	}
	return s, nil
}
