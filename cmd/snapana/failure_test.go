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
	write("packed.log", "\x1f\x8b\x08")
	for _, name := range []string{"rank0.pickle", "rank1.pickle"} {
		write(name, string(in["healthy.pickle"]))
	}
	os.Mkdir(filepath.Join(dir, "folder"), 0o700)
	os.Symlink("/dev/full", filepath.Join(dir, "full"))
	t.Chdir(dir)
	t.Setenv("SNAPANA_CACHE", "off")
	for name, value := range map[string]string{"ENDPOINT_URL": "http://127.0.0.1:1", "ACCESS_KEY_ID": "a",
		"SECRET_ACCESS_KEY": "b"} {
		t.Setenv("AWS_"+name, value)
	}
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
		{"report --json --salt x healthy.pickle", failure.Usage, ""},
		{"redact --json healthy.pickle", failure.Usage, ""},
		{"summary --json https://host/run.pickle", failure.Usage, ""},
		{"summary --json s3://bucket/x.pickle", failure.Unavailable, ""},
		{"oom --json folder", failure.WrongKind, ""},
		{"oom --json packed.log", failure.WrongKind, "zcat packed.log"},
		{"stats --json quiet.log", failure.NoData, ""},
		{"fit --json --at 2,4 --to 8 pinned_only.pickle.xz healthy.pickle", failure.NoHistory, ""},
		{"fit --json --at 2,2 --to 8 healthy.pickle ghost.pickle", failure.Unlike, ""},
		{"fit --json --at 2,4 --to 8 healthy.pickle ghost.pickle", failure.Unlike, ""},
		{"ranks --json --world-size 1 rank0.pickle rank1.pickle", failure.Usage, ""},
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
		told(t, c.line, f, stderr)
	}
}

// TestFailuresOfAll puts each file that cannot be read to each command that prints JSON.
func TestFailuresOfAll(t *testing.T) {
	in, err := inputs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"good.pickle": in["healthy.pickle"], "other.pickle": in["ghost.pickle"],
		"cut.pickle": in["cut.pickle"], "words.pickle": []byte("all is well"), "run.snapana": in["run.snapana"],
		"unsafe.pickle": in["system.pickle"], "train.log": []byte("torch.OutOfMemoryError: CUDA out of memory. Tried " +
			"to allocate 2.00 GiB.\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Mkdir(filepath.Join(dir, "folder"), 0o700)
	t.Chdir(dir)
	t.Setenv("SNAPANA_CACHE", "off")
	lines := map[string]string{"": "FILE", "report": "FILE", "summary": "FILE", "state": "FILE", "peak": "FILE", "ghosts": "FILE",
		"at": "FILE 0x7f0000000000", "oom": "--snapshot FILE train.log", "stats": "FILE", "whatif": "FILE",
		"fit": "--at 2,4 --to 8 other.pickle FILE", "diff": "good.pickle FILE", "ranks": "FILE", "digest": "-o digests FILE",
		"check": "--max-peak 1GiB FILE", "compare-env": "run.snapana FILE", "redact": "-o redacted FILE", "nvml": ""}
	root := newRoot()
	for _, cmd := range append(root.Commands(), root) {
		name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "snapana"), " ")
		line, listed := lines[name]
		if flags := cmd.Flags(); flags.Lookup("json") == nil && flags.Lookup("format") == nil {
			continue
		} else if !listed {
			t.Errorf("%s prints JSON and has no line here", name)
		}
		// The codes of a file, "" where the command can read it.
		for file, want := range map[string]failure.Code{"absent.pickle": failure.NoSuchFile, "cut.pickle": failure.Truncated,
			"words.pickle": failure.NotSnapshot, "folder": failure.NotSnapshot, "unsafe.pickle": failure.Unsafe,
			"http://host/x.pickle": failure.Usage} {
			switch {
			case name == "nvml":
				continue
			case name == "ranks", name == "digest":
				want = failure.Unread
			case name == "stats" && file == "words.pickle":
				want = failure.NoData
			case name == "compare-env" && want != failure.NoSuchFile && want != failure.Usage:
				want = failure.WrongKind
			case name == "redact" && file == "words.pickle":
				continue // a log
			}
			all := strings.Fields(name + " --json " + strings.Replace(line, "FILE", file, 1))
			code, out, stderr := outcome(t.Context(), all, strings.NewReader(""))
			at := strings.Join(all, " ")
			f := one(t, at, out)
			if f == nil {
				continue
			}
			if f.Code != want || f.Hint == "" || code != kind(want).Exit {
				t.Errorf("%s: exit %d, %+v; want %s", at, code, f, want)
			}
			if name != "redact" { // which gives no name away
				told(t, at, f, stderr)
			}
		}
		for flag, want := range map[string]failure.Code{"--bogus": failure.Usage, "--width": failure.Usage, "--json=7": failure.Usage} {
			all := strings.Fields(name + " --json " + strings.Replace(line, "FILE", "good.pickle", 1) + " " + flag)
			if _, out, _ := outcome(t.Context(), all, nil); one(t, strings.Join(all, " "), out).Code != want {
				t.Errorf("%s: %s", strings.Join(all, " "), out)
			}
		}
	}
}

// told holds that standard error has the message, and the hint where that is about this error alone.
func told(t *testing.T, line string, f *failure.Failure, stderr string) {
	t.Helper()
	said := strings.TrimSuffix(strings.TrimPrefix(stderr, "snapana: "), "\n")
	if said != f.Message && said != f.Message+"; "+f.Hint && strings.Replace(said, " ("+f.Hint+")", "", 1) != f.Message {
		t.Errorf("%s: standard error has %q, the object %q and %q", line, said, f.Message, f.Hint)
	}
	if strings.HasSuffix(f.Message, f.Hint) {
		t.Errorf("%s: the message repeats the hint: %+v", line, f)
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
