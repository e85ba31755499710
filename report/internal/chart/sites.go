package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Source is a row of a table of what allocated memory: a site of the program, or those of its stacks that go by other
// code that an engineer knows. Its Stack and Frames are those of its largest stack.
type Source struct {
	attribution.Group
	Stacks   []snapshot.StackID // largest first
	Compiled bool               // they differ in code that torch.compile wrote, a frame for each operation

	path path
}

// Note says of how many stacks a row is the sum where that is worth a word, else "".
func (s *Source) Note() string {
	if s.Compiled && len(s.Stacks) > 1 {
		return units.Plural(len(s.Stacks), "compiled stack")
	}
	return ""
}

// Sources are the groups, which are by stack, by what an engineer can tell apart: most bytes first, and their sum is
// that of the groups.
func Sources(groups []attribution.Group) []Source {
	compiled := map[string]int{} // groups with generated code, by site
	for i := range groups {
		if g := &groups[i]; g.Site != "" && slices.ContainsFunc(g.Frames, frames.IsCompiled) {
			compiled[g.Site]++
		}
	}
	var all []Source
	at := map[string]int{}
	known := words{}
	for i := range groups {
		s := Source{Group: groups[i], Stacks: []snapshot.StackID{groups[i].Stack}}
		s.path = known.pathFrom(s.Name(), s.Frames)
		key := s.Name() + "\x00" + strings.Join(s.path.frames, "\x00")
		if s.Compiled = compiled[s.Site] > 1; s.Compiled {
			key = s.Site
		}
		if k, ok := at[key]; ok {
			all[k].Add(s.Sum)
			all[k].Stacks = append(all[k].Stacks, s.Stack)
			continue
		}
		at[key] = len(all)
		all = append(all, s)
	}
	sorting.Stable(all, func(a, b Source) int { return cmp.Compare(b.Rounded, a.Rounded) })
	return all
}

// LargestSources splits sources into the first n and one group that sums the others, so that totals close. more is the
// number of their stacks.
func LargestSources(sources []Source, n int) (top []Source, other attribution.Group, more int) {
	for _, s := range sources[min(n, len(sources)):] {
		other.Add(s.Sum)
		more += len(s.Stacks)
	}
	return sources[:min(n, len(sources))], other, more
}

// Sites names the sources. Those that share a site also get, in brackets, what tells them apart: the operators that
// their sites run ("aten::bmm"), else the first frames in which they differ, on the way from the site inward and
// then outward.
func Sites(sources []Source) []string {
	out := make([]string, len(sources))
	same := map[string][]int{}
	for i := range sources {
		out[i] = sources[i].Name()
		same[out[i]] = append(same[out[i]], i)
	}
	for site, rows := range same {
		if len(rows) == 1 {
			continue
		}
		paths := make([]path, len(rows))
		for k, i := range rows {
			paths[k] = sources[i].path
		}
		named := map[string]int{}
		for k, words := range differences(paths) {
			if words != "" && words != site {
				out[rows[k]] += " (" + words + ")"
			}
			name := out[rows[k]]
			if named[name]++; named[name] > 1 && len(sources[rows[k]].Frames) > 0 {
				out[rows[k]] += fmt.Sprintf(" #%d", named[name])
			}
		}
	}
	return out
}

// path is a stack as one goes from its site: inward to the allocation, and then outward.
type path struct {
	frames []string // those that tell something, for people, without folders and signatures, "" for the site
	ops    []string // the outermost operator from each frame on inward, "" where there is none
}

// words are what frames are called, by their texts: stacks share frames.
type words map[string]called

type called struct {
	bare, brief, operation string
	telling                bool
}

func (w words) of(frame string) called {
	c, ok := w[frame]
	if !ok {
		c.bare = frames.Bare(frame)
		c.brief, c.operation, c.telling = frames.Brief(frame)
		w[frame] = c
	}
	return c
}

