// Package settingsfile reads files of settings: YAML that is a flat mapping of names to plain or quoted values, in one document. Whatever else
// YAML has is refused, with its line and what to do.
package settingsfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// BytesMax is the most that a file may have, in bytes: hundreds of times what all settings need.
const BytesMax = 1 << 20

const (
	// mistakesTold is how many mistakes of a file are told at once.
	mistakesTold = 20
	// flatList is what a file has to be.
	flatList = "settings are a flat list of lines like `pub_workers_per_conn: 4`"
)

// Value is what a file says of a setting.
type Value struct {
	Text string // as it stands, without quotes
	Line int    // of its name, from 1
}

// Mistake is something in a file that is not understood.
type Mistake struct {
	Path    string
	Line    int    // from 1; 0: it is not known, or the whole file
	Problem string // what is wrong, and what to do
}

// Error names the place.
func (m *Mistake) Error() string {
	if m.Line == 0 {
		return fmt.Sprintf("%s: %s", m.Path, m.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", m.Path, m.Line, m.Problem)
}

// Parse reads the content of a file, whose path is for mistakes only. problem says why a name is no setting's, and is empty for those that
// are. The error is a *Mistake or joins some, the first 20 at most; the values are those without. The content is not kept.
func Parse(path string, content []byte, problem func(name string) string) (map[string]Value, error) {
	nodes, mistake := mapping(content)
	if mistake != nil {
		mistake.Path = path
		return nil, mistake
	}
	values := map[string]Value{}
	var wrong []error
	for i := 0; i+1 < len(nodes) && len(wrong) < mistakesTold; i += 2 {
		name, value := nodes[i], nodes[i+1]
		before, twice := values[name.Value]
		said := problemOf(name, value, problem)
		if said == "" && twice {
			said = fmt.Sprintf("%s is set in line %d already; leave one of them out", name.Value, before.Line)
		}
		if said != "" {
			wrong = append(wrong, &Mistake{path, name.Line, said})
			continue
		}
		values[name.Value] = Value{value.Value, name.Line}
	}
	return values, errors.Join(wrong...)
}

// mapping is what the only document of a file has: names and values in turn, none when it is empty.
func mapping(content []byte) ([]*yaml.Node, *Mistake) {
	if len(content) > BytesMax {
		return nil, &Mistake{Problem: fmt.Sprintf("it has more than %d bytes, and is no file of settings", BytesMax)}
	}
	documents := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(err)
	case len(document.Content) != 1:
		return nil, &Mistake{Problem: flatList}
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		return nil, &Mistake{Line: second.Line, Problem: "a second document begins; " + flatList}
	case !errors.Is(err, io.EOF):
		return nil, syntax(err)
	}
	switch top := document.Content[0]; {
	case top.Kind == yaml.MappingNode && top.Anchor == "" && top.Style&yaml.TaggedStyle == 0:
		return top.Content, nil
	case top.Kind == yaml.ScalarNode && top.Tag == "!!null" && top.Value == "": // nothing but comments
		return nil, nil
	default:
		return nil, &Mistake{Line: top.Line, Problem: flatList}
	}
}

// place is how the library begins its errors; it names no line for the first one.
var place = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntax(err error) *Mistake {
	text := err.Error()
	m := &Mistake{Problem: place.ReplaceAllString(text, "") + "; " + flatList}
	if found := place.FindStringSubmatch(text); found != nil && found[1] != "" {
		m.Line, _ = strconv.Atoi(found[1]) // digits, of no more lines than a file has bytes
	}
	return m
}

// problemOf says why a line sets nothing; empty if it does.
func problemOf(name, value *yaml.Node, problem func(name string) string) string {
	plain := value.Kind == yaml.ScalarNode && value.Anchor == "" && value.Style&(yaml.TaggedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if name.Kind != yaml.ScalarNode || name.Anchor != "" || name.Style&yaml.TaggedStyle != 0 {
		return "its name is no word; " + flatList
	}
	switch said := problem(name.Value); {
	case said != "" && value.Kind != yaml.ScalarNode:
		return said + "; " + flatList
	case said != "":
		return said
	case !plain:
		return name.Value + ": it is neither a word nor a number; put it into quotes if it is meant as it stands"
	case value.Tag == "!!null":
		return name.Value + `: it has no value; write "" for an empty one`
	}
	return ""
}
