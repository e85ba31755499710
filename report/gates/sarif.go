package gates

import (
	"io"
	"net/url"

	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

// The parts of SARIF 2.1.0 that are written (docs.oasis-open.org/sarif/sarif/v2.1.0).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string            `json:"ruleId"`
		Kind      string            `json:"kind"`
		Level     string            `json:"level"`
		Message   sarifText         `json:"message"`
		Locations []sarifLocation   `json:"locations"`
		Prints    map[string]string `json:"partialFingerprints"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

func writeSARIF(w io.Writer, outcomes []gate.Outcome) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "snapana", Rules: []sarifRule{}}}, Results: []sarifResult{}}
	rules := map[gate.Gate]bool{}
	for i := range outcomes {
		o := &outcomes[i]
		if !rules[o.Gate] {
			rules[o.Gate] = true
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(o.Gate)})
		}
		v := sarifResult{
			RuleID: string(o.Gate), Kind: "fail", Level: "error", Message: sarifText{chart.Plain(verdict.GateOf(o))},
			Prints: map[string]string{"limit/v1": fingerprint(o)},
		}
		if o.Status == gate.Passed {
			v.Kind, v.Level = "pass", "none"
		}
		at := sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: chart.Plain(o.File)}).String()}}
		if file, line := place(o); file != "" && line > 0 {
			at = sarifPhysical{sarifArtifact{(&url.URL{Path: chart.Plain(file)}).String()}, &sarifRegion{line}}
		}
		v.Locations = []sarifLocation{{at}}
		run.Results = append(run.Results, v)
	}
	return encode(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}
