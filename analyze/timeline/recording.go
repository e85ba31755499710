package timeline

// Recording says what the trace lacks, and how far that leaves the figures certain. Since 2.11
// _record_memory_history takes skip_actions, which leaves kinds of events out of the trace, and nothing in the file
// tells (SPEC.md 3.3). Traces of older writers lack nothing but what a ring lost that was resized.
type Recording struct {
	// Unseen are the kinds that matter here and of which the trace has no event: none happened, or they were
	// left out. Partly are those that it has, and may lack for a part of the time. Skipped are kinds of either that
	// did happen and are not in the trace, as other events or the final state show.
	Unseen  Kinds `json:"unseen"`
	Partly  Kinds `json:"partly"`
	Skipped Kinds `json:"skipped"`
	// Peak bounds the highest values of the series, Start those before the first event. The final ones are the
	// dump's own, thus exact.
	Peak  Bounds `json:"peak"`
	Start Bounds `json:"start"`
	// Resized says that max_entries was changed while recording: events are missing, or may be.
	Resized bool `json:"resized"`
	// Inferred says that the trace begins with memory in use or cached. All of it is taken to be older than the
	// first event, and a block of it that is freed to have taken what its request rounds to: a trace whose ring was
	// resized, or whose skip_actions changed, may hide that some of it is younger (SPEC.md 4.4). What is exact is so
	// but for that.
	Inferred bool `json:"inferred"`
	// Failures bounds the number of requests that failed.
	Failures Bound `json:"failures"`
	// Retries bounds the number of requests that made the allocator give up its cache.
	Retries Bound `json:"retries"`

	torn bool // the file contradicts itself
}

// Told is what a text says of it. A bound is worth a word where events are missing for certain, or the file contradicts
// itself; where that is a mere possibility, figures stand as they are.
func (r *Recording) Told() Recording {
	if r.LeftOut() != 0 || r.torn {
		return *r
	}
	told := *r
	told.Peak, told.Start, told.Failures, told.Retries = Bounds{}, Bounds{}, Exact, Exact
	return told
}

// At are the bounds of the series right after an event; -1 is the start. The last event is no exception: what was left
// out may have come after it, so that the state of the dump is another one.
func (r *Recording) At(event int) Bounds {
	b := r.Start
	if event >= 0 {
		b.add(&r.Peak)
	}
	return b
}

// BlocksUnknown reports whether the lives of blocks are unknown for certain: births or ends were left out, and
// cannot be rebuilt from the rest.
func (r *Recording) BlocksUnknown() bool {
	return r.Peak.Active == Unknown && r.Skipped.Has(Allocs|Frees)
}

// LeftOut are the kinds that happened for certain, are not in the trace, and leave figures of memory uncertain.
func (r *Recording) LeftOut() Kinds {
	if r.Peak.Exact() {
		return 0
	}
	return r.Skipped
}

// Add takes in what is said of another device, so that both hold for all of them.
func (r *Recording) Add(o *Recording) {
	r.Unseen |= o.Unseen
	r.Partly |= o.Partly
	r.Skipped |= o.Skipped
	r.torn = r.torn || o.torn
	r.Resized = r.Resized || o.Resized
	r.Inferred = r.Inferred || o.Inferred
	r.Peak.add(&o.Peak)
	r.Start.add(&o.Start)
	r.Failures, r.Retries = r.Failures.And(o.Failures), r.Retries.And(o.Retries)
}
