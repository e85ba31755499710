package main

import (
	"bytes"
	"crypto/sha256"
	"debug/macho"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// pythons is which releases of Python a wheel is for.
const pythons = ">=3.9"

// wheel packs the program for pip, with the Python modules, the manual and completions. The program comes into the
// folder of scripts, so that it runs without Python.
func (r *release) wheel(p *program, bill file) (file, error) {
	platforms, err := p.wheelPlatforms()
	if err != nil {
		return file{}, err
	}
	name := "snapana-" + r.version.pep440
	data, info := name+".data/", name+".dist-info/"
	files := append([]file(nil), r.python...)
	files = append(files, file{name: data + "scripts/" + p.name(), data: p.data, exec: true})
	for _, f := range r.docs.shared(p.os, "share/zsh/site-functions/_snapana") {
		f.name = data + "data/" + f.name
		files = append(files, f)
	}
	tags := ""
	for platform := range strings.SplitSeq(platforms, ".") {
		tags += "Tag: py3-none-" + platform + "\n"
	}
	files = append(files,
		file{name: info + "METADATA", data: r.metadata()},
		file{name: info + "WHEEL", data: []byte("Wheel-Version: 1.0\nGenerator: snapana-release\nRoot-Is-Purelib: false\n" + tags)},
		// The name is the module's, so that "pytest -p snapana_recorder" goes on to mean the same.
		file{name: info + "entry_points.txt", data: []byte("[pytest11]\nsnapana_recorder = snapana_recorder\n")},
		file{name: info + "licenses/LICENSE", data: r.license},
		file{name: info + "licenses/THIRD_PARTY_LICENSES", data: r.legal.notice(p)},
		file{name: info + "sboms/" + billName, data: bill.data})
	files = append(files, file{name: info + "RECORD", data: record(files, info)})
	packed, err := zipped(files, r.time)
	return file{name: name + "-py3-none-" + platforms + ".whl", data: packed}, err
}

// metadata is the wheel's description of itself (core metadata 2.4).
func (r *release) metadata() []byte {
	var b bytes.Buffer
	for _, l := range [][2]string{
		{"Metadata-Version", "2.4"},
		{"Name", "snapana"},
		{"Version", r.version.pep440},
		{"Summary", summary},
		{"Description-Content-Type", "text/markdown"},
		{"Keywords", "pytorch,cuda,gpu,memory,leak,profiler"},
		{"License-Expression", "Apache-2.0"},
		{"License-File", "LICENSE"},
		{"License-File", "THIRD_PARTY_LICENSES"},
		{"Requires-Python", pythons},
		{"Classifier", "Environment :: Console"},
		{"Classifier", "Framework :: Pytest"},
		{"Classifier", "Operating System :: MacOS"},
		{"Classifier", "Operating System :: Microsoft :: Windows"},
		{"Classifier", "Operating System :: POSIX :: Linux"},
		{"Classifier", "Programming Language :: Python :: 3"},
		{"Classifier", "Topic :: Software Development :: Debuggers"},
	} {
		fmt.Fprintf(&b, "%s: %s\n", l[0], l[1])
	}
	b.WriteByte('\n')
	b.Write(r.readme)
	return b.Bytes()
}

// record lists the wheel's files with their checksums.
func record(files []file, info string) []byte {
	var b bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&b, "%sRECORD,,\n", info)
	return b.Bytes()
}

// wheelPlatforms are the platforms that the program runs on, in Python's names and joined by dots. A static program needs
// neither glibc nor musl: the tags are the oldest that pip knows for each, and Go's own bound is Linux 3.2.
func (p *program) wheelPlatforms() (string, error) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.arch]
	switch p.os {
	case "linux":
		return fmt.Sprintf("manylinux_2_17_%s.manylinux2014_%[1]s.musllinux_1_1_%[1]s", arch), nil
	case "darwin":
		oldest, err := macOS(p.data)
		if p.arch == "arm64" {
			arch = "arm64"
		}
		return fmt.Sprintf("macosx_%d_0_%s", oldest, arch), err
	}
	return "win_" + p.arch, nil
}

// macOS is the oldest release that a program for it says it runs on.
func macOS(data []byte) (major int, err error) {
	f, err := macho.NewFile(bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	const buildVersion = 0x32 // LC_BUILD_VERSION: platform, then the release as xxxx.yy.zz
	for _, l := range f.Loads {
		raw := l.Raw()
		if len(raw) >= 16 && binary.LittleEndian.Uint32(raw) == buildVersion {
			return int(binary.LittleEndian.Uint32(raw[12:]) >> 16), nil
		}
	}
	return 0, errors.New("the program does not say which macOS it needs")
}
