package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// SayChanges puts an answer about changes of the program in words: the answer itself, what each change does, and what
// it assumes.
func SayChanges(a *change.Answer) {
	for i := range a.Changes {
		c := &a.Changes[i]
		c.Text = changed(c)
		for k := range c.Assumptions {
			c.Assumptions[k].Text = assumed(&c.Assumptions[k])
		}
	}
	for i := range a.Doubts {
		a.Doubts[i].Text = doubted(&a.Doubts[i], a.After.ReservedPeak)
	}
	a.Text = cameTo(a)
	if !a.Accuracy.Trusted {
		a.Text += " Take that for a guess: too few requests of the replay get their recorded address."
	}
}

// ChangeProof says how far the reserved peak of an answer can be trusted, "" where nothing was changed.
func ChangeProof(a *change.Answer) string {
	b := &a.Band
	text := string(a.Confidence) + " confidence"
	switch {
	case a.Confidence == "":
		return ""
	case b.Low == b.High:
		text += ": requests a little larger, smaller, earlier or later reach the same peak."
	case len(a.Doubts) == 0:
		text += fmt.Sprintf(": expect between %s and %s reserved, where requests are a little other than is replayed.",
			units.Bytes(b.Low), units.Bytes(b.High))
	default:
		text += fmt.Sprintf(": expect between %s and %s reserved.", units.Bytes(b.Low), units.Bytes(b.High))
	}
	return capital(text)
}

// doubted says why a prediction may be off.
func doubted(v *change.Doubt, peak int64) string {
	switch v.Kind {
	case change.Layout:
		return "Where blocks lie decides about the peak: requests a little larger, smaller, earlier or later move it."
	case change.Kernels:
		return v.Change + ": kernels may take other temporaries for smaller batches."
	case change.Types:
		return v.Change + ": what the program keeps in 32 bits all the same, or converts, is not recorded."
	case change.Temporaries:
		return v.Change + ": what the optimizer makes for one parameter is inferred from what it made for all."
	case change.Strategy:
		return v.Change + ": there are several ways to do it, which take other buffers."
	case change.Variable:
		return v.Change + ": a variable may keep the last block until it is assigned anew."
	case change.Otherwise:
		return v.Change + ": the program may not do what is assumed, " + elsewise(v, peak) + "; the bounds hold for both."
	case change.Lists:
		return v.Change + ": another list of modules may be meant; name its line instead."
	case change.Frees:
		return v.Change + ": when the program lets go of what no graph keeps is told by the order of its code."
	case change.Held:
		return v.Change + ": what else holds the blocks that it lets go of, or leaves, is not recorded."
	case change.NotReplayed:
		return "The replay does not reproduce the recorded addresses."
	case change.BeyondCut:
		return "The recording ends where a request failed; what comes behind it may need more."
	}
	return ""
}

// elsewise says what a program needs that does not do what is assumed, whose peak is known if it does, in reserved bytes.
func elsewise(v *change.Doubt, peak int64) string {
	switch {
	case v.High == peak:
		return "and needs " + units.Bytes(v.Low) + " then"
	case v.Low == peak:
		return "and needs " + units.Bytes(v.High) + " then"
	}
	return fmt.Sprintf("and needs %s or %s then", units.Bytes(v.Low), units.Bytes(v.High))
}

// SaySearch puts a search for changes in words.
func SaySearch(f *change.Found) {
	SayChanges(&f.Answer)
	for i := range f.Tried {
		t := &f.Tried[i]
		t.Text = strings.Join(t.Changes, " and ") + ": " + room(&t.After)
		if !*t.After.Served && t.After.ReservedPeak < f.Before.ReservedPeak {
			t.Text += ", though it saves " + units.Bytes(f.Before.ReservedPeak-t.After.ReservedPeak)
		}
	}
	for i := range f.Refused {
		r := &f.Refused[i]
		var no *change.RefusedError
		if r.Text = r.Err.Error(); errors.As(r.Err, &no) {
			r.Text = SayRefused(no)
		}
	}
	switch {
	case *f.Before.Served:
		f.Text = "The run fits as it is: " + room(&f.Before) + "."
	case len(f.Changes) == 0 && f.Early && len(f.Tried) > 0 && *f.Tried[0].After.Served:
		t := slices.MaxFunc(f.Tried, func(a, b change.Set) int { return cmp.Compare(a.After.Spare, b.After.Spare) })
		f.Text = fmt.Sprintf("The request came before anything tells what the rest of a step needs: gradients and the "+
			"optimizer's state come on top. Up to there %s leaves the most, %s.", units.List(t.Changes), units.Bytes(t.After.Spare))
	case len(f.Changes) == 0 && len(f.Tried) > 0 && *f.Tried[0].After.Served:
		f.Text = "With " + units.List(f.Tried[0].Changes) + " the run fits up to the request that failed, with too little " +
			"to spare to be sure of what comes behind it."
	case len(f.Changes) == 0:
		f.Text = "None of these changes makes the run fit, alone or together."
		if !f.All {
			f.Text = "None of these changes makes the run fit; not all sets of them were tried."
		}
	default:
		if f.Accuracy.Trusted {
			f.Text = "The cheapest that fits: " + lower(f.Text)
		}
		if !f.All {
			f.Text += " Not all sets were tried."
		}
	}
}

