package finding

// Shape is how a series runs: the shapes are those of package counters.
type Shape string

// Trend is the run of one counter of memory_stats, or of another series of samples: of bytes, or of a count
// where its name is that of one.
type Trend struct {
	Name  string `json:"name"`
	Shape Shape  `json:"shape"`
	// First, Last, Low and High are values of the points; Precision is how exact they are.
	First     int64 `json:"first"`
	Last      int64 `json:"last"`
	Low       int64 `json:"low"`
	High      int64 `json:"high"`
	Precision int64 `json:"precision"`

	*Rise `json:"growth,omitempty"` // nil unless it grows
}

// Rise is how fast a series grows, in bytes (or counts) for each Unit: "step", "sample" or "epoch".
type Rise struct {
	Unit      string  `json:"unit"`
	Slope     float64 `json:"slope"`
	From95    float64 `json:"slope_low"` // the 95% interval of Slope
	To95      float64 `json:"slope_high"`
	P         float64 `json:"p"`    // the chance of such a rise without a trend
	Kept      int64   `json:"kept"` // added from From on and never given back
	From      int64   `json:"from"` // a place along the unit
	To        int64   `json:"to"`
	Windows   int     `json:"windows"`
	Late      bool    `json:"late"`            // it began after a time without
	GivenBack int64   `json:"given_back"`      // the deepest fall of the windows
	PerEpoch  float64 `json:"slope_per_epoch"` // 0 unknown
}

// PerUnit is Slope in whole bytes (or counts).
func (r *Rise) PerUnit() int64 { return int64(r.Slope + 0.5) }

// Grows reports whether a trend is one of growth; nil is not.
func (t *Trend) Grows() bool { return t != nil && t.Rise != nil }

// Trends are those of several series.
type Trends []Trend

// Of is the trend of a series, nil when it has none.
func (all Trends) Of(name string) *Trend {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// Incidents are what happened to the counters of a series.
type Incidents struct {
	Restarts    int   `json:"restarts"`     // how often the program began again; only the last run is kept
	PeakResets  int   `json:"peak_resets"`  // falls of peaks: reset_peak_memory_stats was called
	SumResets   int   `json:"sum_resets"`   // of accumulated counters: reset_accumulated_memory_stats
	ResetBefore bool  `json:"reset_before"` // these had been reset before the first sample
	NewRetries  int64 `json:"new_retries"`  // how far the counter rose between the first sample and the last
	NewOOMs     int64 `json:"new_ooms"`
}
