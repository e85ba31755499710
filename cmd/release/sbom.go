package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// billName is the list of a program's parts where it is packed with the program.
const billName = "snapana.spdx.json"

// The forms of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/): what is said here and no more.
type (
	spdxDocument struct {
		Version       string         `json:"spdxVersion"`
		DataLicense   string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      spdxCreation   `json:"creationInfo"`
		Packages      []spdxPackage  `json:"packages"`
		Relationships []spdxRelation `json:"relationships"`
		Extracted     []spdxLicense  `json:"hasExtractedLicensingInfos,omitempty"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string          `json:"SPDXID"`
		Name          string          `json:"name"`
		Version       string          `json:"versionInfo"`
		FileName      string          `json:"packageFileName,omitempty"`
		Purpose       string          `json:"primaryPackagePurpose"`
		Supplier      string          `json:"supplier"`
		Location      string          `json:"downloadLocation"`
		FilesAnalyzed bool            `json:"filesAnalyzed"`
		Checksums     []spdxChecksum  `json:"checksums,omitempty"`
		SourceInfo    string          `json:"sourceInfo,omitempty"`
		Concluded     string          `json:"licenseConcluded"`
		Declared      string          `json:"licenseDeclared"`
		Copyright     string          `json:"copyrightText"`
		References    []spdxReference `json:"externalRefs"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelation struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
	spdxLicense struct {
		ID   string `json:"licenseId"`
		Name string `json:"name"`
		Text string `json:"extractedText"`
	}
)

const unsaid = "NOASSERTION"

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// part is a module as a package of SPDX.
func part(module, version, license string) spdxPackage {
	return spdxPackage{ID: "SPDXRef-" + notInID.ReplaceAllString(module, "-"), Name: module, Version: version, Purpose: "LIBRARY",
		Supplier: unsaid, Location: unsaid, Concluded: license, Declared: license, Copyright: unsaid,
		References: []spdxReference{{"PACKAGE-MANAGER", "purl", purl(module, version)}}}
}

// purl is the name of a Go module as https://github.com/package-url/purl-spec has it.
func purl(module, version string) string {
	parts := strings.Split(module, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "pkg:golang/" + strings.Join(parts, "/") + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// bill lists what a program is made of, as the program itself says, with licenses.
func (r *release) bill(p *program) (file, error) {
	name := "snapana-" + r.version.plain + "-" + p.os + "-" + p.arch
	sum := fmt.Sprintf("%x", sha256.Sum256(p.data))
	main := part(p.info.Main.Path, r.version.module, "Apache-2.0 AND "+r.legal.of[fonts].id)
	main.Purpose, main.FileName = "APPLICATION", p.name()
	main.Checksums = []spdxChecksum{{"SHA256", sum}}
	main.SourceInfo = "commit " + r.commit + ", built with " + p.info.GoVersion + " for " + p.String()
	d := spdxDocument{Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace:     "https://spdx.org/spdxdocs/" + url.PathEscape(name) + "-" + sum,
		Creation:      spdxCreation{r.time.Format(time.RFC3339), []string{"Tool: snapana-release-" + r.version.plain}},
		Packages:      []spdxPackage{main, part("stdlib", strings.TrimPrefix(p.info.GoVersion, "go"), r.legal.of[""].id)},
		Relationships: []spdxRelation{{"SPDXRef-DOCUMENT", "DESCRIBES", main.ID}}}
	for _, m := range p.modules() {
		t := r.legal.of[m.Path]
		module := part(m.Path, m.Version, t.id)
		module.SourceInfo = "go.sum " + m.Sum
		d.Packages = append(d.Packages, module)
		if t.id == publicDomain {
			d.Extracted = append(d.Extracted, spdxLicense{publicDomain, "Public domain", string(t.texts[0].data)})
		}
	}
	for _, linked := range d.Packages[1:] {
		d.Relationships = append(d.Relationships, spdxRelation{main.ID, "STATIC_LINK", linked.ID})
	}
	data, err := json.MarshalIndent(d, "", "  ")
	return file{name: name + ".spdx.json", data: append(data, '\n')}, err
}
