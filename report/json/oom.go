package json

import (
	"io"

	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// OOMSchema is the value of "schema" in what WriteOOM writes; see SCHEMA.md.
const OOMSchema = "snapana.oom/1"

type oomDoc struct {
	Schema   string       `json:"schema"`
	File     string       `json:"file"`
	Total    int64        `json:"total"`
	Dropped  int64        `json:"dropped"`
	Main     int          `json:"main"`
	Messages []oomMessage `json:"messages"`
	Snapshot string       `json:"snapshot"`
	Match    *oomMatch    `json:"match,omitempty"`
	Cause    string       `json:"cause"`
	WouldFit []oom.Answer `json:"would_fit"`
}

type oomMessage struct {
	Family   string `json:"family"`
	Backend  string `json:"backend"`
	Cause    string `json:"cause"`
	Line     int64  `json:"line"`
	LastLine int64  `json:"last_line"`
	Offset   int64  `json:"offset"`
	Count    int64  `json:"count"`
	Ranks    []int  `json:"ranks"`
	Class    string `json:"class"`
	Device   int    `json:"device"`
	Cut      bool   `json:"cut"`
	Hint     string `json:"hint"`
	Text     string `json:"text"`

	Tried        *int64       `json:"tried,omitempty"`
	Total        *int64       `json:"device_total,omitempty"`
	Free         *int64       `json:"free,omitempty"`
	Allowed      *int64       `json:"allowed,omitempty"`
	Allocated    *int64       `json:"allocated,omitempty"`
	Unallocated  *int64       `json:"unallocated,omitempty"`
	Reserved     *int64       `json:"reserved,omitempty"`
	Active       *int64       `json:"active,omitempty"`
	PrivatePools *int64       `json:"private_pools,omitempty"`
	Other        *int64       `json:"other,omitempty"`
	Processes    []oomProcess `json:"processes"`
	Ledger       []oomRow     `json:"ledger"`
	LedgerSlack  int64        `json:"ledger_slack"`
}

type oomProcess struct {
	PID  int64  `json:"pid"`
	Used *int64 `json:"used,omitempty"`
}

type oomRow struct {
	Row     oom.Row `json:"row"`
	Bytes   int64   `json:"bytes"`
	Derived bool    `json:"derived"`
}

type oomMatch struct {
	Device  int         `json:"device"`
	Event   int         `json:"event"`
	Time    int64       `json:"time_us"`
	Site    string      `json:"site"`
	Same    bool        `json:"same"`
	Figures []oomFigure `json:"figures"`
}

type oomFigure struct {
	Name     string `json:"name"`
	Message  int64  `json:"message"`
	Snapshot int64  `json:"snapshot"`
	Agree    bool   `json:"agree"`
}

func known(s oomlog.Size) *int64 {
	if !s.Known() {
		return nil
	}
	return &s.Bytes
}

// WriteOOM writes the out-of-memory messages of a log.
func WriteOOM(w io.Writer, r *oom.Log) error {
	doc := buildOOM(r)
	if r.Failure != nil {
		doc.Cause, doc.WouldFit = string(r.Failure.Cause), list(r.Failure.Answers)
	}
	return encode(w, doc)
}

func buildOOM(r *oom.Log) *oomDoc {
	out := &oomDoc{Schema: OOMSchema, File: r.Name, Total: r.Messages, Dropped: r.Dropped, Main: r.Main, Snapshot: r.Snapshot, Messages: []oomMessage{}, WouldFit: []oom.Answer{}}
	for _, g := range r.Groups {
		m := oomMessage{
			Family: g.Family.String(), Backend: g.Backend, Cause: string(g.Cause),
			Line: g.Line, LastLine: g.LastLine, Offset: g.Offset, Count: g.Count, Ranks: append([]int{}, g.Ranks...),
			Class: g.Class, Device: g.Device, Cut: g.Cut, Hint: g.Hint, Text: g.Text,
			Tried: known(g.Tried), Total: known(g.Total), Free: known(g.Free), Allowed: known(g.Allowed),
			Allocated: known(g.Allocated), Unallocated: known(g.UnallocatedBytes()), Reserved: known(g.ReservedBytes()),
			Active: known(g.Active), PrivatePools: known(g.PrivatePools), Other: known(g.Other),
			Processes: []oomProcess{}, Ledger: []oomRow{},
		}
		for _, p := range g.Processes {
			m.Processes = append(m.Processes, oomProcess{p.PID, known(p.Used)})
		}
		if l := g.Ledger; l != nil {
			m.LedgerSlack = l.Slack
			for _, row := range l.Rows {
				m.Ledger = append(m.Ledger, oomRow(row))
			}
		}
		out.Messages = append(out.Messages, m)
	}
	if r.Match != nil {
		e := &r.Match.Event
		out.Match = &oomMatch{Device: e.Device, Event: e.Index, Time: e.Time, Site: e.Site, Same: r.Match.Same, Figures: []oomFigure{}}
		for _, f := range r.Match.Figures {
			out.Match.Figures = append(out.Match.Figures, oomFigure{f.Name, f.Message.Bytes, f.Snapshot, f.Agree})
		}
	}
	return out
}
