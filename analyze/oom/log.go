package oom

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// What a Log keeps at most.
const (
	maxGroups = 1000
	maxRanks  = 4096
)

// Group is all messages of a log that say the same.
type Group struct {
	Family   oomlog.Family `json:"family"`
	Backend  string        `json:"backend"`
	Cause    Cause         `json:"cause"`
	Line     int64         `json:"line"` // of the first of them, from 1 on
	LastLine int64         `json:"last_line"`
	Offset   int64         `json:"offset"` // of the first of them, in bytes
	Count    int64         `json:"count"`
	Ranks    []int         `json:"ranks"` // those that are known, ascending
	oomlog.Body
	Rows   []LedgerRow `json:"ledger"`       // of Ledger
	Slack  int64       `json:"ledger_slack"` // of Ledger
	Ledger *Ledger     `json:"-"`            // nil when the message has too few figures
}

func newGroup(m oomlog.Message) Group {
	g := Group{
		Family: m.Family, Backend: m.Backend, Line: m.Line, Offset: m.Offset, Body: m.Body,
		Ranks: []int{}, Rows: []LedgerRow{},
	}
	if g.Ledger = g.split(); g.Ledger != nil {
		g.Rows, g.Slack = g.Ledger.Rows, g.Ledger.Slack
	}
	g.Cause = g.figures().Cause()
	return g
}

// Log is the out-of-memory messages of a log, with the snapshot of the same failure beside it if
// there is one. It keeps a bounded number of different ones.
type Log struct {
	Name     string  `json:"file"`
	Messages int64   `json:"total"`           // all, also those that are in no group
	Dropped  int64   `json:"dropped"`         // messages beyond the kept groups
	Main     int     `json:"main"`            // the group to explain first
	Groups   []Group `json:"messages"`        // by first appearance
	Snapshot string  `json:"snapshot"`        // name of the snapshot's file, "" none
	Match    *Match  `json:"match,omitempty"` // of Main; nil when the snapshot has no out-of-memory event
	// What the snapshot says of the request that Main is about: nothing where it is of another.
	Cause   Cause    `json:"cause"`
	Answers []Answer `json:"would_fit"`
	Failure *Report  `json:"-"`
	byKey   map[string]int
}

// PackedError says that a log is compressed.
type PackedError struct {
	Name string // base name of the file
	Cat  string // the program that decompresses it
}

func (e *PackedError) Error() string { return e.Name + " is compressed" }

// OpenLog collects the messages of the log at path, "-" for stdin. Errors name the file; that of a
// compressed one is a *PackedError.
func OpenLog(ctx context.Context, path string, stdin io.Reader) (*Log, error) {
	r, name := stdin, "stdin"
	if path != "-" {
		f, err := input.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r, name = f, input.Base(ctx, path)
	}
	br := bufio.NewReader(budget.From(ctx).Reader(r))
	switch head, _ := br.Peek(2); string(head) {
	case "\x1f\x8b":
		return nil, &PackedError{name, "zcat"}
	case "\x28\xb5":
		return nil, &PackedError{name, "zstdcat"}
	}
	in, done := input.Filtered(ctx, br)
	defer done()
	log, err := ReadLog(name, in)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return log, err
}

// ReadLog collects the messages of a log of any size. Its error is one of r.
func ReadLog(name string, r io.Reader) (*Log, error) {
	l := &Log{Name: name, Answers: []Answer{}, byKey: map[string]int{}}
	err := oomlog.Scan(r, func(m oomlog.Message) error {
		l.Add(m)
		return nil
	})
	return l, err
}

