package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// small is a release of made-up programs. On macOS, a program is no more than a header that says so.
func small(t *testing.T, zone *time.Location) *release {
	t.Helper()
	v, err := parseVersion("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: v, commit: strings.Repeat("ab", 20), author: "A <a@b.example>",
		time: time.Date(2026, 11, 23, 1, 2, 4, 0, time.UTC).In(zone).UTC(), readme: []byte("# snapana\n"), license: []byte("Apache\n"),
		python: []file{{name: "snapana/__init__.py", data: []byte("x = 1\n")}, {name: "snapana_recorder.py", data: []byte("y = 2\n")}},
		docs: docs{man: []manPage{{"snapana", 1, []byte(".TH SNAPANA 1\n")}},
			completions: []file{{name: "bash/snapana", data: []byte("b")}, {name: "zsh/_snapana", data: []byte("z")}}},
		legal: &legal{map[string]terms{"": {"BSD-3-Clause", []file{{name: "LICENSE", data: []byte("go's text")}}},
			fonts:           {"OFL-1.1", []file{{name: "LICENSE", data: []byte("letters' text")}}},
			"example.org/m": {publicDomain, []file{{name: "LICENSE", data: []byte("m's text")}}}}},
	}
	for _, target := range targets {
		data := []byte("program for " + target.String())
		if target.os == "darwin" {
			data = binary.LittleEndian.AppendUint32(nil, 0xfeedfacf)
			for _, n := range []uint32{0x0100000c, 0, 2, 1, 24, 0, 0, 0x32, 24, 1, 12 << 16, 0, 0} {
				data = binary.LittleEndian.AppendUint32(data, n)
			}
		}
		r.programs = append(r.programs, &program{target: target, data: data, info: &debug.BuildInfo{GoVersion: "go1.26.8",
			Main: debug.Module{Path: "example.org/snapana"},
			Deps: []*debug.Module{{Path: "example.org/m", Version: "v1.0.0", Sum: "h1:x"}}}})
	}
	return r
}

func made(t *testing.T, r *release) map[string][]byte {
	t.Helper()
	files, err := r.artifacts()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		all[f.name] = f.data
	}
	return all
}

func TestArtifacts(t *testing.T) {
	all := made(t, small(t, time.UTC))
	want := []string{"SHA256SUMS",
		"snapana-1.2.3-darwin-amd64.spdx.json", "snapana-1.2.3-darwin-amd64.tar.gz",
		"snapana-1.2.3-darwin-arm64.spdx.json", "snapana-1.2.3-darwin-arm64.tar.gz",
		"snapana-1.2.3-linux-amd64.spdx.json", "snapana-1.2.3-linux-amd64.tar.gz",
		"snapana-1.2.3-linux-arm64.spdx.json", "snapana-1.2.3-linux-arm64.tar.gz", "snapana-1.2.3-oci.tar",
		"snapana-1.2.3-py3-none-macosx_12_0_arm64.whl", "snapana-1.2.3-py3-none-macosx_12_0_x86_64.whl",
		"snapana-1.2.3-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
		"snapana-1.2.3-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
		"snapana-1.2.3-py3-none-win_amd64.whl", "snapana-1.2.3-py3-none-win_arm64.whl",
		"snapana-1.2.3-windows-amd64.spdx.json", "snapana-1.2.3-windows-amd64.zip",
		"snapana-1.2.3-windows-arm64.spdx.json", "snapana-1.2.3-windows-arm64.zip",
		"snapana-1.2.3.provenance.json", "snapana_1.2.3_amd64.deb", "snapana_1.2.3_arm64.deb"}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("made\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for line := range strings.Lines(string(all[sumsName])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(all[name])); got != sum {
			t.Errorf("%s: checksum %s, listed is %s", name, got, sum)
		}
		delete(all, name)
	}
	if len(all) != 1 {
		t.Errorf("not in %s: %v", sumsName, slices.Sorted(maps.Keys(all)))
	}
}

// TestSame holds that neither the time zone nor the order of a map changes a byte.
func TestSame(t *testing.T) {
	first := made(t, small(t, time.UTC))
	t.Setenv("TZ", "Asia/Kathmandu")
	for range 5 {
		for name, data := range made(t, small(t, time.FixedZone("NPT", 20700))) {
			if !bytes.Equal(data, first[name]) {
				t.Errorf("%s differs from run to run", name)
			}
		}
	}
}

