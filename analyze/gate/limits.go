// Package gate holds a run against limits: on its peak, on what its steps leave behind, on leaks, and against an earlier
// run.
package gate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/snapana/snapana/analyze/units"
)

// Limits are what a run must keep to. nil is no limit.
type Limits struct {
	Peak          *Size    `yaml:"max_peak"`          // requested bytes at their peak: they do not depend on the GPU
	Reserved      *Size    `yaml:"max_reserved"`      // reserved bytes at their peak
	Growth        *Size    `yaml:"max_growth"`        // active bytes that a step may leave behind
	Fragmentation *Percent `yaml:"max_fragmentation"` // of reserved memory at its peak, free and of no use
	NoGhosts      bool     `yaml:"no_ghosts"`         // no memory that only a forgotten reference keeps
	Tolerance     *Percent `yaml:"tolerance"`         // by how much the peak may exceed that of the baseline
	Phases        []Phase  `yaml:"phases"`
	Sites         []Site   `yaml:"sites"`
	Steps         *Steps   `yaml:"steps"`
}

// Phase limits a part of the program that it named.
type Phase struct {
	Name string `yaml:"name"`
	Peak *Size  `yaml:"max_peak"` // allocated bytes
}

// Site limits what stacks with a frame that matches have at the peak.
type Site struct {
	Match Pattern `yaml:"match"`
	Peak  *Size   `yaml:"max_peak"` // requested bytes
}

// Steps limits each step.
type Steps struct {
	Peak *Size `yaml:"max_peak"` // active bytes
	Skip int   `yaml:"skip"`     // steps at the beginning that do not count
}

// Tolerances that hold unless told otherwise: of the baseline's peak, and at least so many bytes.
const (
	UsualTolerance Percent = 2
	LeastTolerance         = 8 << 20
)

// maxLimits bounds files of limits, in bytes.
const maxLimits = 1 << 20

// Read reads limits from YAML:
//
//	max_peak: 60GiB        # requested bytes
//	max_growth: 0
//	no_ghosts: true
//	sites:
//	  - match: 'attention\.py'
//	    max_peak: 4GiB
func Read(r io.Reader) (*Limits, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxLimits+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxLimits {
		return nil, fmt.Errorf("more than %s of limits; is it the right file?", units.Bytes(maxLimits))
	}
	l := new(Limits)
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(l); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the limits are not understood: %s", plain(err))
	}
	if d.Decode(new(yaml.Node)) != io.EOF {
		return nil, errors.New("the limits are not understood: there is more than one document")
	}
	return l, l.check()
}

// check says which part of the program lacks its limit, or its name.
func (l *Limits) check() error {
	for i, p := range l.Phases {
		if p.Name == "" || p.Peak == nil {
			return fmt.Errorf("phases[%d] needs a name and max_peak", i)
		}
	}
	for i, s := range l.Sites {
		if s.Match.Regexp == nil || s.Match.String() == "" || s.Peak == nil {
			return fmt.Errorf("sites[%d] needs match and max_peak", i)
		}
	}
	if s := l.Steps; s != nil && (s.Peak == nil || s.Skip < 0) {
		return errors.New("steps needs max_peak, and a skip of 0 or more")
	}
	return nil
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongKind  = regexp.MustCompile("cannot unmarshal \\S+(?: `[^`]*`)? into \\S+")
)

// plain is an error of the YAML package without Go's names for things.
func plain(err error) string {
	s := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:")
	s = unknownKey.ReplaceAllString(s, "unknown key $1")
	s = wrongKind.ReplaceAllString(s, "a value of another kind is expected")
	return strings.Join(strings.Fields(s), " ")
}

// Size is a number of bytes, written as units.ParseSize reads it.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, ok := units.ParseSize(string(text))
	if !ok {
		return fmt.Errorf("invalid size %q; expected one like 60GiB", text)
	}
	*s = Size(n)
	return nil
}

// Percent is a share like "20%" or 20.
type Percent float64

// ParsePercent reads "20%" or "20".
func ParsePercent(text string) (Percent, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	if err != nil || !(v >= 0) || v > 1e6 {
		return 0, fmt.Errorf("invalid share %q; expected one like 20%%", text)
	}
	return Percent(v), nil
}

// UnmarshalText is ParsePercent.
func (p *Percent) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePercent(string(text))
	return err
}

func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'g', -1, 64) + "%" }

// Pattern is a regular expression that frames are matched against, as "file:line function".
type Pattern struct{ *regexp.Regexp }

// UnmarshalText compiles it.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	p.Regexp, err = regexp.Compile(string(text))
	return err
}
