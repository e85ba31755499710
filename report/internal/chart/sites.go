package chart

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
)

// Sites names the groups. Groups that share a site also get, in brackets, what tells them apart: the operators that
// their sites run ("aten::bmm"), else the first frames in which they differ, on the way from the site inward and
// then outward. Where the frames are the same, they are counted.
func Sites(groups []attribution.Group) []string {
	out := make([]string, len(groups))
	same := map[string][]int{}
	for i := range groups {
		out[i] = groups[i].Name()
		same[out[i]] = append(same[out[i]], i)
	}
	for site, rows := range same {
		if len(rows) == 1 {
			continue
		}
		paths := make([]path, len(rows))
		for k, i := range rows {
			paths[k] = pathFrom(site, groups[i].Frames)
		}
		named := map[string]int{}
		for k, words := range differences(paths) {
			if words != "" && words != site {
				out[rows[k]] += " (" + words + ")"
			}
			name := out[rows[k]]
			if named[name]++; named[name] > 1 && len(groups[rows[k]].Frames) > 0 {
				out[rows[k]] += fmt.Sprintf(" #%d", named[name])
			}
		}
	}
	return out
}

// path is a stack as one goes from its site: inward to the allocation, and then outward.
type path struct {
	frames []string // for people, without folders and signatures, "" for the site; a run of equal ones is one, "f ×3"
	ops    []string // the outermost operator from each frame on inward, "" where there is none
}

func pathFrom(site string, stack []string) path {
	at := slices.IndexFunc(stack, func(f string) bool { return frames.Bare(f) == site })
	if at < 0 {
		at = len(stack) // it goes by what it runs
	}
	var p path
	run := 0
	add := func(f string) {
		words, op := frames.Brief(f)
		if n := len(p.frames); n > 0 && (p.frames[n-1] == words || strings.HasPrefix(p.frames[n-1], words+" ×")) {
			run++
			p.frames[n-1] = fmt.Sprintf("%s ×%d", words, run)
			return
		}
		run = 1
		p.frames, p.ops = append(p.frames, words), append(p.ops, op)
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
		for k := from; ; k++ {
			longer := false
			parts, order := map[string][]int{}, []string{}
			for _, i := range rows {
				longer = longer || k < len(paths[i].frames)
				words := paths[i].at(k)
				if parts[words] == nil {
					order = append(order, words)
				}
				parts[words] = append(parts[words], i)
			}
			if !longer {
				return
			}
			if len(order) == 1 {
				continue
			}
			for _, words := range order {
				for _, i := range parts[words] {
					out[i] = words
					if op := paths[i].op(k); op != "" {
						out[i] = op
					}
				}
			}
			for _, words := range order {
				if again := parts[words]; len(again) > 1 {
					split(again, k+1)
				}
			}
			distinct(out, paths, rows, k)
			return
		}
	}
	split(all, 0)
	return out
}

// distinct goes back from operators to frames where two rows would read the same.
func distinct(out []string, paths []path, rows []int, k int) {
	seen := map[string]int{}
	for _, i := range rows {
		seen[out[i]]++
	}
	for _, i := range rows {
		if op := paths[i].op(k); op != "" && out[i] == op && seen[op] > 1 {
			out[i] = paths[i].at(k)
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

// ClipSite shortens a name that Sites gave to n runes: first what stands in brackets, of a frame its function
// before its line, then all of the brackets, and only then the start of the site.
func ClipSite(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	site, words, ok := strings.Cut(s, " (")
	if !ok {
		return ClipLeft(s, n)
	}
	end := ""
	for _, tail := range []string{")", " ×"} {
		if at := strings.LastIndex(words, tail); at >= 0 {
			words, end = words[:at], words[at:]+end
		}
	}
	const least = 7 // runes in brackets that still say something
	room := n - utf8.RuneCountInString(site+" ("+end)
	if room < least {
		return ClipLeft(site, n)
	}
	line, function, _ := strings.Cut(words, " ")
	left := room - utf8.RuneCountInString(line) - 1
	if left < 3 {
		return site + " (" + clipMiddle(line, room) + end
	}
	return site + " (" + line + " " + clipMiddle(function, left) + end
}

// clipMiddle shortens a text to n runes, of both ends alike.
func clipMiddle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := n / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-head-1):])
}
