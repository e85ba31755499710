package page

import (
	"cmp"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	files "github.com/snapana/snapana/analyze/source"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Bounds of the lines of sources in a page.
const (
	around      = 12  // lines before and after one that a frame names
	longestLine = 200 // columns of a line
)

// sourceRoom is how many bytes of sources a page of a size has.
func sourceRoom(size int) int { return min(1<<20, size/8) }

// source finds the lines of the frames of the user's own code below a folder. Where not all have room, those of the frames
// that come first stay.
func (t *stacks) source(w *writer, tree *files.Tree, room int) Source {
	if tree == nil {
		return Source{Files: []SourceFile{}}
	}
	out := Source{Dir: clean(tree.Dir), Files: []SourceFile{}}
	var found table[*files.File]
	var fit []bool    // of each file, that some frame does
	var named [][]int // lines of each file
	n := len(t.frames.all)
	file, line, odd := make([]int32, n), make([]int32, n), make([]int32, n)
	for i, id := range t.frames.all {
		fr := t.s.Frames.Get(id)
		if t.origin[i] != frames.User || fr.Line < 1 {
			continue
		}
		f := tree.Find(t.s.Strings.Get(fr.File))
		if f == nil || int(fr.Line) > len(f.Lines) {
			continue
		}
		row, added := found.row(f)
		if added {
			fit, named = append(fit, false), append(named, nil)
		}
		file[i], line[i] = row+1, fr.Line
		named[row] = append(named[row], int(fr.Line))
		if f.Fits(t.s.Strings.Get(fr.Name), int(fr.Line)) {
			fit[row] = true
		} else {
			odd[i] = 1
		}
	}
	rows := make([]int32, len(found.all)) // one more than that of Files
	for i, f := range found.all {
		v := SourceFile{Name: clean(f.Name), Link: tree.Link(f)}
		size := 0
		if v.Pieces, size = pieces(f, named[i]); !fit[i] || size > room {
			continue // another file of the name, or no room
		}
		room -= size
		out.Files = append(out.Files, v)
		rows[i] = int32(len(out.Files))
	}
	for i := range file {
		if file[i] > 0 {
			file[i] = rows[file[i]-1]
		}
	}
	out.File, out.Line, out.Odd = column(w, plain, file), column(w, plain, line), column(w, plain, odd)
	return out
}

// pieces cuts out what lies around lines, and says how many bytes it has.
func pieces(f *files.File, lines []int) (out []SourcePiece, size int) {
	sorting.By(lines, cmp.Compare[int])
	for _, n := range lines {
		first, last := max(n-around, 1), min(n+around, len(f.Lines))
		if k := len(out) - 1; k >= 0 && first <= out[k].First+len(out[k].Lines) {
			first = out[k].First + len(out[k].Lines)
		} else if first <= last {
			out = append(out, SourcePiece{First: first, Lines: []string{}})
		}
		p := &out[len(out)-1]
		for i := first; i <= last; i++ {
			text := strings.TrimRight(chart.Line(strings.ReplaceAll(f.Lines[i-1], "\t", "    "), longestLine), " ")
			p.Lines = append(p.Lines, text)
			size += len(text) + 3
		}
	}
	return out, size
}
