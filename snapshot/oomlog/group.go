package oomlog

import (
	"fmt"
	"slices"
	"strings"
)

// What a Log keeps at most.
const (
	maxGroups = 1000
	maxRanks  = 4096
)

// Group is all messages of a log that say the same.
type Group struct {
	Message        // the first of them
	Count    int64 // how often it stands in the log
	LastLine int64
	Ranks    []int // those that are known, ascending
}

// Log collects the messages of a log. It keeps a bounded number of different ones.
type Log struct {
	Groups   []*Group // by first appearance
	Messages int64    // all, also those that are in no group
	Dropped  int64    // messages beyond the kept groups
	byKey    map[string]*Group
}

// Add counts a message.
func (l *Log) Add(m Message) {
	if l.byKey == nil {
		l.byKey = map[string]*Group{}
	}
	l.Messages++
	key := m.key()
	g := l.byKey[key]
	if g == nil {
		if len(l.Groups) == maxGroups {
			l.Dropped++
			return
		}
		g = &Group{Message: m}
		l.byKey[key] = g
		l.Groups = append(l.Groups, g)
	}
	g.Count++
	g.LastLine = m.Line
	if at, found := slices.BinarySearch(g.Ranks, m.Rank); !found && m.Rank >= 0 && len(g.Ranks) < maxRanks {
		g.Ranks = slices.Insert(g.Ranks, at, m.Rank)
	}
}

// key is the same for messages that say the same, however they are wrapped or introduced.
func (m *Message) key() string {
	return fmt.Sprint(m.Family, m.Backend, m.Device, m.Cut) + strings.ToLower(strings.ReplaceAll(m.Text, " ", ""))
}

// Main is the group to explain first: the first one with a ledger, or else the first.
func (l *Log) Main() *Group {
	for _, g := range l.Groups {
		if g.Ledger() != nil {
			return g
		}
	}
	if len(l.Groups) == 0 {
		return nil
	}
	return l.Groups[0]
}

// Report is what a log says, with the snapshot of the same failure beside it if there is one.
type Report struct {
	Name     string // of the log
	Log      Log
	Main     *Group
	Snapshot string // name of the snapshot's file, "" none
	Match    *Match // of Main; nil when the snapshot has no out-of-memory event
}

// NewReport joins a log, which must have messages, with the events of a snapshot. The main
// group is then the first that is about an event of the snapshot.
func NewReport(name string, log Log, snapshot string, events []Event) *Report {
	r := &Report{Name: name, Log: log, Main: log.Main(), Snapshot: snapshot}
	r.Match = r.Main.Match(events)
	for _, g := range log.Groups {
		if r.Match == nil || r.Match.Same {
			break
		}
		if m := g.Match(events); m.Same {
			r.Main, r.Match = g, m
		}
	}
	return r
}
