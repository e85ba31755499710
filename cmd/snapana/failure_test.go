package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/report/failure"
)

// failed is what a command that fails prints for programs.
type failed struct {
	Schema string
	Error  *failure.Failure
}

// TestFailures holds that with JSON asked for, a command that fails prints one object with a code, and the sentence on
// standard error as ever.
func TestFailures(t *testing.T) {
	in, err := inputs()
	if err != nil {
		t.Fatal(err)
	}
	all, dir := schemas(t), t.TempDir()
	for name, data := range in {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rules.yaml", "rules: 7\n")
	write("oom.log", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
	write("quiet.log", "all is well\n")
	write("odd\nname\x1b[2J.pickle", "no pickle")
	os.Mkdir(filepath.Join(dir, "folder"), 0o700)
	os.Symlink("/dev/full", filepath.Join(dir, "full"))
	t.Chdir(dir)
	t.Setenv("SNAPANA_CACHE", "off")
	for _, c := range []struct {
		line string
		code failure.Code
		hint string
	}{
		{"summary --json", failure.Usage, ""},
		{"summary --json a b", failure.Usage, ""},
		{"summary --json --bogus healthy.pickle", failure.Usage, "snapana summary --help"},
		{"summary --jsn --json healthy.pickle", failure.Usage, "--json"},
		{"summary --json=yes healthy.pickle", failure.Usage, ""},
		{"--json", failure.Usage, ""},
		{"sumary --json healthy.pickle", failure.Usage, "summary"},
		{"plot --json healthy.pickle", failure.Usage, ""},
		{"man --json", failure.Usage, ""},
		{"summary --json --width 3 healthy.pickle", failure.Usage, ""},
		{"state --json --by nothing healthy.pickle", failure.Usage, "choose from"},
		{"state --json --top -1 healthy.pickle", failure.Usage, ""},
		{"at --format json healthy.pickle zzz", failure.Usage, ""},
		{"at --format=json --at never healthy.pickle 1", failure.Usage, ""},
		{"report --json --format md healthy.pickle", failure.Usage, ""},
		{"whatif --json --conf what:ever healthy.pickle", failure.Usage, ""},
		{"whatif --json --change what=ever healthy.pickle", failure.Usage, ""},
		{"fit --json healthy.pickle", failure.Usage, ""},
		{"check --json healthy.pickle", failure.Usage, ""},
		{"check --json --max-peak lots healthy.pickle", failure.Usage, ""},
		{"diff --json healthy.pickle", failure.Usage, ""},
		{"nvml --json --watch 1ms", failure.Usage, ""},
		{"digest --json healthy.pickle", failure.Usage, ""},
		{"ranks --json --mesh dp healthy.pickle", failure.Usage, ""},
		{"summary --json absent.pickle", failure.NoSuchFile, ""},
		{"summary --json healty.pickle", failure.NoSuchFile, "healthy.pickle"},
		{"state --json absent.pickle", failure.NoSuchFile, ""},
		{"oom --json absent.log", failure.NoSuchFile, ""},
		{"stats --json absent.log", failure.NoSuchFile, ""},
		{"compare-env --json absent.snapana absent.snapana", failure.NoSuchFile, ""},
		{"diff --json absent.pickle healthy.pickle", failure.NoSuchFile, ""},
		{"ghosts --json absent.pickle", failure.NoSuchFile, ""},
		{"summary --json empty.pickle", failure.Truncated, ""},
		{"summary --json cut.pickle", failure.Truncated, "--partial"},
		{"report --json cut.pickle", failure.Truncated, "--partial"},
		{"summary --json system.pickle", failure.Unsafe, ""},
		{"summary --json escape.pickle", failure.Unsafe, ""},
		{"summary --json plain.pickle", failure.NotSnapshot, ""},
		{"summary --json lfs.pickle", failure.NotSnapshot, ""},
		{"summary --json number.pickle", failure.NotSnapshot, ""},
		{"summary --json oom.log", failure.NotSnapshot, "snapana oom oom.log"},
		{"summary --json ghost.stats.jsonl", failure.NotSnapshot, "snapana stats"},
		{"summary --json run.snapana", failure.NotSnapshot, "snapana ghosts run.snapana"},
		{"summary --json folder", failure.NotSnapshot, ""},
		{"summary --json .", failure.NotSnapshot, "snapana ranks"},
		{"summary --json odd\nname\x1b[2J.pickle", failure.NotSnapshot, ""},
		{"compare-env --json healthy.pickle healthy.pickle", failure.WrongKind, ""},
		{"stats --json healthy.pickle", failure.WrongKind, "snapana report"},
		{"oom --json healthy.pickle", failure.NoData, ""},
		{"summary --json --max-bytes 10KiB healthy.pickle", failure.Limit, "--max-bytes"},
		{"summary --json --rules rules.yaml healthy.pickle", failure.BadSettings, ""},
		{"check --json --limits rules.yaml healthy.pickle", failure.BadSettings, ""},
		{"state --json --at oom healthy.pickle", failure.NotInFile, ""},
		{"state --json --device 7 healthy.pickle", failure.NotInFile, ""},
		{"state --json --at peak list.pickle", failure.NoData, ""},
		{"oom --json quiet.log", failure.NoData, ""},
		{"compare-env --json failed.snapana failed.snapana", failure.NoData, ""},
		{"ghosts --json recorder.snapana", failure.NoData, ""},
		{"whatif --json pinned_only.pickle.xz", failure.NoHistory, ""},
		{"whatif --json --conf backend:cudaMallocAsync healthy.pickle", failure.CannotReplay, ""},
		{"diff --json -o healthy.pickle/x healthy.pickle ghost.pickle", failure.WriteFailed, ""},
		{"report --json -o healthy.pickle/x ghost.pickle", failure.WriteFailed, ""},
		{"report --json -o healthy.pickle ghost.pickle", failure.WriteFailed, ""},
		{"report --json --fail-on healthy healthy.pickle", failure.GateFailed, ""},
		{"check --json --max-peak 1MiB healthy.pickle", failure.GateFailed, ""},
		{"check --format json --max-peak 1MiB healthy.pickle", failure.GateFailed, ""},
		{"ranks --json healthy.pickle absent.pickle", failure.Unread, ""},
		{"ranks --json --world-size 3 healthy.pickle", failure.MissingRanks, ""},
		{"digest --json -o digests cut.pickle", failure.Unread, ""},
	} {
		code, out, stderr := outcome(t.Context(), strings.Split(c.line, " "), strings.NewReader(""))
		f := one(t, c.line, out)
		if f == nil {
			continue
		}
		valid(t, all, c.line, out)
		if f.Code != c.code || !strings.Contains(f.Hint, c.hint) || f.Hint == "" || code != kind(f.Code).Exit {
			t.Errorf("%s: exit %d, %+v; want %s with %q", c.line, code, f, c.code, c.hint)
		}
		if stderr != "snapana: "+f.Message+"\n" {
			t.Errorf("%s: standard error has %q, the object %q", c.line, stderr, f.Message)
		}
	}
}

// outcome is what a command prints.
func outcome(ctx context.Context, args []string, stdin io.Reader) (code int, stdout []byte, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, stdin, &out, &errs)
	return code, out.Bytes(), errs.String()
}

// one is the error in the one object that a command printed.
func one(t *testing.T, line string, out []byte) *failure.Failure {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(out))
	var doc failed
	if err := d.Decode(&doc); err != nil || doc.Error == nil || doc.Schema == "" {
		t.Errorf("%s: %v: %.300s", line, err, out)
		return nil
	}
	if err := d.Decode(new(any)); err != io.EOF {
		t.Errorf("%s: more than one object: %.300s", line, out)
	}
	return doc.Error
}

