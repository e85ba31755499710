package ranks

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"unique"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot"
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

// union makes a set of ranks, in a fixed order: of several states of one file the last that could be read, and of
// several files with the same rank and the same content one.
func union(list []Rank) (out []Rank, older, copies int) {
	out = slices.Clone(list)
	slices.SortFunc(out, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(b.modified, a.modified),
			cmp.Compare(readable(&a), readable(&b)), cmp.Compare(b.recorded, a.recorded), cmp.Compare(a.options, b.options),
			cmp.Compare(a.content, b.content), cmp.Compare(a.machine, b.machine), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Fault, b.Fault))
	})
	out, older, copies = latest(out)
	files := make([]string, len(out))
	numbers := make([]int, len(out))
	for i := range out {
		if files[i], numbers[i] = out[i].File, int(out[i].recorded)-1; numbers[i] < 0 {
			numbers[i] = snapshot.NamedRank(out[i].File)
		}
	}
	type key struct {
		number  int
		content string
	}
	seen := map[key]bool{}
	kept := 0
	for i := range out {
		id := key{numbers[i], out[i].content}
		if id.content != "" && id.number >= 0 && seen[id] {
			continue
		}
		seen[id] = true
		out[kept], files[kept], numbers[kept] = out[i], files[i], numbers[i]
		kept++
	}
	for i, n := range unambiguous(files[:kept], numbers[:kept]) {
		out[i].Number = n
	}
	return out[:kept], older, copies + len(out) - kept
}

func readable(k *Rank) int {
	if k.Fault == "" {
		return 0
	}
	return 1
}

// latest keeps of ranks with one path, which follow each other and are in order, the first: of each machine and each rank
// that the recorder tells, for machines may have a file of that path each.
func latest(list []Rank) (out []Rank, older, copies int) {
	apart := func(a, b *Rank) bool {
		return a.machine != "" && b.machine != "" && a.machine != b.machine ||
			a.recorded > 0 && b.recorded > 0 && a.recorded != b.recorded
	}
	begin := 0 // in out, of those with this path
	for i := range list {
		k := &list[i]
		if len(out) > 0 && out[len(out)-1].place() != k.place() {
			begin = len(out)
		}
		same := slices.IndexFunc(out[begin:], func(o Rank) bool { return !apart(&o, k) })
		switch {
		case same < 0:
			out = append(out, *k)
		case k.content == "" || out[begin+same].content == k.content:
			copies++
		default:
			older++
		}
	}
	return out, older, copies
}

// place tells files apart.
func (k *Rank) place() string { return cmp.Or(k.path, k.File) }

// expect counts who is missing.
func (c *Comparison) expect(q Question) error {
	c.Expected = q.Expected
	if q.Mesh != nil {
		c.Expected = q.Mesh.Size()
	}
	most, all, world := -1, true, int64(0)
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Fault != "" { // whose name is all that is known
			if k.Number >= c.Expected && c.Expected > 0 {
				k.Number = -1
			}
			continue
		}
		most, all = max(most, k.Number), all && k.Number >= 0
		if k.world > 0 {
			if world > 0 && world != k.world {
				world = maxExpected + 1 // they do not agree
			}
			world = max(world, k.world)
		}
	}
	if most >= c.Expected && c.Expected > 0 {
		return fmt.Errorf("there is rank %d, and of %d ranks the last is %d", most, c.Expected, c.Expected-1)
	}
	if c.Expected == 0 && all && world > int64(most) && world <= fewMissing+64*int64(len(c.Ranks)) {
		c.Expected = int(world)
	}
	if c.Expected == 0 || !all {
		return nil
	}
	here := make([]bool, c.Expected)
	for i := range c.Ranks {
		if n := c.Ranks[i].Number; n >= 0 && n < c.Expected {
			here[n] = true
		}
	}
	for n, yes := range here {
		if !yes {
			c.Missing = append(c.Missing, n)
		}
	}
	return nil
}

const (
	maxExpected = 1e7  // ranks of a run
	fewMissing  = 4096 // ranks that may be missing by what files alone say
)

