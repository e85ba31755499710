package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot/sorting"
)

// terms are under which licenses a module is, and their texts.
type terms struct {
	id    string // an SPDX expression
	texts []file
}

// legal has the terms of all modules that are linked into some program, by their paths; "" is Go's own library, and fonts
// the folder of the letters.
type legal struct{ of map[string]terms }

// fonts are what programs carry that is not code.
const fonts = "report/plot/liberation"

// publicDomain is what SPDX has no name for: a text that gives all rights away.
const publicDomain = "LicenseRef-public-domain"

// reviewed are modules whose texts have more than one license, or an uncommon one, or one that is taken for another. They
// were read: the expression is what holds for what is linked.
var reviewed = map[string]string{
	fonts: "OFL-1.1",
	"github.com/DataDog/datadog-agent/pkg/template": "Apache-2.0 AND BSD-3-Clause", // the latter's text is Go's own
	"github.com/klauspost/compress":                 "BSD-3-Clause AND Apache-2.0 AND MIT",
	"github.com/minio/md5-simd":                     "Apache-2.0 AND BSD-3-Clause",
	"github.com/xi2/xz":                             publicDomain,
	"github.com/modelcontextprotocol/go-sdk":        "Apache-2.0 AND MIT", // CC-BY-4.0 is of its documentation
	"go.yaml.in/yaml/v3":                            "MIT AND Apache-2.0",
}

// families are the licenses that are told by a phrase, in lower case and with single spaces.
var families = []struct{ id, phrase string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"Apache-2.0", "licensed under the apache license, version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD", "redistribution and use in source and binary forms"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software"},
	{"MPL-2.0", "mozilla public license"},
	{"OFL-1.1", "sil open font license"},
	{"GPL", "gnu general public license"},
	{"public domain", "public domain"},
}

// recognize tells the license of a text that has one, "" where it has none that is known, or several.
func recognize(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	found := ""
	for _, f := range families {
		if !strings.Contains(text, f.phrase) || found == f.id {
			continue
		}
		if found != "" {
			return ""
		}
		found = f.id
	}
	switch {
	case found == "BSD" && regexp.MustCompile(`neither the names? of|the names? of .{0,60} may not be used`).MatchString(text):
		return "BSD-3-Clause"
	case found == "BSD":
		return "BSD-2-Clause"
	case found == "GPL" || found == "public domain":
		return ""
	}
	return found
}

var licenseFile = regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying|^notice`)

// read takes the terms from a module's folder.
func read(module, dir string) (terms, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return terms{}, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && licenseFile.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
			names = append(names, e.Name())
		}
	}
	t := terms{id: reviewed[module]}
	var ids []string
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return terms{}, err
		}
		t.texts = append(t.texts, file{name: name, data: data})
		if !strings.HasPrefix(strings.ToLower(name), "notice") {
			ids = append(ids, recognize(string(data)))
		}
	}
	if t.id == "" && len(ids) == 1 {
		t.id = ids[0]
	}
	if t.id == "" || len(t.texts) == 0 {
		return terms{}, fmt.Errorf("the license of %s is not recognized: read %s, and add it to `reviewed` in cmd/release/legal.go",
			module, names)
	}
	return t, nil
}

// legal reads the terms of what the programs are made of, from the module cache and from Go's folder.
func (w *workshop) legal(programs []*program) (*legal, error) {
	l := &legal{map[string]terms{}}
	std, err := read("", w.goroot)
	if err != nil {
		return nil, err
	}
	l.of[""] = std
	if l.of[fonts], err = read(fonts, filepath.Join(w.tree, fonts)); err != nil {
		return nil, err
	}
	for _, p := range programs {
		for _, d := range p.info.Deps {
			if _, ok := l.of[d.Path]; ok {
				continue
			}
			found, err := w.goFor(p.target, "list", "-m", "-json", d.Path)
			if err != nil {
				return nil, err
			}
			var module struct{ Version, Dir string }
			if err := json.Unmarshal([]byte(found), &module); err != nil {
				return nil, err
			}
			if module.Version != d.Version || module.Dir == "" {
				return nil, fmt.Errorf("%s %s is linked, and not in the module cache", d.Path, d.Version)
			}
			if l.of[d.Path], err = read(d.Path, module.Dir); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// notice has the licenses of all that is linked into a program, as they ask for.
func (l *legal) notice(p *program) []byte {
	var b bytes.Buffer
	b.WriteString("snapana is licensed under the Apache License 2.0. It has the following modules linked into it,\n" +
		"each under its own license.\n")
	add := func(name string, t terms) {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n", strings.Repeat("=", 80), name, t.id)
		for _, f := range t.texts {
			fmt.Fprintf(&b, "\n-------- %s\n\n%s\n", f.name, bytes.TrimSpace(bytes.ReplaceAll(f.data, []byte("\r\n"), []byte("\n"))))
		}
	}
	add("Go's standard library "+p.info.GoVersion, l.of[""])
	add("Liberation Sans, the letters of pictures", l.of[fonts])
	for _, d := range p.modules() {
		add(d.Path+" "+d.Version, l.of[d.Path])
	}
	return b.Bytes()
}

// modules are those linked into the program, by their paths.
func (p *program) modules() []*debug.Module {
	all := slices.Clone(p.info.Deps)
	sorting.By(all, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return all
}
