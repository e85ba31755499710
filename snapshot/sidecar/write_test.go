package sidecar_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/snapana/snapana/snapshot/sidecar"
)

func TestWriterFollowsTheFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpu.snapana")
	at := time.Unix(1_700_000_000, 5)
	for range 2 { // the second run is appended to the first
		w, err := sidecar.Append(t.Context(), path, "1.0")
		if err != nil {
			t.Fatal(err)
		}
		err = w.Add(&sidecar.Reading{Time: at.UnixNano(), NVML: sidecar.NVML{Driver: "570.1", Devices: []sidecar.GPU{{
			Index: new(int64(0)), Total: new(int64(1 << 40)), Processes: []sidecar.GPUProcess{},
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := msgpack.NewDecoder(f)
	for _, want := range []string{"header", "nvml", "header", "nvml"} {
		n, err := dec.DecodeMapLen()
		if err != nil {
			t.Fatal(err)
		}
		record := map[string]any{}
		for i := range n {
			key, err := dec.DecodeString()
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 && key != "type" {
				t.Errorf("a %s record begins with %q", want, key)
			}
			if record[key], err = dec.DecodeInterfaceLoose(); err != nil {
				t.Fatal(err)
			}
		}
		if record["type"] != want || fmt.Sprint(record["time"]) != "1700000000000000005" {
			t.Errorf("got %v, want a %s", record, want)
		}
		if want == "header" && (record["format"] != "snapana" || fmt.Sprint(record["version"]) != "1") {
			t.Errorf("header %v", record)
		}
		if want == "nvml" {
			gpu := record["devices"].([]any)[0].(map[string]any)
			if fmt.Sprint(gpu["index"], gpu["total"]) != "0 1099511627776" {
				t.Errorf("device %v: a known 0 and a large number must be there", gpu)
			}
			if _, said := gpu["free"]; said {
				t.Errorf("device %v says what is unknown", gpu)
			}
			if p, ok := gpu["processes"].([]any); !ok || len(p) != 0 {
				t.Errorf("device %v: an empty list must stay one", gpu)
			}
		}
	}
}
