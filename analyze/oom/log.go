package oom

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot/oomlog"
)

// What a Log keeps at most.
const (
	maxGroups = 1000
	maxRanks  = 4096
)

// Group is all messages of a log that say the same.
type Group struct {
	oomlog.Message // the first of them
	Cause          Cause
	Ledger         *Ledger // nil when the message has too few figures
	Count          int64   // how often it stands in the log
	LastLine       int64
	Ranks          []int // those that are known, ascending
}

// Log is the out-of-memory messages of a log, with the snapshot of the same failure beside it if
// there is one. It keeps a bounded number of different ones.
type Log struct {
	Name     string
	Groups   []*Group // by first appearance
	Main     int      // the one to explain first
	Messages int64    // all, also those that are in no group
	Dropped  int64    // messages beyond the kept groups
	Snapshot string   // name of the snapshot's file, "" none
	Match    *Match   // of Main; nil when the snapshot has no out-of-memory event
	Failure  *Report  // the snapshot's report on the request that Main is about, nil for none
	byKey    map[string]*Group
}

// ReadLog collects the messages of a log of any size. Its error is one of r.
func ReadLog(name string, r io.Reader) (*Log, error) {
	l := &Log{Name: name}
	err := oomlog.Scan(r, func(m oomlog.Message) error {
		l.Add(m)
		return nil
	})
	return l, err
}

// Add counts a message. The main one is the first with a ledger, or else the first.
func (l *Log) Add(m oomlog.Message) {
	if l.byKey == nil {
		l.byKey = map[string]*Group{}
	}
	l.Messages++
	// Messages say the same, however they are wrapped or introduced.
	key := fmt.Sprint(m.Family, m.Backend, m.Device, m.Cut) + strings.ToLower(strings.ReplaceAll(m.Text, " ", ""))
	g := l.byKey[key]
	if g == nil {
		if len(l.Groups) == maxGroups {
			l.Dropped++
			return
		}
		g = &Group{Message: m}
		g.Ledger = ledger(&m)
		g.Cause = g.figures().Cause()
		l.byKey[key] = g
		l.Groups = append(l.Groups, g)
		if g.Ledger != nil && l.Groups[l.Main].Ledger == nil {
			l.Main = len(l.Groups) - 1
		}
	}
	g.Count++
	g.LastLine = m.Line
	if at, found := slices.BinarySearch(g.Ranks, m.Rank); !found && m.Rank >= 0 && len(g.Ranks) < maxRanks {
		g.Ranks = slices.Insert(g.Ranks, at, m.Rank)
	}
}

// Join puts the events of a snapshot, which name names, beside a log that has messages. The main
// group is then the first that is about one of them.
func (l *Log) Join(name string, events []Event) {
	l.Snapshot, l.Match = name, l.Groups[l.Main].match(events)
	for i, g := range l.Groups {
		if l.Match == nil || l.Match.Same {
			break
		}
		if m := g.match(events); m.Same {
			l.Main, l.Match = i, m
		}
	}
}
