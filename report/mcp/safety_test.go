package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/snapana/snapana/fixtures/hostile"
	"github.com/snapana/snapana/report/mcp"
	"github.com/snapana/snapana/snapshot/budget"
)

func code(a answer) string {
	e, _ := a.doc["error"].(map[string]any)
	s, _ := e["code"].(string)
	return s
}

func text(a answer) string {
	data, _ := json.Marshal(a.doc)
	return string(data)
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, from))
	if err == nil {
		err = os.WriteFile(to, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRoots asks for files outside of the roots, in many ways; and for those below them, in all that are allowed.
func TestRoots(t *testing.T) {
	top := t.TempDir()
	root, other := filepath.Join(top, "in"), filepath.Join(top, "out")
	for _, dir := range []string{root, other, filepath.Join(root, "sub"), filepath.Join(top, "in-side")} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	copied(t, "ghost.pickle", filepath.Join(root, "sub", "a.pickle"))
	copied(t, "ghost.pickle", filepath.Join(other, "secret.pickle"))
	copied(t, "ghost.pickle", filepath.Join(top, "in-side", "b.pickle"))
	copied(t, "holders/two_leaks/snapshot.pickle.zst", filepath.Join(root, "c.pickle"))
	copied(t, "holders/two_leaks/run.snapana", filepath.Join(other, "run.snapana"))
	links := map[string]string{"link.pickle": "../out/secret.pickle", "dir": "../out", "up": "..", "self": "/proc/self/root",
		"abs.pickle": filepath.Join(other, "secret.pickle"), "good.pickle": "sub/a.pickle",
		"good2.pickle": filepath.Join(root, "sub", "a.pickle"), "c.snapana": "../out/run.snapana", "loop": "loop"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := client(t, mcp.Options{Roots: []string{root}})
	up := strings.Repeat("../", 12)
	for _, name := range []string{"../out/secret.pickle", "sub/../../out/secret.pickle", filepath.Join(other, "secret.pickle"),
		"link.pickle", "abs.pickle", "dir/secret.pickle", "up/out/secret.pickle", "self" + other + "/secret.pickle",
		up + other + "/secret.pickle", "/proc/self/root" + other + "/secret.pickle", "/proc/self/cwd/../x", "/etc/passwd",
		"/proc/self/environ", "/dev/zero", "../in-side/b.pickle", "file://" + other + "/secret.pickle", "s3://bucket/x",
		"S3://bucket/x", "-", "~/x", "", "..", "/", ".\x00/../out/secret.pickle", "loop", "sub//../..//out/secret.pickle",
		"..\\out\\secret.pickle", other + "/not-there.pickle", "%2e%2e/out/secret.pickle"} {
		for tool, args := range map[string]map[string]any{
			"report": {"file": name}, "oom": {"file": name}, "ranks": {"files": []string{name}}, "diff": {"a": "sub/a.pickle", "b": name},
			"ghosts": {"file": "sub/a.pickle", "recorder": name}, "at": {"file": name, "address": "1"},
			"fit": {"files": []string{name}, "at": []map[string]int{{"batch": 2}}}, "state": {"file": name},
			"whatif": {"file": name},
		} {
			if tool == "ghosts" && name == "" {
				continue // none was asked for
			}
			a := call(t, c, tool, args)
			if !a.err {
				t.Errorf("%s %q is answered: %.300s", tool, name, text(a))
			}
			if got := code(a); got != "permission" && got != "no_such_file" && got != "usage" && got != "wrong_kind" {
				t.Errorf("%s %q: %s", tool, name, text(a))
			}
		}
		if r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "snapana://" + name + "/plot/timeline.png"}); err == nil {
			t.Errorf("the resource %q is read: %v", name, r)
		}
	}
	// Whether there is such a file outside does not show.
	there := call(t, c, "report", map[string]any{"file": other + "/secret.pickle"})
	not := call(t, c, "report", map[string]any{"file": other + "/sacred.pickle"})
	if strings.ReplaceAll(text(not), "sacred", "secret") != text(there) {
		t.Errorf("%s and %s", text(there), text(not))
	}
	for _, name := range []string{"sub/a.pickle", "./sub/../sub/a.pickle", "good.pickle", "good2.pickle",
		filepath.Join(root, "sub", "a.pickle"), "sub//a.pickle"} {
		if a := call(t, c, "report", map[string]any{"file": name}); a.err || a.doc["status"] != "ghost" {
			t.Errorf("%s: %s", name, text(a))
		}
	}
	if a := call(t, c, "ghosts", map[string]any{"file": "c.pickle"}); a.err || a.doc["recorder"] != false {
		t.Errorf("a recording outside of the roots is read: %s", text(a))
	}
	if a := call(t, c, "report", map[string]any{"file": "."}); a.err || strings.Contains(text(a), "secret") ||
		!strings.Contains(text(a), "sub/a.pickle") {
		t.Errorf("%s", text(a))
	}
}

// TestBounds holds that no answer is larger than was asked for, whatever names a snapshot has; that an answer is the same
// the second time; and that what is left out is told.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join(fixtures, "ghost.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	// Names of the same length that take most in JSON, and that would drive a terminal.
	for name, with := range map[string]string{"quotes.pickle": `"""""""`, "signs.pickle": "<&>\x1b[\x02&", "slashes.pickle": `\\\\\\\`} {
		hostile := bytes.ReplaceAll(data, []byte("forward"), []byte(with))
		if err := os.WriteFile(filepath.Join(dir, name), hostile, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ghost.pickle", "fragmentation.pickle", "healthy.pickle"} {
		copied(t, name, filepath.Join(dir, name))
	}
	copied(t, "train.log", filepath.Join(dir, "train.log"))
	c := client(t, mcp.Options{Roots: []string{dir}})
	long := strings.Repeat(`<"\&`+"\u202e", 4000)
	cut := 0
	for _, most := range []int{0, 2048, 4096, 32768} {
		for _, name := range []string{"quotes.pickle", "signs.pickle", "slashes.pickle", "fragmentation.pickle", "healthy.pickle"} {
			for _, q := range []struct {
				tool string
				args map[string]any
			}{
				{"report", map[string]any{"file": name}}, {"state", map[string]any{"file": name, "by": "stack"}},
				{"state", map[string]any{"file": name, "by": "block", "at": "peak"}}, {"ghosts", map[string]any{"file": name}},
				{"whatif", map[string]any{"file": name}}, {"whatif", map[string]any{"file": name, "changes": []string{long}}},
				{"diff", map[string]any{"a": name, "b": "ghost.pickle"}}, {"oom", map[string]any{"file": name}},
				{"oom", map[string]any{"file": "train.log", "snapshot": name}}, {"at", map[string]any{"file": name, "address": "1"}},
				{"ranks", map[string]any{"files": []string{"."}}}, {"report", map[string]any{"file": long}},
				{"report", map[string]any{"file": name, "id": long}}, {"state", map[string]any{"file": name, "at": long}},
				{"state", map[string]any{"file": name, "match": "(" + long}}, {"state", map[string]any{"file": name, "by": long}},
				{"at", map[string]any{"file": name, "address": long}},
			} {
				bound := mcp.DefaultBytes
				if most > 0 {
					q.args["max_bytes"], bound = most, most
				}
				a := call(t, c, q.tool, q.args)
				if a.bytes > bound {
					t.Errorf("%s %.200v: %d bytes of %d", q.tool, q.args, a.bytes, bound)
				}
				if b := call(t, c, q.tool, q.args); text(b) != text(a) || b.bytes != a.bytes {
					t.Errorf("%s %.200v is answered in two ways", q.tool, q.args)
				}
				if strings.ContainsAny(text(a), "\x1b\x02") || strings.ContainsRune(text(a), '\u202e') {
					t.Errorf("%s %.200v: %.300q", q.tool, q.args, text(a))
				}
				if a.doc["left_out"] != nil {
					cut++
				}
				if !a.err && a.doc["verdict"] == nil {
					t.Errorf("%s %.200v has no verdict: %.300s", q.tool, q.args, text(a))
				}
			}
		}
	}
	if cut == 0 {
		t.Error("nothing was left out anywhere")
	}
	for _, most := range []int{1, 2047, 32769, -1} {
		if a := call(t, c, "report", map[string]any{"file": "ghost.pickle", "max_bytes": most}); code(a) != "usage" {
			t.Errorf("max_bytes %d: %s", most, text(a))
		}
	}
}

// TestHostile asks about files that attack a reader: each is answered or refused with a code, and the server goes on.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, f := range hostile.All() {
		if f.Large {
			continue
		}
		names = append(names, f.Name)
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c := client(t, mcp.Options{Roots: []string{dir}})
	for i, name := range names {
		if testing.Short() && i%4 != 0 {
			continue
		}
		for _, tool := range []string{"report", "oom"} {
			if a := call(t, c, tool, map[string]any{"file": name}); a.err && (code(a) == "" || code(a) == "failed") {
				t.Errorf("%s %s: %s", tool, name, text(a))
			}
		}
	}
}

