package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sorting"
)

// mostLevers bounds those that a verdict names, the largest use not counted.
const mostLevers = 4

// levers are those of a device in words, the largest gain first and the largest use last.
func (j *judge) levers(e *Facts) []finding.Lever {
	out := slices.DeleteFunc(slices.Clone(e.Levers), func(v finding.Lever) bool {
		// To free what pins segments before others come would be the opposite of to allocate it before them.
		return v.Kind == finding.Held && slices.ContainsFunc(j.findings, func(f finding.Finding) bool {
			x := f.Evidence.Fragments
			return x != nil && x.Lasting != nil && x.Lasting.Site == v.Site
		})
	})
	if s := j.setting(e); s != nil && s.Proven && (s.Kind == finding.LowersPeak || e.OOM == nil && s.Kind != "") {
		text := last(settings(s))
		if c := &e.WhatIf.Capacity; c.Device > 0 && s.Kind != finding.LowersPeak {
			text = fmt.Sprintf("On a GPU of %v: %s", units.Size(c.Device), lower(text))
		}
		out = append(out, finding.Lever{
			Kind: finding.AllocatorSetting, Device: e.Timeline.Device, Gain: max(s.Saved(), 0), Before: s.PeakBefore,
			After: s.Peak, Event: e.Timeline.PeakReserved.Event, Conf: s.Conf, Needs: s.Needs, Confidence: finding.High,
			Text: text,
		})
	}
	rank := func(v *finding.Lever) int {
		if v.Kind == finding.LargestUse {
			return 1
		}
		return 0
	}
	sorting.Stable(out, func(a, b finding.Lever) int {
		return cmp.Or(rank(&a)-rank(&b), cmp.Compare(b.Gain, a.Gain))
	})
	if n := len(out) - 1; n > mostLevers && out[n].Kind == finding.LargestUse {
		out = append(out[:mostLevers], out[n])
	} else if n >= mostLevers && out[n].Kind != finding.LargestUse {
		out = out[:mostLevers]
	}
	for i := range out {
		if v := &out[i]; v.Text == "" {
			v.Text = pull(v)
		}
	}
	return out
}

func last(list []string) string { return list[len(list)-1] }

// pull says what to do and what it gives.
func pull(v *finding.Lever) string {
	blocks := fmt.Sprintf("%v in %s", v.Bytes, units.Plural(v.Blocks, "block"))
	switch v.Kind {
	case finding.ForeachStep:
		return fmt.Sprintf("%s: %s. %s makes temporaries for all parameters at once (%s at the peak).",
			capital(short(v)), falls(v), v.Function, blocks)
	case finding.OptimizerStep:
		return fmt.Sprintf("%s: %s. The step's temporaries (%s) stand at the peak.", capital(short(v)), falls(v), blocks)
	case finding.Generations:
		return fmt.Sprintf("%s: %s. The previous result (%s) lives until the next one is made. Inferred: keep it where the "+
			"next iteration reads it.", capital(short(v)), falls(v), blocks)
	case finding.KeptGradients:
		return fmt.Sprintf("%s: %s. The gradients (%s) are kept while the program goes on, up to the peak.",
			capital(short(v)), falls(v), blocks)
	case finding.Held:
		return fmt.Sprintf("%s: %s. It (%s) was allocated long before that and freed long after. Inferred: whether it "+
			"is read there is not recorded.", capital(short(v)), falls(v), blocks)
	}
	most := "most"
	if 2*v.AtSite <= v.Bytes {
		most = v.AtSite.String()
	}
	text := fmt.Sprintf("The largest part of the peak: %s, %v (%s), %s of it allocated at %s",
		cmp.Or(plurals[v.Category], v.Category), v.Bytes, units.Percent(int64(v.Bytes), int64(v.InUse)), most,
		attribution.Placed(v.Site))
	switch {
	case v.Function != "":
		text += "; a smaller batch lowers it, and so does computing the loss in chunks"
	case v.Category == "autograd saved" && !v.Recomputed:
		text += "; a smaller batch or activation checkpointing lowers it"
	case v.Category == "activation", v.Category == "autograd saved":
		text += "; a smaller batch lowers it"
	}
	return text + "."
}

// plurals are words for categories in a sentence, where they differ from their names.
var plurals = map[string]string{
	"parameter": "parameters", "gradient": "gradients", "activation": "activations", "input": "inputs",
	"autograd saved": "activations saved for backward", "temporary": "temporaries", "workspace": "workspaces",
	"communication": "communication buffers", "kv cache": "key-value caches",
	"other": "the program's own tensors",
}

// short is what to do, in a clause.
func short(v *finding.Lever) string {
	switch v.Kind {
	case finding.AllocatorSetting:
		switch {
		case v.Needs != "":
			return fmt.Sprintf("with torch %s or later, set PYTORCH_CUDA_ALLOC_CONF=%s", v.Needs, v.Conf)
		case v.Conf == "":
			return "unset PYTORCH_CUDA_ALLOC_CONF"
		}
		return "set PYTORCH_CUDA_ALLOC_CONF=" + v.Conf
	case finding.ForeachStep:
		if strings.HasPrefix(v.Function, "_multi_tensor_adam") {
			return "create the optimizer with fused=True or foreach=False"
		}
		return "create the optimizer with foreach=False"
	case finding.OptimizerStep:
		return "update parameters in place (mul_, addcdiv_) at " + v.Site
	case finding.Generations:
		more := ""
		if n := v.Sites - 1; n > 0 {
			more = " (and the same at " + units.Plural(n, "other line") + ")"
		}
		return "delete (del) the result of " + v.Site + " at the end of each iteration" + more
	case finding.KeptGradients:
		return "call optimizer.zero_grad(set_to_none=True) right after optimizer.step()"
	case finding.Held:
		return "free what " + attribution.Placed(v.Site) + " allocated before " + v.During + " runs"
	}
	return ""
}

// falls says what a lever gives.
func falls(v *finding.Lever) string {
	by := ""
	if v.AtMost {
		by = "up to "
	}
	return fmt.Sprintf("the peak falls by %s%v (%s)", by, v.Gain, units.Percent(int64(v.Gain), int64(v.Before)))
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// couldBe is the headline where a lever gives much, "" elsewhere: the first one whose gain is no bound.
func couldBe(levers []finding.Lever) string {
	for i := range levers {
		v := &levers[i]
		if v.AtMost || v.Gain*10 < v.Before {
			continue
		}
		of := ""
		if v.Kind == finding.AllocatorSetting {
			of = " reserved"
		}
		return fmt.Sprintf("No problem found; the peak of %v%s could be %v: %s.", v.Before, of, v.After, short(v))
	}
	return ""
}

// Savings are the levers, without the largest use of memory.
func (v *Verdict) Savings() []finding.Lever {
	if n := len(v.Levers); n > 0 && v.Levers[n-1].Kind == finding.LargestUse {
		return v.Levers[:n-1]
	}
	return v.Levers
}

// Start says which use of memory is the largest at the peak, "" where that is not known.
func (v *Verdict) Start() string {
	if n := len(v.Savings()); n < len(v.Levers) {
		return v.Levers[n].Text
	}
	return ""
}
