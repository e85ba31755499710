package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/report/internal/chart"
)

// grid is one figure of ranks in two dimensions: shades of a color, each of which is one path.
type grid struct {
	Name, About   string
	Width, Height int
	Pixels        int     // that it is high
	Shades        []shade // from the lowest on
	Cells         []gridCell
	Rows          []string // names of the rows, or of the first and the last
	Columns       []string
	Some          bool // of the rows the first and the last only
	Low, High     string
}

type shade struct{ Opacity, Path string }

// gridCell tells what a cell is.
type gridCell struct {
	X, Y  int
	Row   string // of the table, "" where that leaves it out
	Title string
}

// Bounds of grids.
const (
	maxGridColumns = 256
	maxGridRows    = 128
	maxGridCells   = 2048 // that have words
	maxNamed       = 128  // cells of a row that have
	shades         = 12
)

// newGrid shades values, of which -1 is unknown: more of the color where they are closer to the highest.
func newGrid(values [][]int64) *grid {
	g := &grid{Height: len(values)}
	low, high := int64(-1), int64(-1)
	for _, row := range values {
		g.Width = max(g.Width, len(row))
		for _, v := range row {
			if v >= 0 && (low < 0 || v < low) {
				low = v
			}
			high = max(high, v)
		}
	}
	if high < 0 {
		return nil
	}
	g.Pixels = min(max(g.Height*14, 84), 448)
	g.Low, g.High = chart.RankFigure(low), chart.RankFigure(high)
	var paths [shades]strings.Builder
	for y, row := range values {
		for x, v := range row {
			if v >= 0 {
				level := int64(shades-1) * (v - low) / max(high-low, 1)
				fmt.Fprintf(&paths[level], "M%d %dh1v1h-1z", x, y)
			}
		}
	}
	for i := range paths {
		if paths[i].Len() > 0 {
			g.Shades = append(g.Shades, shade{fmt.Sprintf("%.3f", 0.08+0.92*float64(i)/(shades-1)), paths[i].String()})
		}
	}
	return g
}

// meshGrid has a row for each place on the axis by which the peaks differ most, and in it the ranks at that place.
func meshGrid(c *ranks.Comparison) *grid {
	if c.Mesh == nil {
		return nil
	}
	spread := func(a *ranks.Axis) int64 { return slices.Max(a.Medians) - slices.Min(a.Medians) }
	axis := &c.Mesh.Axes[0]
	for i := range c.Mesh.Axes {
		if a := &c.Mesh.Axes[i]; spread(a) > spread(axis) {
			axis = a
		}
	}
	if axis.Size > maxGridRows || c.Expected == 0 && !c.Mesh.Inferred {
		return nil
	}
	size := c.Expected
	for i := range c.Ranks {
		size = max(size, c.Ranks[i].Number+1)
	}
	wide := (size + axis.Size - 1) / axis.Size
	per := (wide + maxGridColumns - 1) / maxGridColumns
	wide = (wide + per - 1) / per
	values := make([][]int64, axis.Size)
	best := make([][]int, axis.Size)
	for y := range values {
		values[y], best[y] = slices.Repeat([]int64{-1}, wide), slices.Repeat([]int{-1}, wide)
	}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Number < 0 || k.Active < 0 {
			continue
		}
		// The ranks at one place are counted along the other axes, in their order.
		y, x := axis.Place(k.Number), (k.Number/(axis.Stride*axis.Size)*axis.Stride+k.Number%axis.Stride)/per
		if k.Active > values[y][x] {
			values[y][x], best[y][x] = k.Active, i
		}
	}
	g := newGrid(values)
	if g == nil {
		return nil
	}
	name := text(axis.Name)
	if c.Mesh.Inferred {
		name = "stage"
	}
	g.Name, g.About = "Active peak by "+name, "Each row is a place on "+name+", each cell a rank in it"
	if c.Mesh.Inferred {
		g.About = "Stages are inferred from the peaks; each row is one, each cell a rank in it"
	}
	if per > 1 {
		g.About += fmt.Sprintf(", of %d the highest", per)
	}
	for y := range axis.Size {
		g.Rows = append(g.Rows, fmt.Sprint(y))
	}
	g.label(best, func(x, y int) string {
		k := &c.Ranks[best[y][x]]
		return chart.RankName(k, "rank") + ": " + chart.RankFigure(k.Active)
	})
	return g
}

// label gives words to cells with a row of the comparison, -1 for none.
func (g *grid) label(rows [][]int, title func(x, y int) string) {
	if len(g.Rows) > maxNumbers {
		g.Rows, g.Some = []string{g.Rows[0], g.Rows[len(g.Rows)-1]}, true
	}
	if g.Width > maxNamed || g.Width*g.Height > maxGridCells {
		return
	}
	for y := range rows {
		for x, i := range rows[y] {
			if i >= 0 {
				g.Cells = append(g.Cells, gridCell{x, y, rowID(i), text(title(x, y))})
			}
		}
	}
}

// stepGrid has a row for each step, or each few, and a column for each rank, or each few of them.
func stepGrid(c *ranks.Comparison, order []int) *grid {
	each := int64(0) // steps of a row
	some := []int{}
	for _, i := range order {
		if k := &c.Ranks[i]; len(k.Laps) > 0 {
			each, some = max(each, k.LapSteps), append(some, i)
		}
	}
	if len(some) < 2 {
		return nil
	}
	per := (len(some) + maxGridColumns - 1) / maxGridColumns
	var values [][]int64
	var best [][]int
	for x, few := range slices.Collect(slices.Chunk(some, per)) {
		for _, i := range few {
			k := &c.Ranks[i]
			for s, v := range k.Laps {
				y := s / int(max(each/max(k.LapSteps, 1), 1))
				for len(values) <= y {
					wide := (len(some) + per - 1) / per
					values, best = append(values, slices.Repeat([]int64{-1}, wide)), append(best, slices.Repeat([]int{-1}, wide))
				}
				if v > values[y][x] {
					values[y][x], best[y][x] = v, i
				}
			}
		}
	}
	g := newGrid(values)
	if g == nil || g.Height < 2 {
		return nil
	}
	g.Name, g.About = "Active peak of each step", "Each row is a step, from the first on, each column a rank"
	if each > 1 {
		g.About = fmt.Sprintf("Each row is %d steps, from the first on, each column a rank", each)
	}
	if per > 1 {
		g.About = strings.Replace(g.About, "a rank", fmt.Sprintf("%d ranks, the highest of them", per), 1)
	}
	for y := range g.Height {
		g.Rows = append(g.Rows, fmt.Sprint(int64(y)*max(each, 1)+1))
	}
	g.Columns = []string{number(&c.Ranks[some[0]]), number(&c.Ranks[some[len(some)-1]])}
	g.label(best, func(x, y int) string {
		k := &c.Ranks[best[y][x]]
		return fmt.Sprintf("%s, step %d: %s", chart.RankName(k, "rank"), int64(y)*max(each, 1)+1,
			chart.RankFigure(values[y][x]))
	})
	return g
}

// grids are those of a run that have something to show.
func grids(c *ranks.Comparison, order []int) (out []*grid) {
	for _, g := range []*grid{meshGrid(c), stepGrid(c, order)} {
		if g != nil {
			out = append(out, g)
		}
	}
	return out
}