// TestWheel holds that RECORD lists each file of a wheel with its checksum, and itself without.
func TestWheel(t *testing.T) {
	for name, data := range made(t, small(t, time.UTC)) {
		if !strings.HasSuffix(name, ".whl") {
			continue
		}
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		var listed, there []string
		for _, f := range z.File {
			content := unpacked(t, f)
			sum := sha256.Sum256(content)
			line := fmt.Sprintf("%s,sha256=%s,%d", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
			if strings.HasSuffix(f.Name, "/RECORD") {
				listed, line = strings.Split(strings.TrimSpace(string(content)), "\n"), f.Name+",,"
			}
			there = append(there, line)
			if exec := strings.Contains(f.Name, "/scripts/"); (f.Mode()&0o111 != 0) != exec {
				t.Errorf("%s: %s has mode %v", name, f.Name, f.Mode())
			}
		}
		if !slices.Equal(listed, there) {
			t.Errorf("%s: RECORD has\n%s\nthe wheel\n%s", name, strings.Join(listed, "\n"), strings.Join(there, "\n"))
		}
		_, platforms, _ := strings.Cut(strings.TrimSuffix(name, ".whl"), "-py3-none-")
		tags := ""
		for p := range strings.SplitSeq(platforms, ".") {
			tags += "Tag: py3-none-" + p + "\n"
		}
		i := slices.IndexFunc(z.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, "dist-info/WHEEL") })
		if about := string(unpacked(t, z.File[i])); !strings.HasSuffix(about, "false\n"+tags) {
			t.Errorf("%s: WHEEL has other tags:\n%s", name, about)
		}
	}
}

func unpacked(t *testing.T, f *zip.File) []byte {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestImage follows the image's checksums from the index to the one file in the layer.
func TestImage(t *testing.T) {
	files := map[string][]byte{}
	tr := tar.NewReader(bytes.NewReader(made(t, small(t, time.UTC))["snapana-1.2.3-oci.tar"]))
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
	get := func(d descriptor, v any) {
		t.Helper()
		data := files[blob(d.Digest)]
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); got != d.Digest || len(data) != d.Size {
			t.Fatalf("%s: %s, %d bytes; want %s, %d", d.MediaType, got, len(data), d.Digest, d.Size)
		}
		if v != nil && json.Unmarshal(data, v) != nil {
			t.Fatalf("%s is no JSON", d.Digest)
		}
	}
	var top, index imageIndex
	if err := json.Unmarshal(files["index.json"], &top); err != nil {
		t.Fatal(err)
	}
	get(top.Manifests[0], &index)
	if len(index.Manifests) != 2 {
		t.Fatalf("%d platforms, want 2", len(index.Manifests))
	}
	for _, d := range index.Manifests {
		var manifest imageManifest
		var config imageConfig
		get(d, &manifest)
		get(manifest.Config, &config)
		get(manifest.Layers[0], nil)
		if config.Architecture != d.Platform.Architecture || config.Config.User != nobody {
			t.Errorf("%s: architecture %q, user %q", d.Platform.Architecture, config.Architecture, config.Config.User)
		}
		gz, err := gzip.NewReader(bytes.NewReader(files[blob(manifest.Layers[0].Digest)]))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(gz)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); got != config.RootFS.DiffIDs[0] {
			t.Errorf("the layer is %s, the configuration says %s", got, config.RootFS.DiffIDs[0])
		}
		h, err := tar.NewReader(bytes.NewReader(layer)).Next()
		if err != nil || h.Name != "snapana" || h.Mode != 0o755 || h.Uid != 0 {
			t.Errorf("the layer begins with %+v, %v", h, err)
		}
	}
}

// TestBill holds that each linked module is in the list, with a license, and linked.
func TestBill(t *testing.T) {
	var d spdxDocument
	if err := json.Unmarshal(made(t, small(t, time.UTC))["snapana-1.2.3-linux-amd64.spdx.json"], &d); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, p := range d.Packages {
		got += p.References[0].Locator + " " + p.Declared + "\n"
	}
	want := "pkg:golang/example.org/snapana@v1.2.3 Apache-2.0 AND OFL-1.1\npkg:golang/stdlib@1.26.8 BSD-3-Clause\n" +
		"pkg:golang/example.org/m@v1.0.0 LicenseRef-public-domain\n"
	if got != want || len(d.Relationships) != 3 || d.Extracted[0].Text != "m's text" {
		t.Errorf("packages\n%s\nwant\n%s\nrelations %v, licenses %v", got, want, d.Relationships, d.Extracted)
	}
}

func TestRecognize(t *testing.T) {
	const mit = "Permission is hereby granted, free of\ncharge, to any person obtaining a copy"
	const bsd = "Redistribution and use in source  and binary forms, with"
	for text, want := range map[string]string{
		mit: "MIT", bsd: "BSD-2-Clause", bsd + " Neither the name of": "BSD-3-Clause", mit + "\n" + bsd: "",
		"Apache License\n Version 2.0, January 2004": "Apache-2.0", "All rights reserved": "", "in the public domain": "",
	} {
		if got := recognize(text); got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("All rights reserved"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := read("example.org/unknown", dir); err == nil {
		t.Errorf("a license that nobody read is taken for %q", got.id)
	}
}

func TestStandalone(t *testing.T) {
	in := "a [b](c.md), [d](https://e.example)\n\n![p](q.png)\n\nf\n"
	if got, want := string(standalone([]byte(in))), "a b, [d](https://e.example)\n\nf\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