func (w words) pathFrom(site string, stack []string) path {
	at := slices.IndexFunc(stack, func(f string) bool { return w.of(f).bare == site })
	if at < 0 {
		at = len(stack) // it goes by what it runs
	}
	var p path
	add := func(f string) {
		c := w.of(f)
		if n := len(p.frames); !c.telling || n > 0 && p.frames[n-1] == c.brief { // recursion
			return
		}
		p.frames, p.ops = append(p.frames, cmp.Or(c.operation, c.brief)), append(p.ops, c.operation)
	}
	for i := at - 1; i >= 0; i-- {
		add(stack[i])
	}
	for k := len(p.ops) - 2; k >= 0; k-- {
		if p.ops[k] == "" {
			p.ops[k] = p.ops[k+1]
		}
	}
	p.frames, p.ops = append(p.frames, ""), append(p.ops, "")
	for i := at + 1; i < len(stack); i++ {
		add(stack[i])
	}
	return p
}

// differences gives for each path what tells it from the others, "" where nothing does.
func differences(paths []path) []string {
	out := make([]string, len(paths))
	all := make([]int, len(paths))
	for i := range all {
		all[i] = i
	}
	var split func(rows []int, from int)
	split = func(rows []int, from int) {
		parts, order, k := apart(paths, rows, from)
		if len(order) < 2 {
			return
		}
		for _, words := range order {
			for _, i := range parts[words] {
				out[i] = cmp.Or(paths[i].op(k), words)
			}
		}
		for _, words := range order {
			if again := parts[words]; len(again) > 1 {
				split(again, k+1)
			}
		}
	}
	split(all, 0)
	plain(out, paths)
	return out
}

// apart finds the first place from one on where the paths of rows differ: the rows by their words there, and these in
// order. Where they do not differ there are less than two.
func apart(paths []path, rows []int, from int) (parts map[string][]int, order []string, k int) {
	for k = from; ; k++ {
		longer := false
		parts, order = map[string][]int{}, nil
		for _, i := range rows {
			longer = longer || k < len(paths[i].frames)
			words := paths[i].at(k)
			if parts[words] == nil {
				order = append(order, words)
			}
			parts[words] = append(parts[words], i)
		}
		if len(order) > 1 || !longer {
			return parts, order, k
		}
	}
}

// plain goes back, where rows would read the same, to the frames in which they first differ.
func plain(out []string, paths []path) {
	same := map[string][]int{}
	for i, words := range out {
		same[words] = append(same[words], i)
	}
	for words, rows := range same {
		if words == "" || len(rows) < 2 {
			continue
		}
		parts, order, _ := apart(paths, rows, 0)
		for _, first := range order {
			for _, i := range parts[first] {
				if out[i] = first; first != "" && len(parts[first]) > 1 {
					out[i] = words
				}
			}
		}
	}
}

// at is the k-th frame, "" behind the last.
func (p *path) at(k int) string {
	if k < len(p.frames) {
		return p.frames[k]
	}
	return ""
}

func (p *path) op(k int) string {
	if k < len(p.ops) {
		return p.ops[k]
	}
	return ""
}

// ClipSite shortens a name that Sites gave to n columns: first what stands in brackets, of a frame its function
// before its line, then all of the brackets, and only then the start of the site.
func ClipSite(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	site, words, ok := strings.Cut(s, " (")
	if !ok {
		return ClipLeft(s, n)
	}
	end := ""
	if at := strings.LastIndex(words, ")"); at >= 0 {
		words, end = words[:at], words[at:]
	}
	const least = 7 // columns in brackets that still say something
	room := n - Width(site+" ("+end)
	if room < least {
		return ClipLeft(site, n)
	}
	line, function, _ := strings.Cut(words, " ")
	left := room - Width(line) - 1
	if left < 3 {
		return site + " (" + clipMiddle(line, room) + end
	}
	return site + " (" + line + " " + clipMiddle(function, left) + end
}