// TestGuard refuses work that takes too much, and goes on with the next.
func TestGuard(t *testing.T) {
	refusing := true
	c := client(t, mcp.Options{Roots: []string{fixtures}, Guard: func(_ *budget.Meter, refuse func(error)) func() {
		if refusing {
			refuse(mcp.Refused("too much"))
		}
		return func() {}
	}})
	a := call(t, c, "report", map[string]any{"file": "ghost.pickle"})
	if code(a) != "limit" {
		t.Errorf("%s", text(a))
	}
	refusing = false
	if a = call(t, c, "report", map[string]any{"file": "ghost.pickle"}); a.err {
		t.Errorf("%s", text(a))
	}
}

// TestOnce counts the work of calls on the same file: one reading and one analysis for many at once, none for the next,
// and a new one when the file changed.
func TestOnce(t *testing.T) {
	var mu sync.Mutex
	works := 0
	count := func(*budget.Meter, func(error)) func() {
		mu.Lock()
		defer mu.Unlock()
		works++
		return func() {}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a.pickle")
	copied(t, "ghost.pickle", file)
	c := client(t, mcp.Options{Roots: []string{dir}, Guard: count})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { call(t, c, "report", map[string]any{"file": "a.pickle"}) })
	}
	all.Wait()
	call(t, c, "ghosts", map[string]any{"file": "a.pickle"})
	if works != 2 {
		t.Errorf("%d works", works)
	}
	// Another file of the same size and time.
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte("validate"), []byte("evaluate")), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if a := call(t, c, "report", map[string]any{"file": "a.pickle"}); works != 4 || !strings.Contains(text(a), "evaluate()") {
		t.Errorf("%d works: %s", works, text(a))
	}
	// A cache without room keeps nothing.
	small := client(t, mcp.Options{Roots: []string{dir}, Guard: count, Cache: 1})
	works = 0
	for range 2 {
		call(t, small, "report", map[string]any{"file": "a.pickle"})
	}
	if works != 4 {
		t.Errorf("%d works without a cache", works)
	}
}

