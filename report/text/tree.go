package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

const (
	leastShare = 100  // calls below a hundredth of the whole are summed up
	maxTree    = 1000 // lines of a tree
	maxIndent  = 40
)

// tree prints live memory by call path like a flame graph from above. Calls that made only one
// call and allocated nothing themselves are joined with it.
func (d *doc) tree(a *attribution.Answer, top int) {
	by := map[bool]string{true: "modules", false: "calls"}[a.Holders.By == attribution.ByModule]
	table := d.table(bold, num("active", 10), num("share", 7), clipped(by+", outermost first"))
	out := a.Holders.LeftOut
	t := &tree{table, a.State.Totals.Active, top, d.height() + maxTree}
	t.below(a.Tree, 0)
	if out.Count > 0 {
		t.node(out.Rounded, 0, "(left out by --match and --exclude)")
	}
	t.node(a.Tree.Rounded+out.Rounded, 0, "total")
}

type tree struct {
	*table
	whole int64
	top   int
	end   int // of the lines
}

func (t *tree) node(bytes int64, depth int, text string) {
	t.row(units.Size(bytes), units.Percent(bytes, t.whole), strings.Repeat(" ", min(2*depth, maxIndent))+text)
}

// below prints what a node consists of.
func (t *tree) below(n *attribution.Node, depth int) {
	self, small, hidden := n.Self(), attribution.Sum{}, 0
	if self.Rounded > 0 && depth > 0 {
		t.node(self.Rounded, depth, "(allocated here)")
	}
	for i := range n.Children {
		c := &n.Children[i]
		if c.Rounded*leastShare < t.whole || t.top > 0 && i >= t.top || t.height() >= t.end {
			small.Add(c.Sum)
			hidden++
			continue
		}
		chain := []string{c.Name}
		for len(c.Children) == 1 && c.Self().Count == 0 {
			c = &c.Children[0]
			chain = append(chain, c.Name)
		}
		t.node(c.Rounded, depth, join(chain, t.width-19-min(2*depth, maxIndent)))
		if len(c.Children) > 0 {
			t.below(c, depth+1)
		}
	}
	if hidden > 0 {
		t.node(small.Rounded, depth, "... and "+units.Plural(hidden, "smaller call"))
	}
}

// join writes a chain of calls in n columns: the outermost one, and as many of the innermost
// ones as fit.
func join(chain []string, n int) string {
	short := make([]string, len(chain))
	for i, c := range chain {
		short[i] = frames.Bare(chart.Plain(c))
	}
	const sep = " > "
	if s := strings.Join(short, sep); utf8.RuneCountInString(s) <= n || len(chain) < 3 {
		return s
	}
	for from := 2; ; from++ {
		s := fmt.Sprintf("%s%s(%d more)%s%s", short[0], sep, from-1, sep, strings.Join(short[from:], sep))
		switch {
		case utf8.RuneCountInString(s) <= n:
			return s
		case from == len(short)-1:
			return fmt.Sprintf("(%d more)%s%s", from, sep, short[from])
		}
	}
}
