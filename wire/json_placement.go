package wire

// Members that only placement messages have. Their lists may be given once: an entry takes more memory than the
// shortest text that describes it, so the limit on entries must hold for the message as a whole.

// brokers is an array of objects; an empty one is written too.
func (f *fields) brokers(name string, v *[]Broker) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = append(f.out, '[')
		for i := range *v {
			f.openElement(i)
			(*v)[i].fields(f)
			f.out = append(f.out, '}')
		}
		f.out = append(f.out, ']')
		return
	}
	if *v != nil {
		f.fail("given twice")
		return
	}
	*v = make([]Broker, 0, f.elements())
	for f.nextElement(len(*v) == 0) {
		*v = append(*v, Broker{})
		outer, prefix := f.enter("brokers.")
		for f.member() {
			(*v)[len(*v)-1].fields(f)
		}
		f.leave(outer, prefix)
	}
}

// owners is an array of at most MaxShardOwners objects; an empty one is written too.
func (f *fields) owners(name string, v *[]ShardOwner) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = append(f.out, '[')
		for i := range *v {
			f.openElement(i)
			(*v)[i].fields(f)
			f.out = append(f.out, '}')
		}
		f.out = append(f.out, ']')
		return
	}
	if *v != nil {
		f.fail("given twice")
		return
	}
	n := f.elements()
	if n > MaxShardOwners {
		f.fail("%d entries are over the limit of %d", n, MaxShardOwners)
		return
	}
	*v = make([]ShardOwner, 0, n)
	for f.nextElement(len(*v) == 0) {
		*v = append(*v, ShardOwner{})
		outer, prefix := f.enter("owners.")
		for f.member() {
			(*v)[len(*v)-1].fields(f)
		}
		f.leave(outer, prefix)
	}
}

func (f *fields) openElement(i int) {
	if i > 0 {
		f.out = append(f.out, ',')
	}
	f.out = append(f.out, '{')
}

// routing is an optional mapping; modulo is the default and left out.
func (f *fields) routing(name string, v *Routing) {
	switch {
	case !f.at(name, may):
	case f.pass == writing:
		if *v != RoutingModulo {
			f.put(name)
			f.out = appendString(f.out, v.String())
		}
	case f.null():
		*v = RoutingModulo
	default:
		text := f.text(MaxTypeBytes)
		r, ok := ParseRouting(string(text))
		if !ok {
			f.fail(`%.32q is neither "modulo" nor "jump_hash"`, text)
		}
		*v = r
	}
}

func (f *fields) resourceKind(name string, v *ResourceKind) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = appendString(f.out, v.String())
		return
	}
	switch text := f.text(MaxTypeBytes); string(text) {
	case "stream":
		*v = ResourceStream
	case "cache":
		*v = ResourceCache
	default:
		f.fail(`%.32q is neither "stream" nor "cache"`, text)
	}
}
