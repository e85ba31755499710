package fragmentation

import (
	"cmp"
	"slices"
)

// item is a segment: what it costs in blocks to free it, and what it returns.
type item struct {
	blocks int
	size   int64
}

// maxSteps bounds the exact search: items times blocks, a byte each.
const maxSteps = 8 << 20

// cover chooses items that return need bytes together with the fewest blocks. Beyond maxSteps it
// is the greedy choice, which takes at most twice as many. nil is for items that are too few.
func cover(items []item, need int64) (chosen []int, fewest bool) {
	chosen, most := greedy(items, need)
	if chosen == nil || len(items)*(most+1) > maxSteps {
		return chosen, false
	}
	return exact(items, need, most), true
}

// greedy goes through the items by bytes for each block and keeps those that do not suffice; each
// that would complete them is a candidate, of which the cheapest is taken (Csirik and others,
// Heuristics for the 0-1 min-knapsack problem: at most twice the optimum).
func greedy(items []item, need int64) (chosen []int, blocks int) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(items[b].size*int64(items[a].blocks), items[a].size*int64(items[b].blocks))
	})
	var kept []int
	var size int64
	cost, best := 0, -1
	for _, i := range order {
		if size+items[i].size < need {
			kept = append(kept, i)
			size += items[i].size
			cost += items[i].blocks
			continue
		}
		if c := cost + items[i].blocks; best < 0 || c < best {
			best = c
			chosen = append(slices.Clone(kept), i)
		}
	}
	return chosen, best
}

// exact finds, for each number of blocks up to most, how much can be returned by freeing so many.
// Of equal choices it takes the one that comes first.
func exact(items []item, need int64, most int) []int {
	returned := make([]int64, most+1)
	taken := make([]bool, len(items)*(most+1))
	for i, it := range items {
		for k := most; k >= it.blocks; k-- {
			if n := returned[k-it.blocks] + it.size; n > returned[k] {
				returned[k] = n
				taken[i*(most+1)+k] = true
			}
		}
	}
	k := 0
	for returned[k] < need {
		k++
	}
	var chosen []int
	for i := len(items) - 1; i >= 0; i-- {
		if taken[i*(most+1)+k] {
			chosen = append(chosen, i)
			k -= items[i].blocks
		}
	}
	slices.Reverse(chosen)
	return chosen
}