// over says how far each rank lies above those like it, and whether it stands out.
func (c *Comparison) over() {
	peaks := map[int32][]int64{}
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Active >= 0 {
			peaks[k.class] = append(peaks[k.class], k.Active)
		}
	}
	type norm struct{ median, limit int64 }
	norms, standing := map[int32]norm{}, map[int32]int{}
	for class, v := range peaks {
		m, spread := spreadOf(v)
		norms[class] = norm{m, max(m/20, spread)}
	}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if n := norms[k.class]; k.Active >= 0 {
			k.Over = k.Active - n.median
			k.Stands = len(peaks[k.class]) >= fewest && k.Over > n.limit
			if k.Stands {
				standing[k.class]++
			}
		}
	}
	for i := range c.Ranks { // half of all are how the program is laid out
		if k := &c.Ranks[i]; 2*standing[k.class] >= len(peaks[k.class]) {
			k.Stands = false
		}
	}
}

// fewest is of how many ranks one can stand out.
const fewest = 4

// spreadOf is the median of values and three of their standard deviations, as the median absolute deviation estimates
// them. It sorts v.
func spreadOf(v []int64) (middle, spread int64) {
	middle = median(v)
	deviation := make([]int64, len(v))
	for i, a := range v {
		deviation[i] = max(a-middle, middle-a)
	}
	return middle, int64(3 * 1.4826 * float64(median(deviation)))
}

func (c *Comparison) order() {
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

// standing lists the outliers, with the places that they have more from.
func (c *Comparison) standing() {
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Stands {
			c.Outliers = append(c.Outliers, Outlier{Rank: i, Median: k.Active - k.Over})
		}
	}
	slices.SortStableFunc(c.Outliers, func(a, b Outlier) int {
		return cmp.Compare(c.Ranks[b.Rank].Over, c.Ranks[a.Rank].Over)
	})
	c.Outliers = c.Outliers[:min(len(c.Outliers), told)]
	for i := range c.Outliers {
		c.Outliers[i].Sites = c.differences(&c.Ranks[c.Outliers[i].Rank])
	}
}

// differences are up to three places of which a rank has most more than the median rank like it has, and
// at least a tenth of what it has more in all. Of ranks without stacks nobody knows what they have from a place.
func (c *Comparison) differences(k *Rank) []Difference {
	all := []Difference{}
	if !slices.ContainsFunc(k.sites, func(s site) bool { return s.name != noStack }) {
		return all
	}
	values := make([]int64, 0, c.Peaks)
	for _, s := range k.sites {
		if s.bytes < k.Over/10 {
			break // the sites are in order
		}
		values = values[:0]
		for i := range c.Ranks {
			if o := &c.Ranks[i]; o.Active >= 0 && o.class == k.class && (o.placed() || s.name == noStack) {
				values = append(values, o.at(s.name))
			}
		}
		if m := median(values); len(values) >= fewest && s.bytes-m >= k.Over/10 {
			all = append(all, Difference{s.name.Value(), s.bytes, m})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Bytes-b.Median, a.Bytes-a.Median), cmp.Compare(a.Site, b.Site))
	})
	return all[:min(len(all), 3)]
}

// extras finds what one rank has and the others like it have not.
func (c *Comparison) extras() {
	type key struct {
		class int32
		site  unique.Handle[string]
	}
	type most struct {
		rank          int
		bytes, second int64
		ranks         int // that list it
	}
	seen := map[key]*most{}
	size, least := map[int32]int{}, map[int32]int64{}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Active < 0 || !k.placed() {
			continue
		}
		size[k.class]++
		least[k.class] = max(least[k.class], k.least)
		for _, s := range k.sites {
			m := seen[key{k.class, s.name}]
			if m == nil {
				m = &most{rank: -1}
				seen[key{k.class, s.name}] = m
			}
			m.ranks++
			if s.bytes > m.bytes {
				m.rank, m.bytes, m.second = i, s.bytes, m.bytes
			} else {
				m.second = max(m.second, s.bytes)
			}
		}
	}
	for id, m := range seen {
		if m.ranks < size[id.class] {
			m.second = max(m.second, least[id.class])
		}
		k := &c.Ranks[max(m.rank, 0)]
		if size[id.class] >= fewest && m.rank >= 0 && !k.Stands && m.second <= m.bytes/10 && m.bytes >= k.Active/50 &&
			k.Over >= m.bytes/2 {
			c.Extras = append(c.Extras, Extra{m.rank, id.site.Value(), m.bytes, m.second})
		}
	}
	slices.SortFunc(c.Extras, func(a, b Extra) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Site, b.Site))
	})
	c.Extras = c.Extras[:min(len(c.Extras), told)]
}

