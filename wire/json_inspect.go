package wire

// Members that only the view of a shard has.

// shardView is an object that may come once.
func (f *fields) shardView(name string, v *ShardView) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
	} else if !f.once() {
		return
	}
	for o := f.object("view."); f.more(&o); {
		v.fields(f)
	}
}

func (f *fields) assignment(name string, v *Opt[AssignmentView]) {
	if !f.optObject(name, v.Set) {
		return
	}
	v.Set = true
	for o := f.object("view.assignment."); f.more(&o); {
		v.V.fields(f)
	}
}

func (f *fields) fence(name string, v *Opt[FenceView]) {
	if !f.optObject(name, v.Set) {
		return
	}
	v.Set = true
	for o := f.object("view.fence."); f.more(&o); {
		v.V.fields(f)
	}
}

func (f *fields) lease(name string, v *Opt[LeaseView]) {
	if !f.optObject(name, v.Set) {
		return
	}
	v.Set = true
	for o := f.object("view.lease."); f.more(&o); {
		v.V.fields(f)
	}
}

const leastReplica = len(`{"node_id":"","role":""},`)

// replicas is an optional array of at most MaxShardReplicas objects; an empty one is left out.
func (f *fields) replicas(name string, v *[]ReplicaView) {
	if f.pass == writing && len(*v) == 0 || !f.array(name, may) {
		return
	}
	if f.pass == reading {
		*v = emptyOf[ReplicaView](f.room(leastReplica, MaxShardReplicas))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, ReplicaView{})
		}
		for o := f.object("view.replicas."); f.more(&o); {
			(*v)[i].fields(f)
		}
	}
}

const leastNode = len(`"",`)

// nodes is an array of at most MaxShardReplicas node ids; absent is empty, and an empty one is written.
func (f *fields) nodes(name string, v *[]string) {
	if !f.array(name, may) {
		return
	}
	if f.pass == reading {
		*v = emptyOf[string](f.room(leastNode, MaxShardReplicas))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, f.scanner.string(MaxNameBytes))
		} else {
			f.out = appendString(f.out, (*v)[i])
		}
	}
}