func kind(code failure.Code) failure.Kind {
	for _, k := range failure.Kinds() {
		if k.Code == code {
			return k
		}
	}
	return failure.Kind{}
}

// TestFailuresByVariables holds that JSON that variables ask for has errors too, those of flags included, and that flags
// go before.
func TestFailuresByVariables(t *testing.T) {
	for _, c := range []struct {
		name, value, line string
		json              bool
	}{
		{"SNAPANA_JSON", "1", "summary --bogus x", true},
		{"SNAPANA_JSON", "1", "summary absent.pickle", true},
		{"SNAPANA_FORMAT", "json", "report absent.pickle", true},
		{"SNAPANA_FORMAT", "json", "report --format md absent.pickle", false},
		{"SNAPANA_JSON", "1", "plot absent.pickle", false},
		{"SNAPANA_NOTHING", "1", "summary absent.pickle", false},
		{"SNAPANA_NOTHING", "1", "summary --json=false absent.pickle", false},
		{"SNAPANA_NOTHING", "1", "summary -- --json", false},
	} {
		t.Setenv(c.name, c.value)
		_, out, stderr := outcome(t.Context(), strings.Fields(c.line), strings.NewReader(""))
		if c.json {
			one(t, c.line, out)
		} else if len(out) > 0 {
			t.Errorf("%s: %s", c.line, out)
		}
		if !strings.HasPrefix(stderr, "snapana: ") {
			t.Errorf("%s: %q", c.line, stderr)
		}
		os.Unsetenv(c.name)
	}
}

