package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/snapana/snapana/analyze/redact"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// The outputs that are searched, with FILE and OUT in the place of paths. They may fail, but not by a word.
var redactedOutputs = []string{
	"report -o OUT/report FILE", "report --format md FILE", "summary FILE", "state --json FILE", "state FILE", "peak --tree FILE",
	"ghosts FILE", "ghosts --json FILE", "whatif FILE", "at --json FILE peak", "oom FILE", "stats FILE", "stats --json FILE",
	"diff FILE FILE", "diff --json FILE FILE", "diff --format md FILE FILE", "ranks FILE FILE", "ranks --json FILE FILE",
	"compare-env FILE FILE", "check --max-peak 1KiB FILE", "plot FILE -o OUT/p.svg", "plot FILE -o OUT/p.png",
	"plot --kind segments FILE -o OUT/s.svg", "export --to parquet -o OUT/parquet FILE", "export --to pprof -o OUT/x.pb.gz FILE",
	"export --to folded --at allocated -o OUT/x.folded FILE", "export --to perfetto -o OUT/x.perfetto FILE", "export --to nonsense FILE",
	"report FILE.missing", "summary --json FILE", "fit n=1:FILE n=2:FILE", "digest --json -o OUT/digests FILE",
}

// TestRedact is the promise of --redact on a few files: no word of theirs is left in any output, and the verdict is the
// same. SNAPANA_REDACT_FILES names the folders of files that .ci/redact goes through.
func TestRedact(t *testing.T) {
	files := []string{"../../fixtures/ghost.pickle", "../../fixtures/train.log",
		"../../fixtures/fixes/recorded/losses_in_list.pickle.xz", "../../fixtures/holders/two_leaks/run.snapana"}
	outputs := redactedOutputs
	if dirs := os.Getenv("SNAPANA_REDACT_FILES"); dirs != "" {
		files = toRedact(t, strings.Fields(dirs))
	} else {
		outputs = slices.DeleteFunc(slices.Clone(outputs), func(o string) bool {
			return strings.HasPrefix(o, "plot") || strings.HasPrefix(o, "fit") ||
				strings.HasPrefix(o, "diff --") || strings.HasPrefix(o, "whatif") || strings.HasPrefix(o, "ranks FILE")
		})
	}
	hostile := filepath.Join(t.TempDir(), "alice's run on gpu-host17 ü rank3.pickle")
	if err := os.WriteFile(hostile, hostilePickle(), 0o666); err != nil {
		t.Fatal(err)
	}
	n, runs := 0, 0
	for _, file := range append(files, hostile) {
		for _, way := range []string{"names", "strict"} {
			file, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(way+" "+filepath.Base(file), func(t *testing.T) {
				n++
				runs += redacted(t, file, way, outputs)
			})
		}
	}
	t.Logf("%d files and ways, %d outputs searched", n, runs)
}

// toRedact are the files of folders that are read here, and not large.
func toRedact(t *testing.T, dirs []string) (files []string) {
	form := regexp.MustCompile(`\.(pickle|pkl|snapana|html|log|jsonl?|txt)(\.(gz|zst|xz|bz2|zip))?$`)
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !form.MatchString(path) {
				return nil
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Size() < 4<<20 {
				files = append(files, path)
			}
			return nil
		})
	}
	slices.Sort(files)
	return files
}

// withRecording is a file for which the recorder's, if that is packed, is unpacked beside it: else it would not be used.
func withRecording(t *testing.T, file string) string {
	const packed = ".snapana.xz"
	stem := filepath.Join(filepath.Dir(file), snapshot.Stem(file))
	if strings.HasSuffix(file, packed) || stem == file {
		return file
	}
	if _, err := os.Stat(stem + packed); err != nil {
		return file
	}
	dir := t.TempDir()
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o666)
	}
	if err == nil {
		err = load.Unpacked(t.Context(), nil, stem+packed, load.Options{}, func(in io.Reader) error {
			if data, err = io.ReadAll(in); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, filepath.Base(stem)+".snapana"), data, 0o666)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.Base(file))
}