// TestCancel gives a call up: its work ends, and the server goes on.
func TestCancel(t *testing.T) {
	began, ended := make(chan bool, 1), make(chan bool, 1)
	first := true
	c := client(t, mcp.Options{Roots: []string{fixtures}, Guard: func(*budget.Meter, func(error)) func() {
		if !first {
			return func() {}
		}
		first = false
		began <- true
		time.Sleep(100 * time.Millisecond)
		return func() { ended <- true }
	}})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-began
		stop()
	}()
	_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "report", Arguments: map[string]any{"file": "healthy.pickle"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-ended
	if a := call(t, c, "report", map[string]any{"file": "healthy.pickle"}); a.err {
		t.Errorf("%s", text(a))
	}
}

// TestTools holds that all tools say that they only read, and what their arguments are.
func TestTools(t *testing.T) {
	c := client(t, mcp.Options{Roots: []string{fixtures}, Skill: "how to"})
	list, err := c.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 9 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, tool := range list.Tools {
		if a := tool.Annotations; a == nil || !a.ReadOnlyHint || !a.IdempotentHint || tool.Description == "" {
			t.Errorf("%s: %+v", tool.Name, tool.Annotations)
		}
		properties := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		if properties["max_bytes"] == nil {
			t.Errorf("%s has no max_bytes", tool.Name)
		}
		for name, p := range properties {
			if d, _ := p.(map[string]any)["description"].(string); d == "" {
				t.Errorf("%s: %s is not described", tool.Name, name)
			}
		}
	}
	if r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "snapana://skill"}); err != nil ||
		r.Contents[0].Text != "how to" {
		t.Errorf("%v, %v", r, err)
	}
	if p, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "triage"}); err != nil || len(p.Messages) != 1 {
		t.Errorf("%v, %v", p, err)
	}
}