// TestAnswerWithError holds that a command that fails after it has its answer prints both, and the answer as without.
func TestAnswerWithError(t *testing.T) {
	file := filepath.Join("..", "..", "fixtures", "healthy.pickle")
	whole := ok(t, "check", "--json", "--max-peak", "1TiB", file)
	code, out, _ := outcome(t.Context(), []string{"check", "--json", "--max-peak", "1MiB", file}, nil)
	var kept, broken struct {
		Passed bool
		Gates  []any
	}
	if json.Unmarshal(whole, &kept) != nil || json.Unmarshal(out, &broken) != nil || code != exitGate ||
		!kept.Passed || broken.Passed || len(kept.Gates) != len(broken.Gates) {
		t.Errorf("exit %d: %s", code, out)
	}
	if f := one(t, "check", out); f == nil || f.Code != failure.GateFailed {
		t.Errorf("%+v", f)
	}
	before, _, found := bytes.Cut(out, []byte(",\n \"error\": {\n  \"code\""))
	if !found || !json.Valid(append(bytes.Clone(before), "\n}\n"...)) {
		t.Errorf("got %s", out)
	}
}

// TestStoppedJSON stops a command that waits for input: programs are told so.
func TestStoppedJSON(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdin, forever := io.Pipe()
	defer forever.Close()
	go func() {
		io.WriteString(forever, "\x80\x04}(")
		stop()
	}()
	code, out, stderr := outcome(ctx, []string{"summary", "--json", "-"}, stdin)
	if f := one(t, "summary", out); code != exitStopped || stderr != "" || f == nil || f.Code != failure.Stopped {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// TestHeld holds that a process that ends at once, as by the watch over its bounds, leaves one object, and nothing
// behind what is written already.
func TestHeld(t *testing.T) {
	for _, c := range []struct {
		written string
		json    bool
		ended   bool
		want    string
	}{
		{"half of it", true, false, `"schema": "snapana.error/1"`},
		{"", true, false, `"code": "limit"`},
		{"{\n \"a\": 1\n}\n", true, false, "{\n \"a\": 1,\n \"error\": {\n  \"code\": \"limit\","},
		{"{\n \"a\": 1\n}\n", true, true, "{\n \"a\": 1\n}\n"},
		{"plain text", false, false, "plain text"},
	} {
		var out bytes.Buffer
		r := &results{Writer: &out, meter: new(meter), json: c.json}
		io.WriteString(r, c.written)
		if c.ended {
			r.end(nil)
		}
		r.die(refusal("9 bytes take more"))
		if !strings.Contains(out.String(), c.want) || c.json && !json.Valid(out.Bytes()) {
			t.Errorf("%q: got %s", c.written, &out)
		}
	}
}