const redactSalt = "a salt of the test"

// redacted checks one file, and gives how many outputs were searched.
func redacted(t *testing.T, file, way string, outputs []string) (searched int) {
	file = withRecording(t, file)
	r := redact.New([]byte(redactSalt), way == "strict")
	learn := func(file string) error {
		ctx := input.WithFilter(t.Context(), r.Filter())
		return load.Unpacked(ctx, nil, file, load.Options{}, func(in io.Reader) error {
			_, err := io.Copy(io.Discard, in)
			return err
		})
	}
	if err := learn(file); err != nil {
		if os.Getenv("SNAPANA_REDACT_FILES") == "" {
			t.Fatal(err)
		}
		t.Skip("is refused: ", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	if beside, _ := sidecar.Beside(t.Context(), file); beside != "" {
		learn(beside)
	}
	flags := []string{"--redact=" + way, "--salt", redactSalt}
	dir := t.TempDir()
	name := filepath.Join(dir, r.Name(file))
	args := []string{"redact", file, "-o", dir}
	if beside, _ := sidecar.Beside(t.Context(), file); beside != "" {
		args = append(args, beside)
	}
	code, _, stderr := runAll(t, append(args, flags...))
	if code != exitOK {
		t.Fatalf("redact: exit %d: %s", code, stderr)
	}
	sameVerdict(t, file, name, flags, r)

	scans := []*redact.Scanner{r.Scanner(), redact.NewScanner(telling(t, file))}
	look := func(what string, data []byte, ours func() []byte) {
		searched++
		for _, scan := range scans {
			found := scan.Deep(data)
			if len(found) > 0 && ours != nil {
				said := redact.NewScanner(found).Deep(ours())
				found = slices.DeleteFunc(found, func(p redact.Pair) bool { return slices.Contains(said, p) })
			}
			for _, p := range found {
				if p.Word == way { // what is made with --redact says how
					continue
				}
				t.Errorf("%s has %q (%s): %s", what, p.Word, p.Pseudonym, around(data, p.Word))
			}
		}
		for _, secret := range secrets {
			if strings.Contains(file, "alice's run") && (way == "strict" || !strings.Contains(secret, "cme")) &&
				bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s has the secret %s: %s", what, secret, around(data, secret))
			}
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	look("redact", data, nil)
	for _, line := range outputs {
		// The redacted file was searched: what is said of it without --redact has no word of the original but by chance,
		// as one of snapana's own.
		ours := sync.OnceValue(func() (all []byte) {
			for _, data := range outputsOf(t, line, name, nil) {
				all = append(all, data...)
			}
			return append(all, "a dump of counters; cannot be redacted: it is none of"...) // refused here, or there
		})
		for what, data := range outputsOf(t, line, file, flags) {
			look(line+what, data, ours)
		}
	}
	return searched
}

// outputsOf are what a line prints and writes about a file, by what they are.
func outputsOf(t *testing.T, line, file string, flags []string) map[string][]byte {
	dir := t.TempDir()
	args := slices.Clone(flags)
	for _, a := range strings.Fields(line) {
		args = append(args, strings.NewReplacer("FILE", file, "OUT", dir).Replace(a))
	}
	_, stdout, stderr := runAll(t, args)
	where := strings.ReplaceAll(dir, "\\", "/") // named by us
	all := map[string][]byte{
		"":          bytes.ReplaceAll(stdout, []byte(where), nil),
		" (stderr)": []byte(strings.ReplaceAll(stderr, where, "")),
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			all[" "+name] = append([]byte(name+"\n"), data...)
		}
		return nil
	})
	return all
}

var (
	pathLike = regexp.MustCompile(`(?:/[\p{L}\p{N}_.@~+=-]+){2,}|(?:[A-Za-z]:|\\)(?:[/\\][\p{L}\p{N}_.@~+=-]+){2,}`)
	fileLike = regexp.MustCompile(`\b[A-Za-z_][\w-]{2,40}\.(?:py|ipynb)\b`)
	idLike   = regexp.MustCompile(`\b[a-z][\w.+-]*@[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|io|ai|local)\b|` +
		`\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{20,}|\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	// What is below these is installed, or torch's own, and anybody's.
	installed = regexp.MustCompile(`[/\\](?:site-packages|dist-packages|python[23](?:\.\d+)?|aten|c10|torch|caffe2|csrc|cuda|third_party|` +
		`pytorch|sysdeps|csu|nptl|gcc|bits|Include|include|Python|Objects|Modules|frameworks)(?:[/\\]|$)`)
	generic = regexp.MustCompile(`^(?:home|root|users?|usr|lib(?:64|exec)?|opt|tmp|var|mnt|work|workspace|content|app|bin|src|local|` +
		`share|miniconda3?|anaconda3?|miniforge3|\.?conda|envs|\.?venv|proc|sys|dev|data|build|python[\d.]*|nvidia|n?fs|scratch|` +
		`torchinductor_root|scripts|programs|\.pyenv|versions|base_events|events|runners|process|` +
		`lib(?:c|m|dl|pthread|stdc\+\+|python3[\d.]*)\.so[\d.]*|` +
		`(?:\w*object|ceval|abstract|call|pythonrun|pycore_\w+|main|generated_cases)\.(?:c\.)?[ch]|` +
		`snapana_recorder|files|python-[\d.]+|ipykernel_\d+|__init__|[\d.]+)$`)
	opcodes  = regexp.MustCompile(`^h?(?:.h)+.?$`) // of a pickle that gets texts it had before
	word     = regexp.MustCompile(`[\p{L}\p{N}_]+`)
	nameLike = regexp.MustCompile(`^[\p{L}_.~][\p{L}\p{N}_.-]*$`) // not packed numbers, which may look like a path
)

// telling are words that tell whose a file is, found without what the redactor knows of formats and names: parts of paths
// that are not below what is installed, and addresses, in the raw bytes. Words that the file has outside of paths, too,
// are left out.
func telling(t *testing.T, file string) (words []redact.Pair) {
	var raw []byte
	load.Unpacked(t.Context(), nil, file, load.Options{}, func(in io.Reader) (err error) {
		raw, err = io.ReadAll(in)
		return err
	})
	elsewhere, found := map[string]bool{}, map[string]bool{}
	rest := pathLike.ReplaceAll(raw, []byte{' '})
	for _, file := range fileLike.FindAllString(string(rest), -1) {
		found[file] = true
	}
	for _, w := range word.FindAll(fileLike.ReplaceAll(rest, []byte{' '}), -1) {
		elsewhere[string(w)] = true
	}
	paths := pathLike.FindAllString(string(raw), -1)
	for _, path := range paths {
		if at := installed.FindStringIndex(path); at != nil {
			for _, w := range word.FindAllString(path[at[0]:], -1) {
				elsewhere[w] = true
			}
		}
	}
	for _, path := range paths {
		if at := installed.FindStringIndex(path); at != nil {
			path = path[:at[0]]
		}
		for _, part := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' }) {
			part = strings.TrimSuffix(part, ".py")
			if len(part) >= 3 && !opcodes.MatchString(part) && !generic.MatchString(strings.ToLower(part)) &&
				!elsewhere[part] && nameLike.MatchString(part) {
				found[part] = true
			}
		}
	}
	for _, id := range idLike.FindAllString(string(raw), -1) {
		found[id] = true
	}
	for _, w := range slices.Sorted(maps.Keys(found)) {
		words = append(words, redact.Pair{Pseudonym: "private " + w, Word: w})
	}
	return words
}

// around is where a word is in an output.
func around(data []byte, word string) string {
	i := bytes.Index(data, []byte(word))
	if i < 0 {
		return "encoded"
	}
	return fmt.Sprintf("%q", data[max(0, i-60):min(len(data), i+60)])
}

func runAll(t *testing.T, args []string) (code int, stdout []byte, stderr string) {
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.Bytes(), errs.String()
}

// sameVerdict compares report.json: of the file, of it with --redact, and of what redact wrote.
func sameVerdict(t *testing.T, file, other string, flags []string, r *redact.Redactor) {
	command := "report"
	if strings.HasSuffix(file, ".snapana") {
		command = "ghosts"
	}
	plainCode, plain, why := runAll(t, []string{command, "--json", file})
	code, with, stderr := runAll(t, append([]string{command, "--json", file}, flags...))
	if code != plainCode {
		t.Errorf("exit %d (%s), with --redact %d (%s)", plainCode, why, code, stderr)
	}
	if code != exitOK || plainCode != exitOK {
		return
	}
	_, written, _ := runAll(t, []string{command, "--json", other})
	if !bytes.Equal(asStored(with), asStored(written)) {
		t.Errorf("the redacted file's report is not that with --redact: %s", differs(asStored(with), asStored(written)))
	}
	var a, b any
	if json.Unmarshal(plain, &a) != nil || json.Unmarshal(with, &b) != nil {
		t.Fatal("no JSON")
	}
	compareReports(t, "", a, b, r)
}

// asStored is a report without how the file was packed.
func asStored(report []byte) []byte {
	var doc map[string]any
	json.Unmarshal(report, &doc)
	if source, ok := doc["source"].(map[string]any); ok {
		delete(source, "container")
		delete(source, "name")
	}
	delete(doc, "environment")
	out, _ := json.MarshalIndent(doc, "", " ")
	return out
}

func differs(a, b []byte) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return fmt.Sprintf("%.300s\n--- but\n%.300s", a[max(0, n-100):], b[max(0, n-100):])
}

// compareReports wants the same figures, and the same words where nothing was replaced.
func compareReports(t *testing.T, path string, a, b any, r *redact.Redactor) {
	switch path {
	case ".source.checksum", ".source.bytes", ".source.name", ".quality.clipped":
		return
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			t.Errorf("%s: %.200v, redacted %.200v", path, a, b)
			return
		}
		for k := range x {
			if v, ok := y[k]; ok {
				compareReports(t, path+"."+k, x[k], v, r)
			}
		}
	case []any:
		y, ok := b.([]any)
		if path == ".quality" { // long names are cut, and pseudonyms of short words are longer
			x, y = slices.DeleteFunc(x, wasCut), slices.DeleteFunc(y, wasCut)
		}
		if !ok || len(x) != len(y) {
			t.Errorf("%s: %.200v, redacted %.200v", path, a, b)
			return
		}
		for i := range x {
			compareReports(t, path+"[]", x[i], y[i], r)
		}
	case string:
		if y, ok := b.(string); !ok || judgment[path[strings.LastIndexByte(path, '.')+1:]] && x != y {
			t.Errorf("%s: %q, redacted %q", path, x, b)
		}
	default:
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %v, redacted %v", path, a, b)
		}
	}
}

// wasCut reports whether a row of the quality of data says that texts were cut.
func wasCut(row any) bool {
	m, _ := row.(map[string]any)
	text, _ := m["text"].(string)
	return strings.Contains(text, "long text")
}

// judgment are the fields of report.json that are words of a table.
var judgment = map[string]bool{"status": true, "severity": true, "confidence": true, "id": true, "kind": true, "cause": true,
	"category": true, "writer": true, "recorded": true, "schema": true, "tone": true, "lever": true}

// hostilePickle is a snapshot whose names try to get through.
func hostilePickle() []byte {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	str := func(s string) {
		w.WriteByte('X')
		w.Write([]byte{byte(len(s)), byte(len(s) >> 8), 0, 0})
		w.WriteString(s)
	}
	num := func(n int) { fmt.Fprintf(w, "I%d\n", n) }
	w.WriteString("\x80\x02}(")
	str("segments")
	w.WriteString("](")
	w.WriteString("}(")
	for _, k := range []string{"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream"} {
		str(k)
		num(map[string]int{"address": 4096, "total_size": 2 << 20, "allocated_size": 2 << 20, "active_size": 2 << 20,
			"requested_size": 2 << 20}[k])
	}
	str("segment_type")
	str("large")
	str("secretdepartment") // an unknown key
	str("projectmanhattan")
	str("blocks")
	w.WriteString("](}(")
	str("size")
	num(2 << 20)
	str("requested_size")
	num(2 << 20)
	str("address")
	num(4096)
	str("state")
	str("active_allocated")
	str("frames")
	w.WriteString("](")
	for i, file := range hostilePaths {
		w.WriteString("}(")
		str("filename")
		str(file)
		str("line")
		num(i + 1)
		str("name")
		str(hostileNames[i%len(hostileNames)])
		w.WriteByte('u')
	}
	w.WriteString("eueue")
	str("device_traces")
	w.WriteString("](](}(")
	str("action")
	str("alloc")
	str("addr")
	num(4096)
	str("size")
	num(2 << 20)
	str("stream")
	num(0)
	str("time_us")
	num(1700000000)
	str("user_metadata")
	str(`{"owner": "alicewonder", "token": "https://bob:hunter22@10.20.30.40/x", "n": 3, "ü": "größenwahn"}`)
	str("compile_context")
	str("/home/alicewonder/compile/0")
	str("frames")
	w.WriteString("](}(")
	str("name")
	str("forward")
	str("filename")
	str("/home/alicewonder/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py")
	str("line")
	num(5)
	w.WriteString("ueuee")
	str("external_annotations")
	w.WriteString("](}(")
	str("stage")
	str("START")
	str("name")
	str("alicewonder's quarterly step 7")
	str("device")
	num(0)
	str("time_us")
	num(1699999999)
	w.WriteString("ue")
	str("allocator_settings")
	w.WriteString("}(")
	str("PYTORCH_CUDA_ALLOC_CONF")
	str("expandable_segments:True,wonderkey:hostalpha17")
	str("expandable_segments")
	w.WriteString("\x88u")
	str("alicewonder")
	str("hostalpha17.internal.example.com")
	w.WriteString("u.trailing alicewonder")
	w.Flush()
	return b.Bytes()
}

var hostilePaths = []string{
	"/home/alicewonder/projectx/train.py", "<ipython-input-12-abcdefabcdef>", "/tmp/ipykernel_123/4567890.py",
	"/tmp/torchinductor_alicewonder/ab/cabcdefghijk.py", `C:\Users\bobsmith\secretproj\main.py`,
	"/home/alicewonder/miniconda3/envs/acmeenv/lib/python3.11/site-packages/torch/optim/adam.py",
	"/home/alicewonder/venv/lib/python3.11/site-packages/acme_secret/inner/engine.py",
	"/mnt/nfs/größe projekt/übung eins.py", "/srv/a/torch/b\nc/evil.py", "<frozen acmeloader.core>", "<string>",
	"s3://acmebucket/key.py", "/work/.git/worktrees/featurebranchx/run.py",
	"/var/lib/docker/overlay2/3f2a9c7de8/merged/opt/train_acme.py", "/build/acmecorp/pytorch/aten/src/ATen/native/cuda/Loops.cuh",
}

// secrets are what must not be seen of it; those of acme are parts of names of functions and packages.
var secrets = []string{"alice", "wonder", "projectx", "abcdefabcdef", "4567890", "cabcdefghijk", "bobsmith", "secretproj", "acmeenv",
	"acme_secret", "Acme", "acmecorp", "acmeloader", "acmebucket", "gr\u00f6", "grö", "übung", "\u00fcbung", "evil", "featurebranch",
	"3f2a9c7de8", "projectmanhattan", "secretdepartment", "hunter22", "10.20.30.40", "quarterly", "wonderkey", "hostalpha17",
	"example.com", "host17"}

var hostileNames = []string{"train", "<module>", "forward", "<lambda>", "acme_secret_loss", "acmecorp::Kernel<at::Tensor>::run()",
	"load_batch_of_acme", "getAcmeData", "__init__"}