// stragglers finds who did fewer steps than others of whom a step is the same.
func (c *Comparison) stragglers() {
	by, all := map[string][]int{}, 0
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Steps > 0 && k.Failure == nil {
			by[k.Unit] = append(by[k.Unit], i)
			all++
		}
	}
	if all < fewest {
		return
	}
	for unit, rows := range by {
		if len(rows) < fewest {
			if len(by) > 1 {
				c.Uncounted = append(c.Uncounted, Uncounted{unit, rows})
			}
			continue
		}
		steps, begins, spans := make([]int64, len(rows)), []int64{}, []int64{}
		for i, row := range rows {
			k := &c.Ranks[row]
			steps[i] = k.Steps
			if k.began > 0 && k.ended > k.began {
				begins, spans = append(begins, k.began), append(spans, k.ended-k.began)
			}
		}
		m, spread := spreadOf(steps)
		began, span := median(begins), median(spans)
		for _, row := range rows {
			if k := &c.Ranks[row]; m-k.Steps > max(1, m/20, spread) {
				late := k.began - began
				if k.began <= 0 || late <= max(ClockError, span/10) {
					late = 0
				}
				c.Stragglers = append(c.Stragglers, Straggler{row, late, k.Steps, m})
			}
		}
	}
	slices.SortFunc(c.Stragglers, func(a, b Straggler) int {
		return cmp.Or(cmp.Compare(a.Steps, b.Steps), cmp.Compare(c.Ranks[a.Rank].Number, c.Ranks[b.Rank].Number),
			cmp.Compare(a.Rank, b.Rank))
	})
	c.Stragglers = c.Stragglers[:min(len(c.Stragglers), told)]
	slices.SortFunc(c.Uncounted, func(a, b Uncounted) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(a.Unit, b.Unit))
	})
	c.Uncounted = c.Uncounted[:min(len(c.Uncounted), told)]
}

// hosts finds machines all of whose ranks stand out, while those of others do not.
func (c *Comparison) hosts() {
	for _, folder := range []bool{false, true} {
		by := map[string][]int{}
		for i := range c.Ranks {
			if k := &c.Ranks[i]; k.Active >= 0 {
				name := k.machine
				if folder {
					name = filepath.Dir(k.place())
				}
				by[name] = append(by[name], i)
			}
		}
		delete(by, "")
		if len(by) < 2 {
			continue
		}
		for name, rows := range by {
			if len(rows) < 2 || 2*len(rows) > c.Peaks {
				continue
			}
			h := Host{Name: name, Folder: folder, Ranks: rows, Least: c.Ranks[rows[0]].Over}
			for _, i := range rows {
				h.Least = min(h.Least, c.Ranks[i].Over)
			}
			if !slices.ContainsFunc(rows, func(i int) bool { return !c.Ranks[i].Stands }) {
				if folder {
					h.Name = filepath.Base(name)
				}
				c.Hosts = append(c.Hosts, h)
			}
		}
		break
	}
	slices.SortFunc(c.Hosts, func(a, b Host) int {
		return cmp.Or(cmp.Compare(b.Least, a.Least), cmp.Compare(a.Name, b.Name), slices.Compare(a.Ranks, b.Ranks))
	})
	c.Hosts = c.Hosts[:min(len(c.Hosts), told)]
}

// odd finds settings in which a few ranks differ from most.
func (c *Comparison) odd() {
	type value = unique.Handle[string]
	by := map[value]map[value][]int{} // by name, by value, the rows
	for i := range c.Ranks {
		for _, s := range c.Ranks[i].settings {
			if by[s[0]] == nil {
				by[s[0]] = map[value][]int{}
			}
			by[s[0]][s[1]] = append(by[s[0]][s[1]], i)
		}
	}
	for name, values := range by {
		all, usual := 0, value{}
		for v, rows := range values {
			if all += len(rows); usual == (value{}) || len(rows) > len(values[usual]) {
				usual = v
			}
		}
		if all < fewest || 4*len(values[usual]) < 3*all {
			continue
		}
		for v, rows := range values {
			if v != usual {
				c.Odd = append(c.Odd, Odd{name.Value(), v.Value(), usual.Value(), rows})
			}
		}
	}
	slices.SortFunc(c.Odd, func(a, b Odd) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	c.Odd = c.Odd[:min(len(c.Odd), told)]
}

// median is the lower middle value, -1 of none. It sorts v.
func median(v []int64) int64 {
	if len(v) == 0 {
		return -1
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}
