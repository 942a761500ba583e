package tidy

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

const (
	whyTable = "the table in an actor's doc comment is its protocol: what it does not tell, nobody sends, watches or tests"
	doTable  = "write path, lanes, blocks, failure, then the heading in, from, then and one row for each message, as the other actors do"
	whySpawn = "the table of an actor can only be compared with what it really accepts"
)

// runtimeRows are rows for what the runtime itself tells an actor.
var runtimeRows = []string{"Accepted", "Drain", "Started", "Stop", "Stopped", "Stopping", "Terminated", "Wake"}

// Actors compares each actor's doc table with the sealed interface it is spawned with. runtime is the path of the package that
// declares Turn, Spec and CellKind. A row is a message, a constant of type CellKind, or a word of the runtime; every exported
// message has a row.
func Actors(t *Tree, runtime string) []Finding {
	h, ok := t.findActors(runtime)
	if !ok {
		return []Finding{{File: runtime, What: "there is no package " + runtime, Why: whySpawn, Do: "name the package of the actor runtime in the test of this rule"}}
	}
	sums := t.sumTypes()
	var out []Finding
	for _, s := range h.spawns {
		out = append(out, t.spawnFindings(s, sums)...)
	}
	for _, a := range h.actors {
		table := parseTable(a.doc)
		if missing := table.missing(); len(missing) > 0 {
			out = append(out, t.finding(a.pos, fmt.Sprintf("the doc comment of actor %s lacks %s", a.name.Name(), strings.Join(missing, ", ")), whyTable, doTable))
			continue
		}
		out = append(out, t.tableFindings(&h, a, table)...)
	}
	return out
}

// spawnFindings judges one Spec by itself.
func (t *Tree) spawnFindings(s spawn, sums []sumType) []Finding {
	var out []Finding
	if len(s.makes) == 0 {
		out = append(out, t.finding(s.pos, "this Spec does not show which actor it makes", whySpawn, "make the actor inside the literal's New, or in a function of this package that New names"))
	}
	accept := typeName(s.accept)
	switch {
	case accept == nil:
		out = append(out, t.finding(s.pos, "this Spec accepts "+s.accept.String()+", which is no named type of its own", whySpawn, "declare a sealed interface for the actor's messages"))
	case types.IsInterface(accept.Type()) && !slices.ContainsFunc(sums, func(x sumType) bool { return x.name == accept }):
		out = append(out, t.finding(s.pos, fmt.Sprintf("this Spec accepts %s, which is not marked %s", accept.Name(), sumMark), whySpawn, "seal the interface with an unexported method and mark it"))
	}
	return out
}

// tableFindings compares a table with everything its actor is spawned with.
func (t *Tree) tableFindings(h *cast, a actorType, table actorTable) []Finding {
	var out []Finding
	var messages []*types.TypeName
	spawned := false
	for _, s := range h.spawns {
		if slices.Contains(s.makes, a.name) {
			spawned = true
			messages = append(messages, accepted(s.accept)...)
		}
	}
	if !spawned {
		return []Finding{t.finding(a.pos, "no Spec makes actor "+a.name.Name(), whySpawn, "spawn it with a Spec literal whose New names it, or remove it")}
	}
	for _, m := range messages {
		if m.Exported() && !slices.Contains(table.rows, m.Name()) && !slices.Contains(table.rows, m.Pkg().Name()+"."+m.Name()) {
			out = append(out, t.finding(a.pos, fmt.Sprintf("actor %s accepts %s, which its table does not have", a.name.Name(), m.Name()), whyTable, "add a row for it"))
		}
	}
	for _, row := range table.rows {
		if !h.known(row, a.name.Pkg(), messages) {
			out = append(out, t.finding(a.pos, fmt.Sprintf("the table of actor %s has %q, which it does not accept", a.name.Name(), row), whyTable,
				"name a message it is spawned with, a constant of type CellKind, or one of "+strings.Join(runtimeRows, ", ")))
		}
	}
	return out
}

// accepted are the messages behind the M of a Spec: the members of an interface, or the one type itself.
func accepted(m types.Type) []*types.TypeName {
	o := typeName(m)
	switch {
	case o == nil:
		return nil
	case types.IsInterface(o.Type()) && o.Pkg() != nil:
		return members(o)
	case types.IsInterface(o.Type()):
		return nil
	}
	return []*types.TypeName{o}
}

// known reports whether a row of a table stands for something its actor can get.
func (h *cast) known(row string, from *types.Package, messages []*types.TypeName) bool {
	if slices.Contains(runtimeRows, row) {
		return true
	}
	if slices.ContainsFunc(messages, func(m *types.TypeName) bool { return row == m.Name() || row == m.Pkg().Name()+"."+m.Name() }) {
		return true
	}
	pkg, name := from, row
	if before, after, qualified := strings.Cut(row, "."); qualified {
		i := slices.IndexFunc(from.Imports(), func(p *types.Package) bool { return p.Name() == before })
		if i < 0 {
			return false
		}
		pkg, name = from.Imports()[i], after
	}
	c, ok := pkg.Scope().Lookup(name).(*types.Const)
	return ok && h.isRuntime(typeName(c.Type()), "CellKind")
}