// cameTo is the answer in one sentence.
func cameTo(a *change.Answer) string {
	var asked []string
	for i := range a.Changes {
		asked = append(asked, a.Changes[i].Change)
	}
	after, before := a.After.ReservedPeak, a.Before.ReservedPeak
	text := "With " + units.List(asked) + ", reserved memory peaks at " + units.Bytes(after)
	switch {
	case after < before:
		text += fmt.Sprintf(" instead of %s (%s less)", units.Bytes(before), units.Percent(before-after, before))
	case after > before:
		text += fmt.Sprintf(", more than the %s without", units.Bytes(before))
	default:
		text += ", as without"
	}
	if a.After.Served != nil {
		text += "; " + room(&a.After)
		if a.Early && *a.After.Served {
			text += " up to the request that failed, before anything tells what gradients and the optimizer need"
		}
	}
	if text += "."; a.Instead != nil {
		other := "FSDP2's fully_shard"
		if a.Instead.Dealt {
			other = "torch's ZeroRedundancyOptimizer"
		}
		text += fmt.Sprintf(" That is %s written by hand; with %s (%s) it is %s.", a.Instead.Of, other, a.Instead.Change,
			units.Bytes(a.Instead.ReservedPeak))
	}
	return text
}

// room says whether a replay fits, in a clause.
func room(o *change.Outcome) string {
	switch {
	case !*o.Served && o.Spare >= 0:
		return "that is not enough: a request fails all the same"
	case !*o.Served:
		return "that is not enough, by " + units.Bytes(-o.Spare)
	case o.Short > 0:
		return fmt.Sprintf("it fits up to the request that failed, and %s are missing if it goes on like the pass before",
			units.Bytes(o.Short))
	case o.Spare < 0:
		return "it fits, but only because PyTorch frees its cache in between"
	}
	return fmt.Sprintf("it fits with %s to spare", units.Bytes(o.Spare))
}

// changed says what a change does to the recorded run.
func changed(c *change.Applied) string {
	blocks := fmt.Sprintf("%s (%s in all)", units.Plural(c.Blocks, "recorded block"), units.Bytes(c.Bytes))
	if c.Blocks == 0 {
		return "Nothing that the run allocated would change."
	}
	switch c.Kind {
	case change.FreeLeak:
		return fmt.Sprintf("What leaks from %s, %s, is freed with its step, or the variable that has it.", c.Line, blocks)
	case change.Del:
		return fmt.Sprintf("What %s allocates, %s, is freed after the statement behind it, or before the backward pass there.",
			c.Line, blocks)
	case change.Free:
		return fmt.Sprintf("What %s allocated, %s, is freed when the step ends.", c.Line, blocks)
	case change.NoGrad:
		return fmt.Sprintf("Nothing is kept for backward of what %s calls: %s end early.", c.Line, blocks)
	case change.Checkpoint:
		return fmt.Sprintf("%d of the %s called from %s in each pass are computed again in backward; %s end with "+
			"forward instead.", c.Modules, units.Plural(c.OfThose, "module"), c.Line, blocks)
	case change.Offload:
		return fmt.Sprintf("%s move to the host's memory.", capital(blocks))
	case change.Foreach:
		return fmt.Sprintf("The optimizer updates one parameter after another, without temporaries for all of them at once: "+
			"%s go.", blocks)
	case change.InBackward:
		return fmt.Sprintf("Each parameter is updated as soon as its gradient is complete: %s end at once, or go.", blocks)
	case change.EightBit:
		return fmt.Sprintf("The optimizer keeps 8 bits for an element of its state, and makes no temporaries: %s shrink or go.", blocks)
	case change.Accumulate:
		return fmt.Sprintf("Each pass has its part of the batch: %s shrink. Gradients are there from the first part on.", blocks)
	case change.Zero:
		if slices.Contains(c.Assumptions, change.Assumption{Kind: change.Dealt}) {
			return fmt.Sprintf("Rank 0 holds the optimizer's state of its own parameters: %s go or shrink.", blocks)
		}
		return fmt.Sprintf("Each rank holds its part: %s shrink.", blocks)
	case change.FSDP:
		return fmt.Sprintf("Each rank holds its part: %s shrink. What modules need is gathered and reduced on streams of its own, "+
			"in buffers of its own.", blocks)
	}
	return fmt.Sprintf("%s become half as large.", capital(blocks))
}

