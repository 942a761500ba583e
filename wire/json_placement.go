package wire

// Members that only placement messages have.

const (
	leastBroker     = len(`{"node_id":"","addr":""},`)
	leastShardOwner = len(`{"shard":0,"generation":0},`)
)

// brokers is an array of objects; an empty one is written too.
func (f *fields) brokers(name string, v *[]Broker) {
	if !f.array(name, must) {
		return
	}
	if f.pass == reading {
		*v = make([]Broker, 0, f.room(leastBroker, unlimited))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, Broker{})
		}
		for o := f.object("brokers."); f.more(&o); {
			(*v)[i].fields(f)
		}
	}
}

// owners is an array of at most MaxShardOwners objects; an empty one is written too.
func (f *fields) owners(name string, v *[]ShardOwner) {
	if !f.array(name, must) {
		return
	}
	if f.pass == reading {
		*v = make([]ShardOwner, 0, f.room(leastShardOwner, MaxShardOwners))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, ShardOwner{})
		}
		for o := f.object("owners."); f.more(&o); {
			(*v)[i].fields(f)
		}
	}
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
