package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/snapana/snapana/report/mcp"
)

var update = flag.Bool("update", false, "write the table of the evaluation in the manual")

// client connects to a server that may read below folders.
func client(t *testing.T, opt mcp.Options) *sdk.ClientSession {
	t.Helper()
	if opt.Cache == 0 {
		opt.Cache = mcp.DefaultCache
	}
	s, err := mcp.New(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	toServer, fromClient := pipe()
	toClient, fromServer := pipe()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, toServer, fromServer) }()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		stop()
		<-done
	})
	return session
}

// answer is what a call gave.
type answer struct {
	doc   map[string]any
	bytes int // of all of it, as it was sent
	err   bool
}

func call(t *testing.T, c *sdk.ClientSession, tool string, args map[string]any) answer {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	sent, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{bytes: len(sent), err: r.IsError}
	text := r.Content[0].(*sdk.TextContent).Text
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&a.doc); err != nil {
		if !a.err {
			t.Fatalf("%s %v: %v in %s", tool, args, err, text)
		}
		a.doc = map[string]any{"text": text}
	}
	return a
}

// at follows a path in an answer. Of a list it takes the item that is meant, or where any may be the first that has it.
func at(v any, steps []string, item string, part any) (any, bool) {
	if len(steps) == 0 {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		next, ok := v[steps[0]]
		if !ok {
			return nil, false
		}
		return at(next, steps[1:], item, part)
	case []any:
		if i, err := strconv.Atoi(steps[0]); err == nil && i < len(v) {
			return at(v[i], steps[1:], item, part)
		}
		for _, one := range v {
			if o, ok := one.(map[string]any); ok && (item == "" || equal(o[item], part)) && steps[0] == "*" {
				if got, ok := at(one, steps[1:], item, part); ok {
					return got, true
				}
			}
		}
	}
	return nil, false
}

// Bounds of what a question may take.
const (
	mostCalls = 4
	mostSent  = 32 << 10
	// leastRight is how many of a hundred are right. Two predictions are not: the manual has the table.
	leastRight = 98
)

// ask answers a question as its kind says: it makes the first call, reads the field that the kind declares, and where
// that is not there makes the calls that the answer names, in their order.
func ask(t *testing.T, c *sdk.ClientSession, q *question) (got any, calls, sent int) {
	t.Helper()
	k := kinds[q.kind]
	type next struct {
		tool string
		args map[string]any
	}
	made := map[string]bool{}
	for list := []next{{k.tool, q.args}}; len(list) > 0 && calls < mostCalls; list = list[1:] {
		key := fmt.Sprint(list[0])
		if made[key] {
			continue
		}
		made[key] = true
		a := call(t, c, list[0].tool, list[0].args)
		calls, sent = calls+1, sent+a.bytes
		if a.err {
			continue
		}
		for _, field := range k.field {
			if v, ok := at(a.doc, strings.Split(field, "/"), k.item, q.part); ok {
				return v, calls, sent
			}
		}
		more, _ := a.doc["more"].([]any)
		for _, m := range more {
			m := m.(map[string]any)
			list = append(list, next{m["tool"].(string), m["arguments"].(map[string]any)})
		}
	}
	return nil, calls, sent
}

// TestEvaluation puts the questions through the tools, and holds the share of right answers, that each tool is asked, and
// the manual's table of the outcome.
func TestEvaluation(t *testing.T) {
	all := questions(t)
	if len(all) < 100 {
		t.Errorf("%d questions", len(all))
	}
	c := client(t, mcp.Options{Roots: []string{fixtures}})
	asked := map[string]bool{}
	for i := range all {
		asked[kinds[all[i].kind].tool] = true
	}
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if !asked[tool.Name] {
			t.Errorf("nothing is asked of %s", tool.Name)
		}
	}
	type tally struct{ n, right, abstained, calls, sent, most int }
	sums := map[string]*tally{}
	for i := range all {
		if testing.Short() && i%5 != 0 {
			continue
		}
		q := &all[i]
		got, calls, sent := ask(t, c, q)
		s := sums[q.kind]
		if s == nil {
			s = new(tally)
			sums[q.kind] = s
		}
		s.n, s.calls, s.sent, s.most = s.n+1, s.calls+calls, s.sent+sent, max(s.most, sent)
		switch {
		case got == nil:
			s.abstained++
			t.Logf("%s %v: no answer, want %v", q.kind, q.args, q.want)
		case kinds[q.kind].right(got, q.want):
			s.right++
		default:
			t.Logf("%s %v: %v, want %v", q.kind, q.args, got, q.want)
		}
		if calls > mostCalls || sent > mostSent {
			t.Errorf("%s %v took %d calls and %d bytes", q.kind, q.args, calls, sent)
		}
	}
	var b bytes.Buffer
	b.WriteString("| question | asked | right | wrong | none | calls | KB | most KB |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	var sum tally
	row := func(what string, s *tally) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %.1f | %d | %d |\n", what, s.n, s.right, s.n-s.right-s.abstained,
			s.abstained, float64(s.calls)/float64(s.n), (s.sent/s.n+1023)/1024, (s.most+1023)/1024)
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		row(kinds[name].asks, s)
		sum = tally{sum.n + s.n, sum.right + s.right, sum.abstained + s.abstained, sum.calls + s.calls, sum.sent + s.sent,
			max(sum.most, s.most)}
	}
	row("all", &sum)
	if 100*sum.right < leastRight*sum.n && !testing.Short() {
		t.Errorf("%d of %d answers are right, less than %d%%", sum.right, sum.n, leastRight)
	}
	if !testing.Short() {
		page(t, b.Bytes())
	}
}

// page holds the table in the manual.
func page(t *testing.T, table []byte) {
	t.Helper()
	const name, begin, end = "../../cmd/snapana/manual/mcp.md", "| question |", "| all |"
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	from, to := bytes.Index(old, []byte(begin)), bytes.Index(old, []byte(end))
	if from < 0 || to < 0 {
		t.Fatal("the manual has no table")
	}
	to += bytes.IndexByte(old[to:], '\n') + 1
	if bytes.Equal(old[from:to], table) {
		return
	}
	if *update {
		if err := os.WriteFile(name, slices.Concat(old[:from], table, old[to:]), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the manual says\n%s\nand it is\n%s", old[from:to], table)
}
