package ranks

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/finding"
)

// Comparison puts the ranks of a run side by side.
type Comparison struct {
	// Ranks are in order of interest: the first that failed, the other failures, verdicts by how bad
	// they are, and within one those furthest above the median first if they stand out, then by
	// number. Files that could not be read come last.
	Ranks []Rank `json:"-"`
	Read  int    `json:"read"` // how many could be read
	// Peaks is how many have a known peak of active memory.
	Peaks int `json:"-"`
	// Medians of the peaks that are known, in bytes, -1 where none is.
	MedianReserved int64     `json:"-"`
	MedianActive   int64     `json:"-"`
	Groups         []Group   `json:"groups"`   // verdicts that ranks share, in the order of Ranks
	Outliers       []Outlier `json:"outliers"` // furthest above the median first, 8 at most
}

// Group is a verdict with the ranks that have it for the same reason.
type Group struct {
	Status   finding.Status `json:"status"`
	Headline string         `json:"headline"` // of the first
	Ranks    []int          `json:"rows"`     // of Comparison.Ranks
}

// Outlier is a rank whose active peak lies so far above the median that chance is a poor reason: more
// than 5% of it, and more than 3 standard deviations as the median absolute deviation estimates
// them. Of fewer than 4 ranks whose peaks are known none is.
type Outlier struct {
	Rank  int          `json:"row"` // of Comparison.Ranks
	Sites []Difference `json:"sites"`
}

// Difference is memory from one place that a rank has more of than others, in bytes at the peaks.
type Difference struct {
	Site   string `json:"site"`
	Bytes  int64  `json:"bytes"`
	Median int64  `json:"median"`
}

// Compare compares ranks, which may be in any order.
func Compare(list []Rank) *Comparison {
	c := &Comparison{Ranks: slices.Clone(list)}
	var files []string
	var reserved, active []int64
	for i := range list {
		files = append(files, list[i].File)
		if list[i].Fault == "" {
			c.Read++
		}
		if n := list[i].Reserved; n >= 0 {
			reserved = append(reserved, n)
		}
		if n := list[i].Active; n >= 0 {
			active = append(active, n)
		}
	}
	for i, n := range Numbers(files) {
		c.Ranks[i].Number = n
	}
	c.Peaks, c.MedianReserved, c.MedianActive = len(active), median(reserved), median(active)
	deviation := make([]int64, len(active))
	for i, a := range active {
		deviation[i] = max(a-c.MedianActive, c.MedianActive-a)
	}
	limit := max(c.MedianActive/20, int64(3*1.4826*float64(median(deviation))))
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Active >= 0 {
			k.Over = k.Active - c.MedianActive
			k.Stands = c.Peaks >= 4 && k.Over > limit
		}
	}
	over := func(k *Rank) int64 { // of an outlier, else 0
		if k.Stands {
			return k.Over
		}
		return 0
	}
	slices.SortStableFunc(c.Ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(weight(&a), weight(&b)), earlier(a.Failure, b.Failure),
			cmp.Compare(over(&b), over(&a)), cmp.Compare(a.Number, b.Number), cmp.Compare(a.File, b.File))
	})
	c.group()
	for i := range c.Ranks {
		if c.Ranks[i].Stands {
			c.Outliers = append(c.Outliers, Outlier{Rank: i})
		}
	}
	slices.SortStableFunc(c.Outliers, func(a, b Outlier) int {
		return cmp.Compare(c.Ranks[b.Rank].Over, c.Ranks[a.Rank].Over)
	})
	c.Outliers = c.Outliers[:min(len(c.Outliers), 8)]
	for i := range c.Outliers {
		c.Outliers[i].Sites = c.differences(&c.Ranks[c.Outliers[i].Rank])
	}
	return c
}

func weight(k *Rank) int {
	switch {
	case k.Fault != "":
		return len(finding.Statuses()) + 1
	case k.Failure != nil:
		return -1
	}
	return k.Status.Rank()
}

// earlier orders ranks by the times of their first failures, and those without after the others.
func earlier(a, b *Failure) int {
	if a == nil || b == nil || a.First == b.First {
		return 0
	}
	if a.First == 0 || b.First == 0 {
		return cmp.Compare(b.First, a.First)
	}
	return cmp.Compare(a.First, b.First)
}

func (c *Comparison) group() {
	type key struct {
		status finding.Status
		cause  string
	}
	rows := make(map[key]int)
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Fault != "" {
			continue
		}
		id := key{k.Status, k.Cause}
		row, ok := rows[id]
		if !ok {
			row = len(c.Groups)
			rows[id] = row
			c.Groups = append(c.Groups, Group{Status: k.Status, Headline: k.Headline})
		}
		c.Groups[row].Ranks = append(c.Groups[row].Ranks, i)
	}
}

// differences are up to three places of which a rank has most more than the median rank has, and
// at least a tenth of what it has more in all.
func (c *Comparison) differences(k *Rank) []Difference {
	all := []Difference{}
	values := make([]int64, 0, c.Peaks)
	for site, bytes := range k.sites {
		values = values[:0]
		for i := range c.Ranks {
			if o := &c.Ranks[i]; o.Active >= 0 {
				values = append(values, o.sites[site])
			}
		}
		if m := median(values); bytes-m >= k.Over/10 {
			all = append(all, Difference{site, bytes, m})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Bytes-b.Median, a.Bytes-a.Median), cmp.Compare(a.Site, b.Site))
	})
	return all[:min(len(all), 3)]
}

// median is the lower middle value, -1 of none. It sorts v.
func median(v []int64) int64 {
	if len(v) == 0 {
		return -1
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}