// Add counts a message. The main one is the first with a ledger, or else the first.
func (l *Log) Add(m oomlog.Message) {
	l.Messages++
	// Messages say the same, however they are wrapped or introduced.
	key := fmt.Sprint(m.Family, m.Backend, m.Device, m.Cut) + strings.ToLower(strings.ReplaceAll(m.Text, " ", ""))
	at, known := l.byKey[key]
	if !known {
		if len(l.Groups) == maxGroups {
			l.Dropped++
			return
		}
		at = len(l.Groups)
		l.byKey[key] = at
		l.Groups = append(l.Groups, newGroup(m))
		if l.Groups[at].Ledger != nil && l.Groups[l.Main].Ledger == nil {
			l.Main = at
		}
	}
	g := &l.Groups[at]
	g.Count++
	g.LastLine = m.Line
	if i, found := slices.BinarySearch(g.Ranks, m.Rank); !found && m.Rank >= 0 && len(g.Ranks) < maxRanks {
		g.Ranks = slices.Insert(g.Ranks, i, m.Rank)
	}
}

// Join puts the events of a snapshot, which name names, beside a log that has messages. The main
// group is then the first that is about one of them.
func (l *Log) Join(name string, events []Event) {
	l.Snapshot, l.Match = name, l.Groups[l.Main].match(events)
	for i := range l.Groups {
		if l.Match == nil || l.Match.Same {
			break
		}
		if m := l.Groups[i].match(events); m.Same {
			l.Main, l.Match = i, m
		}
	}
}

// Explain takes over what a snapshot says of the request that Main is about.
func (l *Log) Explain(r *Report) { l.Failure, l.Cause, l.Answers = r, r.Cause, r.Answers }

// figures are those that a message prints, and what follows from its form.
func (g *Group) figures() *Figures {
	f := &Figures{
		Stated: g.stated(), Requested: g.Tried, Segment: g.Tried, Absurd: absurd, Most: g.Total, Total: g.Total,
		Free: g.Free, Reserved: g.Reserved, Left: g.left(), Fraction: 1, Spilled: g.Spilled(),
		NoCache: g.Family == oomlog.Async, Pieces: g.Unallocated, Pools: g.PrivatePools,
	}
	if g.Family == oomlog.Exabyte {
		f.Requested = exact(math.MaxInt64)
	}
	if l := g.Ledger; l != nil {
		n, apart := l.Get(RowOthers)
		told := apart
		if !told {
			n, told = l.Get(RowForeign)
		}
		if told {
			f.Foreign, f.Apart = exact(n), apart
		}
	}
	if g.Unified() {
		f.Most, f.Total = oomlog.Size{}, oomlog.Size{}
	}
	return f
}

// stated is the cause that the form of a message says by itself.
func (g *Group) stated() Cause {
	switch {
	case g.Backend == "cpu":
		return Host
	case g.Family == oomlog.Outside:
		return Outside
	case g.Family == oomlog.Rejected:
		return Limit
	case g.Family != oomlog.MPS:
		return ""
	case !g.Allowed.Known() || !g.Allocated.Known() || !g.Tried.Known() && !g.Other.Known():
		return TooFew
	}
	return Limit
}

// left is what the message's limit leaves to the process.
func (g *Group) left() oomlog.Size {
	held := g.Reserved
	if g.Family == oomlog.Async {
		held = g.Allocated
	}
	if !g.Allowed.Known() || !held.Known() {
		return oomlog.Size{}
	}
	return oomlog.Size{Bytes: g.Allowed.Bytes - g.Allowed.Step - held.Bytes, Step: g.Allowed.Step + held.Step}
}

// Unified reports whether more is free than the device is said to have, as drivers report it of GPUs that use the
// machine's memory: the total is then not what PyTorch can have.
func (g *Group) Unified() bool {
	return g.Total.Known() && g.Free.Known() && g.Free.Bytes > g.Total.Bytes+g.Free.Step+g.Total.Step
}

// Spilled reports whether the process holds more than the device has: the driver moved part
// of it to the machine's memory, as it does under Windows and WSL.
func (g *Group) Spilled() bool {
	r := g.Reserved
	return g.Total.Known() && r.Known() && r.Bytes > g.Total.Bytes+r.Step+g.Total.Step
}