// assumed says what is taken for granted.
func assumed(a *change.Assumption) string {
	switch a.Kind {
	case change.TakenFor:
		return fmt.Sprintf("Snapshots do not record names of modules: those that %s calls one after another are taken for those of "+
			"%s.", a.Line, a.Name)
	case change.OnlyLeak:
		return fmt.Sprintf("%s allocates nothing that leaks; the only leak found, from %s, is taken for it.", a.Name, a.Line)
	case change.HeldGraphs:
		return fmt.Sprintf("No leak is certain in so few steps; autograd graphs that stay, such as that of %s, though nothing goes "+
			"back through them are taken for one.", a.Line)
	case change.OneOfLists:
		return "Which lists of modules a name means is guessed, by how many modules they have, what these keep, and their order."
	case change.TrainsAlone:
		return "Modules are checkpointed while the model trains, as transformers does it: what an evaluation with gradients " +
			"keeps stays. Where the program checkpoints it, too, the peak may be lower."
	case change.EvaluatesToo:
		return "Modules are checkpointed in an evaluation with gradients, too; where they are not, the peak may be higher."
	case change.BoundAgain:
		return "What leaks is not needed after its step; a variable of the loop keeps the last of it until it is assigned anew."
	case change.KeptAtFailure:
		return "Backward keeps all that modules made and that was there when the request failed: no backward pass tells."
	case change.NonReentrant:
		return "torch.utils.checkpoint runs with use_reentrant=False; the other form keeps a little more."
	case change.LeafInput:
		return "The output of the embeddings needs a gradient, as peft and transformers have it where adapters are trained with " +
			"checkpoints; both stay until the next loss."
	case change.LastReader:
		return "Nothing reads it later: no snapshot tells when memory is read."
	case change.SingleTensor:
		return "For one parameter the optimizer makes the temporaries that it made for all."
	case change.StepsAlike:
		return "The optimizer of each parameter runs with foreach, as recorded; without, as in torch's tutorial, Adam makes a quotient " +
			"besides the root."
	case change.StepsAtOnce:
		return "Nothing else needs the gradients: no clipping, no accumulation, no norm."
	case change.DividesEvenly:
		return "All that a pass makes, but for gradients, grows with the batch, which has as many samples as parts at least."
	case change.EvaluatesWhole:
		return "Evaluations, and what else calls modules between the steps, keep their batch."
	case change.KeepsAll:
		return "The optimizer steps once for all parts, and gradients add up until then."
	case change.Shards:
		return "Each tensor is cut into equal parts, without buffers for communication and streams of their own, which " +
			"fsdp=STAGE,RANKS has."
	case change.Dealt:
		return "ZeroRedundancyOptimizer deals whole parameters, the largest first, each to the rank that has the least: this is rank 0."
	case change.FullyShard:
		return "fully_shard wraps each module of a loop, and then the model, which stays gathered through forward and backward " +
			"as by default; parameters and gradients keep their type."
	case change.RootAlone:
		return "No line calls modules in a loop, so the model is gathered as a whole."
	case change.OneUnit:
		return "The model is made whole, then cut. Parameters are gathered for one module at a time, where they are used; one that " +
			"is used several times stays until its gradient is complete."
	case change.Elements32:
		return "Elements had 32 bits: snapshots do not record types."
	case change.Converted:
		return "The model is made in 32 bits, and converted when all of it is there."
	case change.Loaded16:
		return "The model comes to the device with 16 bits, as with model.to(device, dtype): converted there, it would need most then."
	case change.Casts:
		return "Norms by root mean squares, transformers' losses and its attention's softmax compute in 32 bits all the same, in " +
			"copies."
	case change.CastsLoss:
		return "The program makes 32 bits of its logits before their cross entropy, as most language models with such norms do: " +
			"dtype=bf16:all,loss is for one that does not."
	case change.CastsCapped:
		return "The program makes 32 bits of its capped logits before their cross entropy, as most do that cap them."
	case change.Autocast:
		return "Activations are computed as under torch.autocast: products keep copies of their weights and of what they are given in " +
			"16 bits; norms, softmaxes and losses stay at 32."
	case change.PythonAlone:
		return "Frames of C++ were not recorded, so which operations the program asks for itself is guessed: record with " +
			"stacks=\"all\", which is the default."
	case change.Accelerated:
		return "Accelerate runs the model alone under torch.autocast, and what that gives goes over to 32 bits."
	case change.EvaluatesHalf:
		return "The program evaluates under torch.autocast, as it trains; what it evaluates outside of it keeps 32 bits, which may make " +
			"the peak higher."
	case change.SamplesFull:
		return "What the program samples, or tests, between its steps, or behind them, is made outside of torch.autocast, in 32 bits."
	case change.WeightsGiven:
		return "The program runs under torch.autocast, as its copies of weights tell: those go, and what had 32 bits for a " +
			"weight alone, as embeddings have, has 16."
	case change.FollowsWeights:
		return "Gradients and the optimizer's state have 16 bits, too: torch's optimizers make them like the weights."
	case change.Trains32:
		return "Gradients and the state of the program's own optimizer keep their type: dtype=bf16:all is for one that " +
			"makes them like the weights."
	case change.Adapters32:
		return "Adapters keep 32 bits, as peft makes them beside weights of 16."
	case change.SavedOnCPU:
		return "Activations leave as soon as nothing but backward needs them, and come back one at a time, without what is " +
			"larger seen through a view, as an expanded tensor is."
	case change.BlockWise:
		return "State is kept as bitsandbytes does: 8 bits for an element and a scale for 256, but 32 bits for parameters with fewer " +
			"than 4096."
	case change.StepsOnCPU:
		return "The optimizer runs on the CPU: gradients are copied there, and stay as long as recorded; parameters come back."
	case change.FoundSteps:
		return "Steps are counted in the loop that was found, not with passes before it."
	}
	return "What leaks is not needed after its step."
}

