package html

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sorting"
)

//go:embed ranks.tmpl
var ranksTemplate string

//go:embed ranks.css
var ranksStyle string

// WriteRanks writes the snapshots of a run side by side as a page that needs no network and has no script. link gives
// the address of a rank's own report, "" for none. Equal results give equal bytes.
func WriteRanks(w io.Writer, c *ranks.Comparison, link func(*ranks.Rank) string) error {
	t, err := template.New("ranks").Funcs(funcs(platform.Of(""))).Parse(fragmentsTemplate + ranksTemplate)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newRanksPage(c, link)); err != nil {
		return fmt.Errorf("write the page of ranks: %w", err)
	}
	_, err = b.WriteTo(w)
	return err
}

// ranksPage is what ranks.tmpl shows.
type ranksPage struct {
	Policy  string
	Style   template.HTML
	Badge   badge
	Title   string
	Counts  string
	Groups  []rankGroup
	More    int // verdicts that are not shown
	Differ  []string
	Next    *rankNext // nil where all is well
	Figures []heat
	Grids   []*grid
	Axis    []string // the numbers below the strips
	Some    bool     // of the first and the last only
	Dense   bool     // without room for gaps
	Rows    []rankRow
	Left    string // how many ranks have no row
	Merged  int    // ranks of which one cell of a strip shows the highest, 1 where each has its own
}

type rankGroup struct {
	Badge badge
	Text  string
}

// rankNext leads to the rank to look at first.
type rankNext struct {
	Name, Link, Command string
}

// heat is one figure of all ranks: a strip of cells.
type heat struct {
	Name, Class, About string
	Highest            string
	Cells              []heatCell
	Width              int // of all cells
}

type heatCell struct {
	X     int
	Row   string // of the table, "" where that leaves it out
	Title string
	Class string
	Shade string // how much of the color, from 0 to 1
}

// rankRow is a rank in the table.
type rankRow struct {
	ID, Name, File, Link, Fault string
	Badge                       badge
	Cells                       []rankCell
	Stands                      bool // it stands out
	Over                        string
}

type rankCell struct {
	Class, Text string
	Percent     int // of the highest
}

// rankFigures are the rows of the heat map. A value of -1 is unknown.
var rankFigures = []struct {
	name, class, about string
	of                 func(*ranks.Rank) int64
}{
	{"Active peak", "h-active", "the most memory in live blocks", func(k *ranks.Rank) int64 { return k.Active }},
	{"Reserved peak", "h-reserved", "the most memory that the allocator had from the driver",
		func(k *ranks.Rank) int64 { return k.Reserved }},
	{"Growth", "h-growth", "what loops added and did not return", func(k *ranks.Rank) int64 { return k.Growth }},
	{"In pieces", "h-pieces", "free memory in segments that live blocks keep, when it was most",
		func(k *ranks.Rank) int64 { return k.Pieces }},
}

// Bounds of the page.
const (
	maxCells     = 1024 // of a strip
	maxNumbers   = 16   // below the strips
	maxGaps      = 100  // cells that have gaps between them
	maxRankRows  = 4096
	maxRankGroup = 12
)

func newRanksPage(c *ranks.Comparison, link func(*ranks.Rank) string) *ranksPage {
	p := &ranksPage{Style: template.HTML("<style>" + styles() + ranksStyle + "</style>"), Counts: chart.RankCounts(c),
		Policy: fmt.Sprintf("default-src 'none'; style-src-elem '%s'; style-src-attr 'unsafe-inline'; base-uri 'none'; "+
			"form-action 'none'", hash(styles()+ranksStyle)), Badge: statusBadge(""),
		Title: "no snapshot could be read"}
	for i := range c.Groups {
		if i == maxRankGroup {
			p.More = len(c.Groups) - i
			break
		}
		g := &c.Groups[i]
		p.Groups = append(p.Groups, rankGroup{statusBadge(g.Status), text(chart.RankGroup(c, g))})
	}
	if len(p.Groups) > 0 {
		p.Badge, p.Title, p.Groups = p.Groups[0].Badge, p.Groups[0].Text, p.Groups[1:]
	}
	if len(c.Ranks) > 0 {
		p.Differ = chart.RankDifferences(c)
	}
	if worst := c.Worst(); worst != nil {
		p.Next = &rankNext{chart.RankName(worst, "rank"), link(worst), "snapana report " + chart.Arg(worst.File)}
	}
	order := make([]int, len(c.Ranks)) // by number, those without one behind
	for i := range order {
		order[i] = i
	}
	sorting.Stable(order, func(a, b int) int {
		return cmp.Compare(uint(c.Ranks[a].Number), uint(c.Ranks[b].Number))
	})
	highest := slices.Repeat([]int64{-1}, len(rankFigures)) // unknown
	for i := range c.Ranks {
		for f := range rankFigures {
			highest[f] = max(highest[f], rankFigure(c, i, f))
		}
	}
	p.Merged = max((len(order)+maxCells-1)/maxCells, 1)
	for f := range rankFigures {
		p.Figures = append(p.Figures, newHeat(c, order, f, highest[f], p.Merged))
	}
	p.Figures = append(p.Figures, verdicts(c, order, p.Merged))
	p.Grids = grids(c, order)
	p.Dense = len(order) > maxGaps
	if p.Some = len(order) > maxNumbers; p.Some {
		p.Axis = []string{number(&c.Ranks[order[0]]), number(&c.Ranks[order[len(order)-1]])}
	} else {
		for _, i := range order {
			p.Axis = append(p.Axis, number(&c.Ranks[i]))
		}
	}
	if n := len(order) - maxRankRows; n > 0 {
		p.Left = units.Plural(n, "more rank has", "more ranks have")
	}
	for _, i := range order {
		if rowID(i) != "" {
			p.Rows = append(p.Rows, newRankRow(c, i, highest, link))
		}
	}
	return p
}

