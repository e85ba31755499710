package sidecar

import "maps"

// decoder turns records into the runs of a File.
type decoder struct {
	c    *cursor
	runs []Run
}

// record decodes one complete record. When it fails, it has changed nothing but the counts of
// what is unknown.
func (d *decoder) record(frame []byte, offset int64) error {
	c := d.c
	c.reset(frame, offset)
	n := c.mapLen()
	if n == 0 || c.str() != "type" {
		c.fail("a record does not begin with its type")
	}
	kind := c.str()
	if c.err != nil {
		return c.err
	}
	c.path = append(c.path, kind)
	n-- // the type
	if kind == "header" {
		var r Run
		if c.record(&r, n); c.err != nil {
			return c.err
		}
		if msg := r.Header.wrong(); msg != "" {
			return &FormatError{Offset: offset, Msg: msg, Err: ErrNotSidecar}
		}
		d.runs, c.names = append(d.runs, r), map[int64][]string{}
		return nil
	}
	if len(d.runs) == 0 {
		c.fail("comes before any header")
		return c.err
	}
	switch run := &d.runs[len(d.runs)-1]; kind {
	case "env":
		var e envRecord
		if c.record(&e, n); c.err != nil {
			break
		}
		if run.Env == nil {
			run.Env = map[string]any{}
		}
		maps.Copy(run.Env, e.Env)
	case "names":
		var names namesRecord
		if c.record(&names, n); c.err == nil && names.ID != nil {
			c.names[*names.ID] = names.Names
		}
	case "sample":
		appended(c, &run.Samples, n)
	case "holders":
		var h Holders
		if c.record(&h, n); c.err == nil {
			run.Holders = append(run.Holders, &h)
		}
	case "oom":
		appended(c, &run.OOMs, n)
	case "snapshot":
		appended(c, &run.Snapshots, n)
	case "nvml":
		appended(c, &run.NVML, n)
	case "fault":
		appended(c, &run.Faults, n)
	case "end":
		var e End
		if c.record(&e, n); c.err == nil {
			run.End = &e
		}
	default:
		c.count()
	}
	return c.err
}

// envRecord adds to a run's Env.
type envRecord struct {
	Time int64          `msgpack:"time"`
	Env  map[string]any `msgpack:"env"`
}

// namesRecord are the names of later statistics.
type namesRecord struct {
	Time  int64    `msgpack:"time"`
	ID    *int64   `msgpack:"id"`
	Names []string `msgpack:"names"`
}

// appended decodes a record of n pairs into a new last item of the list.
func appended[T any](c *cursor, list *[]T, n int) {
	var v T
	if c.record(&v, n); c.err == nil {
		*list = append(*list, v)
	}
}
