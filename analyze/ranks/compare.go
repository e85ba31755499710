package ranks

import (
	"cmp"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Comparison puts the ranks of a run side by side.
type Comparison struct {
	// Ranks are in order of interest: the first that failed, the other failures, verdicts by how bad
	// they are, and within one those furthest above the median first if they stand out, then by
	// number. Files that could not be read come last.
	Ranks []Rank `json:"-"`
	Read  int    `json:"read"` // how many could be read
	// Copies is how many files were left out because they are copies of others. Older is how many were because another of
	// the same path was written later: states of one file, unless machines have files of that path each, of which nothing
	// tells.
	Copies int `json:"copies"`
	Older  int `json:"older"`
	// Expected is how many ranks there should be, 0 unknown. Missing are those of which there is no file, in order; none
	// where that is not known.
	Expected int   `json:"expected"`
	Missing  []int `json:"missing"`
	// Peaks is how many have a known peak of active memory.
	Peaks int `json:"-"`
	// Medians of the peaks that are known, in bytes, -1 where none is.
	MedianReserved int64       `json:"-"`
	MedianActive   int64       `json:"-"`
	First          *First      `json:"first"`    // who failed first, nil where nobody did
	Groups         []Group     `json:"groups"`   // verdicts that ranks share, in the order of Ranks
	Outliers       []Outlier   `json:"outliers"` // furthest above the median first, 8 at most
	Extras         []Extra     `json:"extras"`   // most bytes first, 8 at most
	Stragglers     []Straggler `json:"stragglers"`
	Uncounted      []Uncounted `json:"uncounted"`
	Mesh           *Mesh       `json:"mesh"`  // how ranks are laid out, nil where nobody says and nothing tells
	Hosts          []Host      `json:"hosts"` // that stand out as a whole
	Odd            []Odd       `json:"odd"`   // settings in which some ranks differ from most
}

// First is the rank that failed first, as far as clocks tell.
type First struct {
	Row int `json:"row"` // of Comparison.Ranks
	// Certain says that no other that failed can have been earlier, of the files that could be read.
	Certain bool `json:"certain"`
	Next    int  `json:"next_row"` // the next that failed, -1 for none
	// Gap is the time between the two in microseconds, -1 unknown. SameClock says that they ran on one machine: between
	// those of different ones less than ClockError tells nothing.
	Gap       int64 `json:"gap_us"`
	SameClock bool  `json:"same_clock"`
	// Lost is how many ranks failed whose first failure is not known: the trace lost it, or has no times.
	Lost int `json:"lost"`
}

// ClockError is how far the clocks of two machines are taken to differ at most, in microseconds: those that are set over
// a network differ by milliseconds.
const ClockError = 1_000_000

// Group is a verdict with the ranks that have it for the same reason.
type Group struct {
	Status   finding.Status `json:"status"`
	Headline string         `json:"headline"` // of the first
	Ranks    []int          `json:"rows"`     // of Comparison.Ranks
}

// Outlier is a rank whose active peak lies so far above the median of those like it that chance is a poor reason: more
// than 5% of it, and more than 3 standard deviations as the median absolute deviation estimates
// them. Of fewer than 4 ranks whose peaks are known none is, and none where half of them would be.
type Outlier struct {
	Rank   int          `json:"row"`    // of Comparison.Ranks
	Median int64        `json:"median"` // of the ranks like it
	Sites  []Difference `json:"sites"`
}

// Difference is memory from one place that a rank has more of than others, in bytes at the peaks.
type Difference struct {
	Site   string `json:"site"`
	Bytes  int64  `json:"bytes"`
	Median int64  `json:"median"`
}

// Extra is memory from a place from which no other rank like it has a tenth as much, and by which its peak is higher
// than theirs: at least 2% of it, by a rank that does not stand out as an Outlier.
type Extra struct {
	Rank  int    `json:"row"`
	Site  string `json:"site"`
	Bytes int64  `json:"bytes"`
	Most  int64  `json:"most"` // of another rank, at most
}

// Straggler is a rank that did fewer steps than others with steps of the same kind, and did not fail. It is told only of
// traces that begin with the program.
type Straggler struct {
	Rank   int   `json:"row"`
	Late   int64 `json:"late_us"` // it began so much later than the median of them, 0 for less than a tenth of their time
	Steps  int64 `json:"steps"`
	Median int64 `json:"median"` // of those with steps of the same kind
}

// Uncounted are ranks whose steps are not compared: too few others have steps of their kind.
type Uncounted struct {
	Unit  string `json:"unit"` // what a step of them is
	Ranks []int  `json:"rows"` // of Comparison.Ranks
}

// Host is a machine, or a folder of dumps, all of whose ranks stand out.
type Host struct {
	Name   string `json:"name"`
	Folder bool   `json:"folder"` // what tells them apart is the folder of their files
	Ranks  []int  `json:"rows"`
	Least  int64  `json:"least_over"` // bytes by which each lies above the median of those like it
}

// Odd is a setting that some ranks have and most have not.
type Odd struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Usual string `json:"usual"` // of at least three quarters of those that tell
	Ranks []int  `json:"rows"`
}