// number is that of a rank.
func number(k *ranks.Rank) string {
	if k.Number < 0 {
		return "?"
	}
	return fmt.Sprint(k.Number)
}

// rowID names the row of a rank in the table, "" for none: those of most interest, which come first, have one.
func rowID(i int) string {
	if i >= maxRankRows {
		return ""
	}
	return fmt.Sprintf("rank-%d", i)
}

// cells puts each few of the ranks in order together and asks for what they show.
func cells(order []int, merged int, show func(some []int) heatCell) (out []heatCell) {
	for some := range slices.Chunk(order, merged) {
		cell := show(some)
		cell.X = len(out)
		out = append(out, cell)
	}
	return out
}

func newHeat(c *ranks.Comparison, order []int, f int, highest int64, merged int) heat {
	about := &rankFigures[f]
	h := heat{Name: about.name, About: about.about, Class: about.class, Highest: chart.RankFigure(highest)}
	h.Cells = cells(order, merged, func(some []int) heatCell {
		best := slices.MaxFunc(some, func(a, b int) int {
			return cmp.Compare(rankFigure(c, a, f), rankFigure(c, b, f))
		})
		k, n := &c.Ranks[best], rankFigure(c, best, f)
		cell := heatCell{Row: rowID(best), Class: "h-unknown", Shade: "1"}
		if n >= 0 {
			cell.Class = about.class
			cell.Shade = fmt.Sprintf("%.3f", 0.06+0.94*float64(n)/float64(max(highest, 1)))
		}
		cell.Title = text(chart.RankName(k, "rank") + ": " + chart.RankFigure(n))
		return cell
	})
	h.Width = max(len(h.Cells), 1)
	return h
}

// rankFigure is one of a rank, -1 where it is not known.
func rankFigure(c *ranks.Comparison, i, f int) int64 { return rankFigures[f].of(&c.Ranks[i]) }

// verdicts are a strip of the verdicts' colors; of ranks that are put together the worst.
func verdicts(c *ranks.Comparison, order []int, merged int) heat {
	h := heat{Name: "Verdict", About: "by its color, as in the table", Class: "h-verdict"}
	h.Cells = cells(order, merged, func(some []int) heatCell {
		worst := slices.Min(some) // the ranks are in order of interest
		k := &c.Ranks[worst]
		cell := heatCell{Row: rowID(worst), Class: "h-unknown", Shade: "0.8"}
		word := "could not be read"
		if k.Fault == "" {
			cell.Class, word = "t-"+statusBadge(k.Status).Class, k.Status.Word()
		}
		cell.Title = text(chart.RankName(k, "rank") + ": " + word)
		return cell
	})
	h.Width = max(len(h.Cells), 1)
	return h
}

func newRankRow(c *ranks.Comparison, i int, highest []int64, link func(*ranks.Rank) string) rankRow {
	k := &c.Ranks[i]
	row := rankRow{ID: rowID(i), Name: number(k), File: text(k.File), Fault: text(k.Fault)}
	if k.Fault != "" {
		return row
	}
	row.Badge, row.Link = statusBadge(k.Status), link(k)
	row.Stands = k.Stands
	if like := k.Active - k.Over; like > 0 && k.Active >= 0 {
		row.Over = fmt.Sprintf("%+.1f%%", 100*float64(k.Over)/float64(like))
	}
	for f := range rankFigures {
		n := rankFigure(c, i, f)
		cell := rankCell{Class: rankFigures[f].class, Text: chart.RankFigure(n)}
		if n >= 0 {
			cell.Percent = int(100 * float64(n) / float64(max(highest[f], 1)))
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}