// TestIDs gives the ids of answers back, to tools and as resources, and holds that they are the same in all.
func TestIDs(t *testing.T) {
	c := client(t, mcp.Options{Roots: []string{fixtures}})
	report := call(t, c, "report", map[string]any{"file": "ghost.pickle"})
	ghosts := call(t, c, "ghosts", map[string]any{"file": "ghost.pickle"})
	state := call(t, c, "state", map[string]any{"file": "ghost.pickle", "by": "stack"})
	field := func(a answer, path string) string {
		v, ok := at(a.doc, strings.Split(path, "/"), "", nil)
		if !ok {
			t.Fatalf("no %s in %s", path, text(a))
		}
		return v.(string)
	}
	finding, stack := field(report, "findings/0/id"), field(report, "findings/0/stack")
	if field(ghosts, "leaks/0/id") != finding || field(ghosts, "leaks/0/stack") != stack || field(state, "groups/0/stack") != stack {
		t.Errorf("%s and %s\n%s\n%s", finding, stack, text(ghosts), text(state))
	}
	if v := field(state, "verdict"); v != "active 2.09 GiB, reserved 2.14 GiB on GPU 0 of ghost.pickle, at the end" {
		t.Errorf("state leads with %q", v)
	}
	for _, q := range []struct {
		tool string
		id   string
		has  string
	}{{"report", finding, `"why"`}, {"at", finding, `"why"`}, {"report", stack, `"never_freed"`}, {"at", stack, "model.py:39 forward"}} {
		a := call(t, c, q.tool, map[string]any{"file": "ghost.pickle", "id": q.id})
		if a.err || !strings.Contains(text(a), q.has) {
			t.Errorf("%s %s: %s", q.tool, q.id, text(a))
		}
		kind, id, _ := strings.Cut(q.id, ":")
		uri := fmt.Sprintf("snapana://ghost.pickle/%s/%s", kind, id)
		r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !strings.Contains(r.Contents[0].Text, q.has) {
			t.Errorf("%s: %v, %v", uri, r, err)
		}
	}
	for _, id := range []string{"stack:0000000000000000", "finding:0", "x", finding + "0"} {
		if a := call(t, c, "report", map[string]any{"file": "ghost.pickle", "id": id}); code(a) != "not_in_file" {
			t.Errorf("%s: %s", id, text(a))
		}
	}
	r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: field(report, "picture")})
	if err != nil || !bytes.HasPrefix(r.Contents[0].Blob, []byte("\x89PNG")) {
		t.Errorf("%v", err)
	}
}

