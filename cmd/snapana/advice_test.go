package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdvice reads files that call for a flag or another command: where that is said, it is said once.
func TestAdvice(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "healthy.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	recording, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "host", "healthy.snapana"))
	if err != nil {
		t.Fatal(err)
	}
	plain := base64.StdEncoding.EncodeToString(data)
	for name, text := range map[string]string{
		"healthy.pickle": string(data), "notes.txt": "words\n", "run.snapana": string(recording),
		"counters.jsonl": strings.Repeat("{\"num_ooms\": 0}\n", 1000),
		"two.html":       fmt.Sprintf(`<html><script>const files = [{"base64": "%s"}, {"base64": "%s"}]`, plain, plain),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for command, want := range map[string]string{
		"summary --max-bytes 100KiB healthy.pickle":           "exceeds the 102400 bytes that --max-bytes allows",
		"summary --partial --max-bytes 300KiB healthy.pickle": "exceeds the 307200 bytes that --max-bytes allows",
		"ranks --max-bytes 100KiB healthy.pickle":             "exceeds the 102400 bytes that --max-bytes allows",
		"stats --max-bytes 8KiB counters.jsonl": "at byte 8192: exceeds the 8192 bytes that " +
			"--max-bytes allows",
		"stats --max-bytes 8KiB run.snapana": "at byte 8192: exceeds the 8192 bytes that " +
			"--max-bytes allows",
		"compare-env --max-bytes 8KiB run.snapana run.snapana": "at byte 8192: exceeds the 8192 bytes that " +
			"--max-bytes " +
			"allows",
		"report --max-bytes 1MiB --readings run.snapana healthy.pickle": "healthy.report",
		"report --max-bytes 8KiB --readings run.snapana healthy.pickle": "run.snapana: at byte 8192: exceeds",
		"summary --index 1 two.html": "1 of the 2 snapshots in this page: this is number 1, counted " +
			"from 0 (choose with --index)",
		"stats healthy.pickle": "is a memory snapshot, not a dump of counters; use `snapana " +
			"report`",
		"compare-env healthy.pickle notes.txt": "is not a .snapana file; give a snapshot as FILE, and the " +
			"recorder's file with --recorder",
		"compare-env notes.txt healthy.pickle": "is not a .snapana file; `snapana recorder` prints the " +
			"recorder that writes them",
	} {
		var out bytes.Buffer
		run(t.Context(), strings.Fields(command), nil, &out, &out)
		got := strings.Join(strings.Fields(out.String()), " ") // lines may be wrapped
		if strings.Count(got, want) != 1 {
			t.Errorf("%s: want %q once in:\n%s", command, want, &out)
		}
	}
}
