package chart

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
)

// generated is in the files of code that torch.compile writes, a frame for each operation.
var generated = [...]string{"/torchinductor_", "<eval_with_key>", "fx_generated__"}

func isGenerated(frame string) bool {
	return slices.ContainsFunc(generated[:], func(part string) bool { return strings.Contains(frame, part) })
}

// JoinCompiled sums up the groups of each site whose stacks differ in generated code, which nobody can change: one line
// of a compiled program can have hundreds. Stacks are how many each row has; rows sum up to the groups, most bytes
// first.
func JoinCompiled(groups []attribution.Group) (rows []attribution.Group, stacks []int) {
	compiled := map[string]int{} // groups with generated code, by site
	for i := range groups {
		if g := &groups[i]; g.Site != "" && slices.ContainsFunc(g.Frames, isGenerated) {
			compiled[g.Site]++
		}
	}
	type row struct {
		attribution.Group
		stacks int
	}
	var all []row
	at := map[string]int{}
	for i := range groups {
		g := &groups[i]
		if compiled[g.Site] > 1 {
			if k, ok := at[g.Site]; ok {
				all[k].Add(g.Sum)
				all[k].stacks++
				continue
			}
			at[g.Site] = len(all)
		}
		all = append(all, row{*g, 1})
	}
	slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(b.Rounded, a.Rounded) })
	for i := range all {
		rows, stacks = append(rows, all[i].Group), append(stacks, all[i].stacks)
	}
	return rows, stacks
}