// TestMore makes every call that the answers of all tools name, and theirs: each is answered.
func TestMore(t *testing.T) {
	c := client(t, mcp.Options{Roots: []string{fixtures}})
	type next struct {
		tool string
		args map[string]any
	}
	base := "lab/pairs/recordings/base.pickle.xz"
	list := []next{{"report", map[string]any{"file": "ghost.pickle"}}, {"report", map[string]any{"file": "fragmentation.pickle"}},
		{"report", map[string]any{"file": "holders/genuine_oom/snapshot.pickle.zst", "capacity": "16GiB"}},
		{"report", map[string]any{"file": "ranks"}}, {"oom", map[string]any{"file": "train.log", "snapshot": "fragmentation.pickle"}},
		{"whatif", map[string]any{"file": base, "capacity": "650MiB"}}, {"diff", map[string]any{"a": base, "b": "healthy.pickle"}},
		{"at", map[string]any{"file": "ghost.pickle", "address": "b7b0007e00000_0"}},
		{"state", map[string]any{"file": "fragmentation.pickle", "by": "block", "max_bytes": 4096}}}
	made := map[string]bool{}
	for ; len(list) > 0 && len(made) < 60; list = list[1:] {
		key := fmt.Sprint(list[0])
		if made[key] {
			continue
		}
		made[key] = true
		a := call(t, c, list[0].tool, list[0].args)
		if a.err {
			t.Errorf("%s: %s", key, text(a))
		}
		more, _ := a.doc["more"].([]any)
		for _, m := range more {
			m := m.(map[string]any)
			list = append(list, next{m["tool"].(string), m["arguments"].(map[string]any)})
		}
	}
}

// TestHTTP holds who gets an answer over HTTP.
func TestHTTP(t *testing.T) {
	s, err := mcp.New(t.Context(), mcp.Options{Roots: []string{fixtures}, Cache: mcp.DefaultCache})
	if err != nil {
		t.Fatal(err)
	}
	const token = "0123456789abcdef"
	h := s.Handler("8322", token)
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"x","version":"1"}}}`
	for _, c := range []struct {
		host, origin, auth, path string
		want                     int
	}{
		{"127.0.0.1:8322", "", "Bearer " + token, "/mcp", 200},
		{"localhost:8322", "http://localhost:8322", "Bearer " + token, "/mcp", 200},
		{"127.0.0.1:8322", "", "bearer  " + token, "/mcp", 200},
		{"127.0.0.1:8322", "", "Basic " + token, "/mcp", 401},
		{"127.0.0.1:8322", "", "", "/mcp", 401},
		{"127.0.0.1:8322", "", "Bearer ", "/mcp", 401},
		{"127.0.0.1:8322", "", "Bearer " + token + "0", "/mcp", 401},
		{"127.0.0.1:8322", "", token, "/mcp", 401},
		{"127.0.0.1:8322", "", "", "/mcp?token=" + token, 401},
		{"127.0.0.1:8322", "", "Bearer " + token, "/", 404},
		{"evil.example:8322", "", "Bearer " + token, "/mcp", 421},
		{"127.0.0.1:9", "", "Bearer " + token, "/mcp", 421},
		{"127.0.0.1", "", "Bearer " + token, "/mcp", 421},
		{"0.0.0.0:8322", "", "Bearer " + token, "/mcp", 421},
		{"127.0.0.1:8322", "http://evil.example", "Bearer " + token, "/mcp", 403},
		{"127.0.0.1:8322", "null", "Bearer " + token, "/mcp", 403},
		{"127.0.0.1:8322", "http://localhost:8322", "Bearer " + token, "/mcp", 403},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(body))
		r.Host = c.host
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.auth != "" {
			r.Header.Set("Authorization", c.auth)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || c.want == 200 && !strings.Contains(w.Body.String(), `"snapana"`) ||
			w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%+v: %d %.200s", c, w.Code, w.Body)
		}
	}
}

// TestRace reads one file for several clients and tools at once.
func TestRace(t *testing.T) {
	c := client(t, mcp.Options{Roots: []string{fixtures}, Cache: 1 << 20})
	var all sync.WaitGroup
	for i := range 2 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			name := []string{"ghost.pickle", "healthy.pickle"}[i%2]
			for _, tool := range []string{"report", "state", "ghosts"} {
				if a := call(t, c, tool, map[string]any{"file": name}); a.err {
					t.Errorf("%s %s: %s", tool, name, text(a))
				}
			}
		})
	}
	all.Wait()
}
