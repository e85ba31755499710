package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/snapana/snapana/snapshot/sorting"
)

// The forms of an in-toto statement v1 (https://in-toto.io/Statement/v1) with a predicate of SLSA v1
// (https://slsa.dev/spec/v1.0/provenance): what is said here and no more.
type (
	statement struct {
		Type          string         `json:"_type"`
		Subject       []resource     `json:"subject"`
		PredicateType string         `json:"predicateType"`
		Predicate     slsaProvenance `json:"predicate"`
	}
	resource struct {
		Name        string            `json:"name,omitempty"`
		URI         string            `json:"uri,omitempty"`
		Digest      map[string]string `json:"digest,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	slsaProvenance struct {
		Definition slsaDefinition `json:"buildDefinition"`
		Details    slsaDetails    `json:"runDetails"`
	}
	slsaDefinition struct {
		BuildType string         `json:"buildType"`
		External  map[string]any `json:"externalParameters"`
		Internal  map[string]any `json:"internalParameters"`
		Resolved  []resource     `json:"resolvedDependencies"`
	}
	slsaDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	}
)

// provenance says what the files were made of, and how. It is not signed, and names no time or machine: whoever builds the
// commit again gets the same statement about the same bytes.
func (r *release) provenance(files []file) (file, error) {
	first := r.programs[0].info
	home := "https://" + first.Main.Path
	var platforms []string
	modules := map[string]resource{}
	for _, p := range r.programs {
		platforms = append(platforms, p.String())
		for _, m := range p.info.Deps {
			modules[m.Path] = resource{URI: purl(m.Path, m.Version), Annotations: map[string]string{"go.sum": m.Sum}}
		}
	}
	resolved := []resource{
		{URI: "git+" + home, Digest: map[string]string{"gitCommit": r.commit}},
		{URI: purl("toolchain", strings.TrimPrefix(first.GoVersion, "go")), Name: "go"},
	}
	for _, m := range modules {
		resolved = append(resolved, m)
	}
	sorting.By(resolved[2:], func(a, b resource) int { return strings.Compare(a.URI, b.URI) })
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, f := range files {
		s.Subject = append(s.Subject, resource{Name: f.name, Digest: map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(f.data))}})
	}
	s.Predicate.Definition = slsaDefinition{BuildType: home + "/cmd/release@v1",
		External: map[string]any{"commit": r.commit, "platforms": platforms, "version": r.version.module},
		Internal: map[string]any{"command": "go run ./cmd/release"}, Resolved: resolved}
	s.Predicate.Details.Builder.ID = home + "/cmd/release"
	data, err := json.MarshalIndent(s, "", "  ")
	return file{name: "snapana-" + r.version.plain + ".provenance.json", data: append(data, '\n')}, err
}
