package footprint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Schema is the value of the field "schema" of files that hold a footprint.
const Schema = "snapana.baseline/1"

// maxFile bounds such files, in bytes: one of a large model takes some hundred KiB.
const maxFile = 64 << 20

// Document is a footprint as files have it. In a baseline each group and each frame is on a line of its own, so that a
// change of memory is a change of a line; report.json has the same fields.
type Document struct {
	Schema     string          `json:"schema"`
	File       string          `json:"file"`
	Device     int             `json:"device"`
	At         string          `json:"at"`
	When       string          `json:"when"`
	Totals     timeline.Totals `json:"totals"`
	Peaks      timeline.Peaks  `json:"peaks"`
	Bounds     timeline.Bounds `json:"bounds"` // of Peaks
	HasHistory bool            `json:"has_history"`
	Late       bool            `json:"late"`
	Recomputes bool            `json:"recomputes"`
	Torch      string          `json:"torch"`
	Backend    string          `json:"backend"`
	Settings   []string        `json:"settings,omitzero"` // as "key:value"; absent where the snapshot had none
	Unit       string          `json:"unit"`
	Steps      []Step          `json:"steps"`
	Groups     []GroupDocument `json:"groups"`
	Frames     []string        `json:"frames"` // "origin file:line function"
}

// GroupDocument is a group as files have it.
type GroupDocument struct {
	Requested int64      `json:"requested"`
	Bytes     int64      `json:"bytes"`
	Blocks    int64      `json:"blocks"`
	PreTrace  int64      `json:"pre_trace,omitempty"`
	Use       string     `json:"use"`
	Site      string     `json:"site"`
	Module    string     `json:"module,omitempty"`
	Unknown   bool       `json:"unknown,omitempty"` // Site is no code
	Top       bool       `json:"top,omitempty"`     // has the block that was allocated at the moment
	Stack     []int32    `json:"stack"`             // of Document.Frames, innermost first
	Sizes     [][3]int64 `json:"sizes"`             // requested and rounded bytes of a block, and how many
}

// Document gives the footprint as files have it.
func (f *Footprint) Document() *Document {
	d := &Document{
		Schema: Schema, File: f.Name, Device: f.Device, At: f.At, When: f.When, Totals: f.Totals, Peaks: f.Peaks,
		Bounds: f.Bounds, HasHistory: f.HasHistory, Late: f.Late, Recomputes: f.Recomputes,
		Torch: f.Writer.Text, Backend: f.Writer.Backend, Unit: f.Unit,
		Steps: f.Steps,
	}
	if f.Settings.Present {
		d.Settings = []string{}
	}
	for _, s := range f.Settings.Values {
		d.Settings = append(d.Settings, s.Key+":"+s.Value)
	}
	for i := range f.Groups {
		g := &f.Groups[i]
		out := GroupDocument{
			Requested: g.Requested, Bytes: g.Rounded, Blocks: g.Count, PreTrace: g.PreTrace, Use: g.Use.String(), Site: g.Site,
			Module: g.Module, Unknown: !g.Known, Top: g.top,
			Stack: []int32{},
		}
		if g.Stack >= 0 {
			out.Stack = f.Stacks[g.Stack]
		}
		for _, s := range g.Sizes {
			out.Sizes = append(out.Sizes, [3]int64{s.Requested, s.Rounded, s.Count})
		}
		d.Groups = append(d.Groups, out)
	}
	for _, v := range f.Frames {
		d.Frames = append(d.Frames, fmt.Sprintf("%d %s:%d %s", v.Origin, v.File, v.Line, v.Name))
	}
	return d
}

// Write writes a footprint to a file that Read reads.
func Write(w io.Writer, f *Footprint) error { return f.Document().write(w) }

// write writes one line for each field, and for each element of a list.
func (d *Document) write(w io.Writer) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	b.WriteString("{\n")
	names := []string{"schema", "file", "device", "at", "when", "totals", "peaks", "bounds", "has_history", "late",
		"recomputes", "torch", "backend",
		"settings", "unit", "steps", "groups", "frames"}
	names = slices.DeleteFunc(names, func(name string) bool { return fields[name] == nil })
	for i, name := range names {
		value := fields[name]
		var list []json.RawMessage
		if bytes.HasPrefix(value, []byte("[")) && json.Unmarshal(value, &list) == nil && len(list) > 0 {
			value = append(append([]byte("[\n  "), bytes.Join(rawBytes(list), []byte(",\n  "))...), "\n ]"...)
		}
		fmt.Fprintf(b, " %q: %s", name, value)
		b.WriteString(map[bool]string{true: ",\n", false: "\n}\n"}[i < len(names)-1])
	}
	return b.Flush()
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// ErrNoFootprint says that a file is something else.
var ErrNoFootprint = errors.New("no baseline that snapana wrote")

// Read reads a footprint that Write wrote.
func Read(r io.Reader) (*Footprint, error) {
	var d Document
	if err := Decode(r, &d); err != nil {
		return nil, err
	}
	return d.Footprint()
}

