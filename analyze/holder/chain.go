package holder

import (
	"fmt"
	"strings"
)

// maxWords bounds the hops of a chain that are written out.
const maxWords = 40

// words is a chain for a reader, hop by hop.
func (g *graph) words(chain []hop) []string {
	var parts []string
	graphNodes := 0
	flush := func() {
		if graphNodes > 0 {
			parts = append(parts, fmt.Sprintf("autograd graph (%d nodes)", graphNodes))
			graphNodes = 0
		}
	}
	for i, h := range chain {
		if i == maxWords {
			parts = append(parts, "...")
			break
		}
		label := g.label(h.tag)
		kind := g.edgeKind(h.tag)
		if kind != "grad_fn" && kind != "next" {
			flush()
		}
		switch kind {
		case "":
			if h.from == g.root && int(h.to) < g.objects {
				parts = append(parts, g.rootWords(h.to))
			} else if h.from == g.root {
				parts = append(parts, "unreachable cycle")
			}
		case "grad_fn":
			graphNodes++
		case "next":
			graphNodes += int(g.depth[h.to])
		case "index", "key":
			if n := len(parts); n > 0 {
				parts[n-1] += "[" + label + "]"
			}
		case "contents":
		case "closure":
			parts = append(parts, "closure cell "+label)
		case "attr", "hook":
			parts = append(parts, "."+label)
		case "local", "global":
			parts = append(parts, label)
		default:
			parts = append(parts, strings.TrimSpace(strings.ReplaceAll(kind, "_", " ")+" "+label))
		}
	}
	flush()
	return parts
}

func (g *graph) rootWords(v int32) string {
	switch g.rootOf(v) {
	case "module":
		return "module " + g.name(v)
	case "frame":
		return placed(g.name(v), g.file(v), g.line(v))
	case "class":
		return "class " + short(g.name(v))
	case "cpp":
		return "C++"
	case "unknown":
		return "hidden referrer of " + g.object(v)
	}
	return g.rootOf(v)
}
