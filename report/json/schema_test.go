package json

import (
	"bytes"
	"testing"
)

// TestSchemasDescribed holds SCHEMA.md and the types together: each field of each kind is
// described, and nothing else is.
func TestSchemasDescribed(t *testing.T) {
	for _, d := range documents() {
		words := described(d.name)
		fields := map[string]bool{}
		var walk func(n *node, path string)
		walk = func(n *node, path string) {
			for name, p := range n.Properties {
				at := name
				if path != "" {
					at = path + "." + name
				}
				fields[at] = true
				walk(p, at)
				for list, of := p.Items, at+"[]"; list != nil; list, of = list.Items, of+"[]" {
					if list.Properties == nil {
						fields[of] = true
					}
					walk(list, of)
				}
			}
		}
		walk(d.schema(), "")
		for f := range fields {
			if _, ok := words[f]; !ok {
				t.Errorf("%s: SCHEMA.md does not describe %s", d.name, f)
			}
		}
		for f := range words {
			if !fields[f] {
				t.Errorf("%s: SCHEMA.md describes %s, which is not written", d.name, f)
			}
		}
	}
}

func TestWriteSchema(t *testing.T) {
	var b bytes.Buffer
	if ok, err := WriteSchema(&b, "snapana.nothing/1"); ok || err != nil || b.Len() > 0 {
		t.Errorf("a schema of nothing: %v, %s", err, b.Bytes())
	}
}