// SayCost puts an estimate of what a change costs in words, "" for nothing.
func SayCost(c *change.Cost) string {
	var parts []string
	if c.Recomputed > 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% of forward is computed twice", 100*c.Recomputed))
	}
	if c.Bus > 0 {
		parts = append(parts, units.Bytes(c.Bus)+" cross the bus in each step")
	}
	if c.Launches > 0 {
		parts = append(parts, "about "+units.Plural(int64(c.Launches), "more kernel")+" in each step")
	}
	if c.Time < 0.001 {
		return strings.Join(parts, ", ")
	}
	parts = append(parts, fmt.Sprintf("steps take about %.0f%% longer", max(100*c.Time, 1)))
	return strings.Join(parts, ", ")
}

// SayRefused says why a change cannot be replayed.
func SayRefused(e *change.RefusedError) string {
	return fmt.Sprintf("%s cannot be replayed: %s", e.Change, lacks(e))
}

func lacks(e *change.RefusedError) string {
	switch e.Lacks {
	case change.NoStacks:
		return "the file has no stacks, so nothing tells what memory is for"
	case change.NoPass:
		return "no backward pass was recorded"
	case change.NoModules:
		return "no modules that one line calls in a loop keep anything for backward; name the line that calls the modules, " +
			"as FILE:LINE"
	case change.NoName:
		return "snapshots do not record names of modules, and this one is of no list; name the line that calls the module, as FILE:LINE"
	case change.ManyLines:
		var forms []string
		for i, form := range e.Lines {
			forms = append(forms, fmt.Sprintf("%s (%s)", form, units.Plural(int64(e.Counts[i]), "module")))
		}
		return "snapshots do not record names of modules, and it may be one of several lists, which have names by the lines " +
			"that call them: " + strings.Join(forms, ", ")
	case change.ManyLeaks:
		return "nothing that leaks is allocated there, and several lines leak: " + strings.Join(e.Lines, ", ")
	case change.TooFew:
		return fmt.Sprintf("%s calls %s modules in each pass, which count from 0", e.Lines[0], e.Lines[1])
	case change.NoCalls:
		return "the line calls no module that keeps anything for backward, or all of it is computed again already"
	case change.NoValues:
		return "all that the line allocates is of an optimizer or a backward pass, and no variable's; name the line that makes the value"
	case change.NoOptimizer:
		return "no step of an optimizer was recorded"
	case change.NoState:
		return "the optimizer's state cannot be told from other memory: it was there before the recording began, or there is none"
	case change.NoParams:
		return "parameters cannot be told from other memory: they were there before the recording began"
	case change.NoSteps:
		return "the recording has no such step; they count from 0"
	case change.NoLeak:
		return "no leak was found"
	case change.Contradiction:
		return "it cannot be made together with " + e.Lines[0]
	case change.NoGradients:
		return "no gradients of parameters were recorded"
	}
	return "nothing of that kind was recorded"
}