// Decode reads JSON that has footprints, of a bounded size.
func Decode(r io.Reader, to any) error {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("%w: it is larger than one can be", ErrNoFootprint)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%w: %s", ErrNoFootprint, err)
	}
	return nil
}

// Footprint gives the footprint of a document that anyone may have written.
func (d *Document) Footprint() (*Footprint, error) {
	if d.Schema != Schema {
		return nil, fmt.Errorf("%w: its schema is %q, not %q", ErrNoFootprint, d.Schema, Schema)
	}
	f := &Footprint{
		Name: d.File, Device: d.Device, At: d.At, When: d.When, Totals: d.Totals, Peaks: d.Peaks,
		Bounds: d.Bounds, HasHistory: d.HasHistory,
		Late: d.Late, Recomputes: d.Recomputes, Writer: snapshot.Writer{Text: d.Torch, Backend: d.Backend}, Unit: d.Unit,
		Steps:    d.Steps,
		Settings: snapshot.Settings{Present: d.Settings != nil},
	}
	for _, s := range d.Settings {
		key, value, _ := strings.Cut(s, ":")
		f.Settings.Values = append(f.Settings.Values, snapshot.Setting{Key: key, Value: value})
	}
	for i, text := range d.Frames {
		v, err := parseFrame(text)
		if err != nil {
			return nil, fmt.Errorf("%w: frames[%d]: %s", ErrNoFootprint, i, err)
		}
		f.Frames = append(f.Frames, v)
	}
	var sum int64
	known := map[string]int32{}
	for i := range d.Groups {
		g, err := f.parseGroup(&d.Groups[i], known)
		if err != nil {
			return nil, fmt.Errorf("%w: groups[%d]: %s", ErrNoFootprint, i, err)
		}
		f.Groups = append(f.Groups, g)
		sum += g.Rounded
	}
	f.Top = slices.IndexFunc(f.Groups, func(g Group) bool { return g.top })
	if sum != f.Totals.Active {
		return nil, fmt.Errorf("%w: its groups have %d bytes, its total %d", ErrNoFootprint, sum, f.Totals.Active)
	}
	return f, nil
}

func parseFrame(text string) (v attribution.Frame, err error) {
	origin, rest, _ := strings.Cut(text, " ")
	if len(origin) != 1 || origin[0] < '0' || frames.Origin(origin[0]-'0') > frames.User {
		return v, errors.New("it has no origin")
	}
	v.Origin = frames.Origin(origin[0] - '0')
	// Files and functions may have spaces and colons: the line is the last number between them.
	for end := len(rest); end > 0; {
		at := strings.LastIndexByte(rest[:end], ':')
		if at < 0 {
			break
		}
		if n, _ := fmt.Sscanf(rest[at:], ":%d ", &v.Line); n == 1 {
			v.File = rest[:at]
			_, v.Name, _ = strings.Cut(rest[at:], " ")
			return v, nil
		}
		end = at
	}
	return v, errors.New("it has no line")
}

// parseGroup adds the group's stack, unless it is known.
func (f *Footprint) parseGroup(g *GroupDocument, known map[string]int32) (Group, error) {
	out := Group{
		Stack: -1, Site: g.Site, Module: g.Module, Known: !g.Unknown, top: g.Top,
		Sum: attribution.Sum{Count: g.Blocks, Rounded: g.Bytes, Requested: g.Requested, PreTrace: g.PreTrace},
	}
	use, ok := category.Parse(g.Use)
	if !ok {
		return out, fmt.Errorf("unknown use %q", g.Use)
	}
	out.Use = use
	for _, row := range g.Stack {
		if row < 0 || int(row) >= len(f.Frames) {
			return out, fmt.Errorf("frame %d of %d", row, len(f.Frames))
		}
	}
	if len(g.Stack) > 0 {
		key := fmt.Sprint(g.Stack)
		at, ok := known[key]
		if !ok {
			at = int32(len(f.Stacks))
			known[key] = at
			f.Stacks = append(f.Stacks, g.Stack)
		}
		out.Stack = at
	}
	var count, rounded int64
	for i, s := range g.Sizes {
		const most = 1 << 50 // so that no sum overflows
		before := Size{-1, -1, 0}
		if i > 0 {
			before = out.Sizes[i-1]
		}
		if s[0] < 0 || s[0] > most || s[1] < 0 || s[1] > most || s[2] <= 0 || s[2] > most/max(s[1], 1) || count+s[2] > most ||
			rounded+s[1]*s[2] > most || s[0] < before.Requested || s[0] == before.Requested && s[1] <= before.Rounded {
			return out, fmt.Errorf("size %v", s)
		}
		count, rounded = count+s[2], rounded+s[1]*s[2]
		out.Sizes = append(out.Sizes, Size{s[0], s[1], s[2]})
	}
	if count != g.Blocks || rounded != g.Bytes || g.Requested < 0 {
		return out, fmt.Errorf("%d blocks of %d bytes, its sizes make %d of %d", g.Blocks, g.Bytes, count, rounded)
	}
	return out, nil
}
