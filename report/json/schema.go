package json

import (
	_ "embed"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/address"
	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot/carried"
)

// document is one kind of JSON that snapana writes.
type document struct {
	name    string // the value of its field "schema"
	command string
	fields  any // of the type that is written, behind that field
}

// documents lists all kinds. SCHEMA.md has a part for each.
func documents() []document {
	return []document{
		{ReportSchema, "report --json, summary --json", report{}},
		{stateSchema, "state --json, peak --json", stateDoc{}},
		{oomSchema, "oom --json", oom.Log{}},
		{whatifSchema, "whatif --json", whatif.Answer{}},
		{fitSchema, "fit --json", fit.Result{}},
		{changeSchema, "whatif --change --json", change.Answer{}},
		{searchSchema, "whatif --search --json", change.Found{}},
		{statsSchema, "stats --json", analyze.Stats{}},
		{environmentSchema, "compare-env --json", environment.Comparison{}},
		{ghostsSchema, "ghosts --json", ghostsDoc{}},
		{nvmlSchema, "nvml --json", nvmlDoc{}},
		{atSchema, "at --json", address.Answer{}},
		{ranksSchema, "ranks --json", ranksDoc{}},
		{digestsSchema, "digest --json", Digests{}},
		{diffSchema, "diff --json", diffDoc{}},
		{redactionSchema, "redact --json", Redaction{}},
		{gatesSchema, "check --json", checkDoc{}},
		{errorSchema, "every command with --json that fails", errorDoc{}},
	}
}

// Schemas lists the kinds of JSON by the value of their field "schema", each with the commands
// that write it.
func Schemas() (names, commands []string) {
	for _, d := range documents() {
		names, commands = append(names, d.name), append(commands, d.command)
	}
	return names, commands
}

//go:embed SCHEMA.md
var schemaFile string

var schemaText = sync.OnceValue(func() string { return carried.Text(schemaFile) })

// node is a JSON Schema, of draft 2020-12.
type node struct {
	Draft       string           `json:"$schema,omitempty"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Const       string           `json:"const,omitempty"`
	Type        any              `json:"type,omitempty"` // a word, or a list of them
	Properties  map[string]*node `json:"properties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Items       *node            `json:"items,omitempty"`
}

// WriteSchema writes the JSON Schema of one kind, false when there is none of that name. It is
// made from the types that are written and the words of SCHEMA.md, so that it cannot differ from
// either. Fields that it does not name may appear in any release.
func WriteSchema(w io.Writer, name string) (bool, error) {
	for _, d := range documents() {
		if d.name != name {
			continue
		}
		return true, encode(w, "{", d.schema())
	}
	return false, nil
}

// schema describes the document.
func (d *document) schema() *node {
	words := described(d.name)
	n := schemaOf(reflect.TypeOf(d.fields), "", words)
	n.Draft, n.Title = "https://json-schema.org/draft/2020-12/schema", d.name
	n.Description = "Printed by snapana " + d.command
	n.Properties["schema"] = &node{Type: "string", Const: d.name, Description: words["schema"]}
	n.Required = append(n.Required, "schema")
	slices.Sort(n.Required)
	return n
}

// described reads what SCHEMA.md says of each path of one kind. Findings are described once, in
// the report: elsewhere only what differs is.
func described(name string) map[string]string {
	out := section(name)
	for path := range out {
		if name == ReportSchema || path != "findings" && !strings.HasSuffix(path, ".findings") {
			continue
		}
		for p, words := range section(ReportSchema) {
			if field, ok := strings.CutPrefix(p, "verdict.findings[]"); ok && out[path+"[]"+field] == "" {
				out[path+"[]"+field] = words
			}
		}
	}
	return out
}

// section reads the table of one kind in SCHEMA.md.
func section(name string) map[string]string {
	out, in := map[string]string{}, false
	for line := range strings.Lines(schemaText()) {
		if strings.HasPrefix(line, "# ") {
			in = strings.Contains(line, "`"+name+"`")
		}
		if s, ok := strings.CutPrefix(line, "| `"); ok && in {
			path, words, _ := strings.Cut(s, "` |")
			out[path] = strings.Trim(strings.ReplaceAll(words, "`", ""), " |\n")
		}
	}
	return out
}

// schemaOf describes a type as encoding/json writes it. The path of an element of a list ends
// in [], and a list has no path of its own elements' fields but those.
func schemaOf(t reflect.Type, path string, words map[string]string) *node {
	n := &node{Description: words[path]}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		n.Type = "string"
		return n
	}
	switch t.Kind() {
	case reflect.Uint32:
		n.Type = "integer"
		if t.Implements(reflect.TypeFor[json.Marshaler]()) { // a set, by the names of what is in it
			n.Type, n.Items = "array", &node{Type: "string", Description: words[path+"[]"]}
		}
	case reflect.Pointer:
		n = schemaOf(t.Elem(), path, words)
		n.Type = []any{n.Type, "null"}
	case reflect.Bool:
		n.Type = "boolean"
	case reflect.String:
		n.Type = "string"
	case reflect.Float32, reflect.Float64:
		n.Type = "number"
	case reflect.Slice, reflect.Array:
		n.Type = "array"
		elem := t.Elem()
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem() // no list holds null
		}
		n.Items = schemaOf(elem, path+"[]", words)
	case reflect.Map:
		n.Type = "object"
	case reflect.Struct:
		if t.Implements(reflect.TypeFor[json.Marshaler]()) { // a size
			n.Type = "integer"
			break
		}
		n.Type, n.Properties = "object", map[string]*node{}
		n.fields(t, path, words, true)
	default:
		n.Type = "integer"
	}
	return n
}

// fields adds the fields of a struct, and then those of its embedded structs that it has not itself.
// always says that they are written whatever the value: not so behind a pointer.
func (n *node) fields(t reflect.Type, path string, words map[string]string, always bool) {
	var embedded []reflect.Type
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			embedded = append(embedded, f.Type)
			continue
		}
		if name == "-" || !f.IsExported() || n.Properties[name] != nil {
			continue
		}
		typ, omitted := f.Type, strings.Contains(option, "omit") // omitempty, omitzero
		if omitted && typ.Kind() == reflect.Pointer {
			typ = typ.Elem() // nil is left out, not null
		}
		n.Properties[name] = schemaOf(typ, strings.TrimPrefix(path+"."+name, "."), words)
		if always && !omitted {
			n.Required = append(n.Required, name)
		}
	}
	for _, e := range embedded {
		if e.Kind() == reflect.Pointer {
			n.fields(e.Elem(), path, words, false)
		} else {
			n.fields(e, path, words, always)
		}
	}
	slices.Sort(n.Required)
}