// rescue says which changes of the program make a run fit.
func rescue(f *finding.Finding) {
	r := f.Evidence.Rescue
	if r.LeftOut {
		f.Because("Changes of the program were not replayed on so long a trace: a search for them takes longer.")
		return
	}
	var short []string
	for i := range r.Short {
		short = append(short, fmt.Sprintf("%s saves %v", amended(&r.Short[i]), r.Short[i].Saves))
	}
	if r.Early && len(r.Fit) > 0 {
		return // early said it
	}
	if len(r.Fit) == 0 {
		if len(short) > 0 {
			f.Because("Replayed with changes of the program, the run does not fit: %s.", strings.Join(short, "; "))
		}
		return
	}
	best := &r.Fit[0]
	with := "when PyTorch frees its cache in between"
	if best.Spare >= 0 {
		with = fmt.Sprintf("with %v to spare", best.Spare)
	}
	text := fmt.Sprintf("%s makes it fit %s", amended(best), with)
	var notes []string
	if best.Slower >= 0.005 {
		notes = append(notes, fmt.Sprintf("steps take about %.0f%% longer, an estimate", 100*best.Slower))
	}
	if best.Confidence != "" {
		note := string(best.Confidence) + " confidence"
		if best.Low < best.High {
			note += fmt.Sprintf(": expect between %v and %v reserved", best.Low, best.High)
		}
		notes = append(notes, note)
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	for i := range r.Fit[1:] {
		text += fmt.Sprintf("; so does %s", amended(&r.Fit[1+i]))
		if more := r.Fit[1+i].Slower; more >= 0.005 {
			text += fmt.Sprintf(" (about %.0f%% longer)", 100*more)
		}
	}
	if len(short) > 0 {
		text += "; " + strings.Join(short, ", ") + alone(len(short))
	}
	text = capital(text) + "."
	if r.Ends {
		text += " That is up to the request that failed; what comes behind it may need more."
	}
	f.Do(text)
}

// early says what changes leave up to a request that failed before a backward pass was over.
func early(fit []finding.Amended) string {
	text := fmt.Sprintf("Replayed up to this request, %s leaves %v free", amended(&fit[0]), fit[0].Spare)
	if len(fit) > 1 {
		text += fmt.Sprintf(", %s %v", amended(&fit[1]), fit[1].Spare)
	}
	return text + ". In training, gradients and the optimizer's state come on top: the recording ends before it shows " +
		"how much."
}

func alone(n int) string {
	if n == 1 {
		return " and is not enough"
	}
	if n == 2 {
		return ", and neither is enough alone"
	}
	return ", and none of them is enough alone"
}

// amended is what to do for a set of changes, as the subject of a sentence.
func amended(a *finding.Amended) string {
	var parts []string
	for i := range a.Changes {
		parts = append(parts, doing(&a.Changes[i]))
	}
	return strings.Join(parts, " together with ")
}

// doing is what to do for a change, as the subject of a sentence.
func doing(c *finding.ProgramChange) string {
	_, value, _ := strings.Cut(c.Change, "=")
	switch change.Kind(c.Kind) {
	case change.FreeLeak:
		return "freeing what leaks from " + c.Line
	case change.Checkpoint:
		if c.Modules == 1 && c.Of > 1 {
			return fmt.Sprintf("checkpointing the first of the %d modules called from %s", c.Of, c.Line)
		}
		if c.Modules < c.Of {
			return fmt.Sprintf("checkpointing the first %d of the %d modules called from %s", c.Modules, c.Of, c.Line)
		}
		return fmt.Sprintf("checkpointing the %s called from %s", units.Plural(c.Modules, "module"), c.Line)
	case change.NoGrad:
		return "running what " + value + " calls under torch.no_grad()"
	case change.Foreach:
		return "foreach=False for the optimizer"
	case change.InBackward:
		return "stepping the optimizer in backward"
	case change.Accumulate:
		return fmt.Sprintf("splitting each batch, if it has %s samples or more, into %s micro-batches", value, value)
	case change.EightBit:
		return "8-bit Adam"
	case change.Offload:
		if value == "optimizer" {
			return "keeping the optimizer's state on the CPU"
		}
		return "moving saved activations to the CPU"
	case change.DType:
		_, of, _ := strings.Cut(value, ":")
		if of == "optimizer" {
			of = "optimizer state"
		}
		return "16-bit " + of
	}
	return c.Change
}