// Question is what is asked of ranks.
type Question struct {
	Mesh     *Mesh // how they are laid out, nil unknown
	Expected int   // how many there should be, 0 unknown
}

// Compare compares ranks, which may be in any order.
func Compare(list []Rank) *Comparison {
	c, _ := Question{}.Compare(list) // which has nothing that could not fit
	return c
}

// Compare compares ranks, which may be in any order. It fails where the mesh has no place for one of them.
func (q Question) Compare(list []Rank) (*Comparison, error) {
	c := &Comparison{}
	c.Ranks, c.Older, c.Copies = union(list)
	var reserved, active []int64
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Fault == "" {
			c.Read++
		}
		if k.Reserved >= 0 {
			reserved = append(reserved, k.Reserved)
		}
		if k.Active >= 0 {
			active = append(active, k.Active)
		}
	}
	if err := c.expect(q); err != nil {
		return nil, err
	}
	c.Peaks, c.MedianReserved, c.MedianActive = len(active), median(reserved), median(active)
	c.layout(q.Mesh)
	c.over()
	c.order()
	c.first()
	c.group()
	c.standing()
	c.extras()
	c.stragglers()
	c.hosts()
	c.odd()
	return c, nil
}

func (c *Comparison) order() {
	over := func(k *Rank) int64 { // of an outlier, else 0
		if k.Stands {
			return k.Over
		}
		return 0
	}
	sorting.Stable(c.Ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(weight(&a), weight(&b)), earlier(a.Failure, b.Failure),
			cmp.Compare(over(&b), over(&a)), cmp.Compare(a.Number, b.Number), cmp.Compare(a.File, b.File))
	})
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

// Worst is the rank to look at first: the first with a fault, or else the one that stands out most. It is nil where all
// are healthy and alike, and where no file could be read.
func (c *Comparison) Worst() *Rank {
	switch {
	case c.Read > 0 && c.Ranks[0].Status != finding.Healthy:
		return &c.Ranks[0]
	case len(c.Outliers) > 0:
		return &c.Ranks[c.Outliers[0].Rank]
	}
	return nil
}

// first tells who failed first.
func (c *Comparison) first() {
	failed := 0
	for failed < len(c.Ranks) && c.Ranks[failed].Failure != nil {
		failed++
	}
	if failed == 0 {
		return
	}
	f := &First{Next: -1, Gap: -1}
	for i := range failed {
		if c.Ranks[i].Failure.First == 0 {
			f.Lost++
		}
	}
	c.First = f
	if failed == 1 {
		f.Certain = true
		return
	}
	f.Next = 1
	a, b := &c.Ranks[0], &c.Ranks[1]
	if a.Failure.First == 0 || b.Failure.First == 0 {
		return
	}
	f.Gap, f.SameClock = b.Failure.First-a.Failure.First, a.machine != "" && a.machine == b.machine
	f.Certain = f.Lost == 0 && f.Gap > 0
	for i := 1; i < failed && f.Certain; i++ { // others may be behind by less than their clocks differ
		k := &c.Ranks[i]
		gap := k.Failure.First - a.Failure.First
		f.Certain = gap >= ClockError || a.machine != "" && a.machine == k.machine
		if gap >= ClockError {
			break
		}
	}
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

// told is how many of a kind are told of each.
const told = 8
