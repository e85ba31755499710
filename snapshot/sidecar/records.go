package sidecar

import (
	"fmt"
	"maps"
	"math"
)

// decoder turns records into the runs of a File.
type decoder struct {
	c     *cursor
	runs  []Run
	names map[int64][]string // of the last run, by id
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
	if len(d.runs) == 0 && kind != "header" {
		c.fail("stands before any header")
		return c.err
	}
	var time int64
	rest := func(field func(key string) bool) error {
		c.pairs(n-1, func(key string) bool {
			if key == "time" {
				time = c.int()
				return true
			}
			return field(key)
		})
		return c.err
	}
	if kind == "header" {
		r := Run{}
		if err := rest(func(key string) bool { return c.header(key, &r.Header) }); err != nil {
			return err
		}
		r.Time = time
		if msg := r.Header.wrong(); msg != "" {
			return &FormatError{Offset: offset, Msg: msg, Err: ErrNotSidecar}
		}
		d.runs, d.names = append(d.runs, r), map[int64][]string{}
		return nil
	}
	run := &d.runs[len(d.runs)-1]
	switch kind {
	case "env":
		env := map[string]any{}
		err := rest(func(key string) bool { return key == "env" && c.env(env) })
		if err == nil && run.Env == nil {
			run.Env = env
		} else if err == nil {
			maps.Copy(run.Env, env)
		}
		return err
	case "names":
		var id *int64
		var names []string
		err := rest(func(key string) bool {
			switch key {
			case "id":
				id = c.opt()
			case "names":
				names = c.strings()
			default:
				return false
			}
			return true
		})
		if err == nil && id != nil {
			d.names[*id] = names
		}
		return err
	case "sample":
		var s Sample
		err := rest(func(key string) bool { return c.sample(key, &s, d.names) })
		s.Time = time
		return appended(&run.Samples, s, err)
	case "holders":
		h := &Holders{}
		err := rest(func(key string) bool { return c.holders(key, h) })
		h.Time = time
		if err == nil {
			if msg := h.complete(); msg != "" {
				c.fail(msg)
				err = c.err
			}
		}
		return appended(&run.Holders, h, err)
	case "oom":
		var o OOM
		err := rest(func(key string) bool {
			return c.optional(key, field{"device", &o.Device}, field{"requested", &o.Requested}, field{"total", &o.Total},
				field{"free", &o.Free}, field{"step", &o.Step})
		})
		o.Time = time
		return appended(&run.OOMs, o, err)
	case "snapshot":
		var s Dump
		err := rest(func(key string) bool {
			switch key {
			case "file":
				s.File = c.str()
			case "devices":
				s.Devices = []DeviceMemory{}
				c.maps(func() {
					var m DeviceMemory
					c.fields(func(key string) bool {
						return c.optional(key, field{"device", &m.Device}, field{"free", &m.Free}, field{"total", &m.Total})
					})
					s.Devices = append(s.Devices, m)
				})
			default:
				return c.optional(key, field{"bytes", &s.Bytes}, field{"holders", &s.Holders})
			}
			return true
		})
		s.Time = time
		return appended(&run.Snapshots, s, err)
	case "nvml":
		var r Reading
		err := rest(func(key string) bool { return c.nvml(key, &r.NVML) })
		r.Time = time
		return appended(&run.NVML, r, err)
	case "fault":
		var f Fault
		err := rest(func(key string) bool {
			switch key {
			case "where":
				f.Where = c.str()
			case "what":
				f.What = c.str()
			default:
				return c.optional(key, field{"count", &f.Count})
			}
			return true
		})
		f.Time = time
		return appended(&run.Faults, f, err)
	case "end":
		var e End
		err := rest(func(key string) bool {
			if key == "reason" {
				e.Reason = c.str()
				return true
			}
			return c.optional(key, field{"steps", &e.Steps})
		})
		e.Time = time
		if err == nil {
			run.End = &e
		}
		return err
	}
	c.count()
	return nil
}

func appended[T any](list *[]T, v T, err error) error {
	if err == nil {
		*list = append(*list, v)
	}
	return err
}

// field is an optional number and its key.
type field struct {
	key string
	to  **int64
}

// optional reads the number of that key, if it is one of the fields.
func (c *cursor) optional(key string, fields ...field) bool {
	for _, f := range fields {
		if f.key == key {
			*f.to = c.opt()
			return true
		}
	}
	return false
}

func (c *cursor) header(key string, h *Header) bool {
	switch key {
	case "format":
		h.Format = c.str()
	case "version":
		h.Version = c.int()
	case "producer":
		h.Producer = c.str()
	case "producer_version":
		h.ProducerVersion = c.str()
	case "run":
		h.Run = c.str()
	case "boot":
		h.Boot = c.str()
	case "program":
		h.Program = c.str()
	default:
		return c.optional(key, field{"pid", &h.PID}, field{"host_pid", &h.HostPID}, field{"started", &h.Started},
			field{"rank", &h.Rank}, field{"world_size", &h.WorldSize}, field{"local_rank", &h.LocalRank})
	}
	return true
}

// wrong says why what follows a header cannot be read.
func (h *Header) wrong() string {
	switch {
	case h.Format != Format:
		return fmt.Sprintf("the header names the format %.40q, not %q", h.Format, Format)
	case h.Version < 1:
		return "the header has no version"
	case h.Version > Version:
		return fmt.Sprintf("written in version %d of the format; this snapana reads version %d: use a newer one", h.Version, Version)
	}
	return ""
}

func (c *cursor) env(env map[string]any) bool {
	c.fields(func(key string) bool {
		v, ok := c.scalar()
		if ok {
			env[key] = v
		}
		return ok
	})
	return true
}

func (c *cursor) sample(key string, s *Sample, names map[int64][]string) bool {
	switch key {
	case "label":
		s.Label = c.str()
	case "devices":
		s.Devices = []DeviceSample{}
		c.maps(func() { s.Devices = append(s.Devices, c.deviceSample(names)) })
	case "host":
		s.Host = &Host{}
		h := s.Host
		c.fields(func(key string) bool {
			return c.optional(key, field{"rss", &h.RSS}, field{"hwm", &h.HWM}, field{"swap", &h.Swap}, field{"threads", &h.Threads},
				field{"fds", &h.FDs}, field{"available", &h.Available}, field{"ram", &h.RAM}, field{"swap_free", &h.SwapFree},
				field{"swap_total", &h.SwapTotal}, field{"pinned", &h.Pinned}, field{"cgroup", &h.Cgroup}, field{"shm", &h.Shm})
		})
	case "tensors":
		s.Tensors = &TensorCounts{}
		t := s.Tensors
		c.fields(func(key string) bool {
			return c.optional(key, field{"cpu_count", &t.CPUCount}, field{"cpu_bytes", &t.CPUBytes},
				field{"device_count", &t.DeviceCount}, field{"device_bytes", &t.DeviceBytes}, field{"objects", &t.Objects})
		})
	case "children":
		s.Children = []Child{}
		c.maps(func() { s.Children = append(s.Children, c.child()) })
	default:
		return c.optional(key, field{"step", &s.Step}, field{"epoch", &s.Epoch}, field{"every", &s.Every})
	}
	return true
}

func (c *cursor) deviceSample(names map[int64][]string) DeviceSample {
	var s DeviceSample
	var id *int64
	c.fields(func(key string) bool {
		if key == "stats" {
			s.Stats.Values = c.ints()
			return true
		}
		return c.optional(key, field{"device", &s.Device}, field{"names", &id}, field{"free", &s.Free}, field{"total", &s.Total})
	})
	if s.Stats.Values == nil {
		return s
	}
	if id != nil {
		s.Stats.Names = names[*id]
	}
	if len(s.Stats.Names) != len(s.Stats.Values) {
		c.fail(fmt.Sprintf("%d statistics, but %d names for them", len(s.Stats.Values), len(s.Stats.Names)))
	}
	return s
}

func (c *cursor) child() Child {
	var p Child
	c.fields(func(key string) bool {
		switch key {
		case "name":
			p.Name = c.str()
		case "state":
			p.State = c.str()
		default:
			return c.optional(key, field{"pid", &p.PID}, field{"ppid", &p.PPID}, field{"rss", &p.RSS}, field{"pss", &p.PSS}, field{"host_pid", &p.HostPID})
		}
		return true
	})
	return p
}

func (c *cursor) holders(key string, h *Holders) bool {
	ids := func() []StringID { return column[StringID](c, 0, math.MaxUint32) }
	rows := func() []uint32 { return column[uint32](c, 0, math.MaxUint32) }
	switch key {
	case "reason":
		h.Reason = c.str()
	case "strings":
		h.Strings = c.strings()
	case "notes":
		h.Notes = c.strings()
	case "dropped":
		h.Dropped = map[string]int64{}
		c.fields(func(key string) bool { h.Dropped[key] = c.int(); return true })
	case "storages":
		c.fields(func(key string) bool {
			switch key {
			case "device":
				h.Storages.Device = column[int32](c, -1, math.MaxInt32)
			case "address":
				h.Storages.Address = c.addresses()
			case "bytes":
				h.Storages.Bytes = column[int64](c, 0, math.MaxInt64)
			default:
				return false
			}
			return true
		})
	case "tensors":
		c.fields(func(key string) bool {
			switch key {
			case "node":
				h.Tensors.Node = rows()
			case "storage":
				h.Tensors.Storage = rows()
			case "shape":
				h.Tensors.Shape = ids()
			case "dtype":
				h.Tensors.DType = ids()
			case "flags":
				h.Tensors.Flags = column[TensorFlags](c, 0, math.MaxUint8)
			case "offset":
				h.Tensors.Offset = column[int64](c, 0, math.MaxInt64)
			default:
				return false
			}
			return true
		})
	case "nodes":
		c.fields(func(key string) bool {
			switch key {
			case "kind":
				h.Nodes.Kind = ids()
			case "type":
				h.Nodes.Type = ids()
			case "name":
				h.Nodes.Name = ids()
			case "file":
				h.Nodes.File = ids()
			case "line":
				h.Nodes.Line = column[int32](c, 0, math.MaxInt32)
			case "root":
				h.Nodes.Root = ids()
			case "cycle":
				h.Nodes.Cycle = column[int64](c, 0, math.MaxInt64)
			default:
				return false
			}
			return true
		})
	case "edges":
		c.fields(func(key string) bool {
			switch key {
			case "from":
				h.Edges.From = rows()
			case "to":
				h.Edges.To = rows()
			case "kind":
				h.Edges.Kind = ids()
			case "label":
				h.Edges.Label = ids()
			default:
				return false
			}
			return true
		})
	case "bounds":
		c.fields(func(key string) bool {
			switch key {
			case "node":
				h.Bounds.Node = rows()
			case "length":
				h.Bounds.Length = column[int64](c, 0, math.MaxInt64)
			case "limit":
				h.Bounds.Limit = column[int64](c, 0, math.MaxInt64)
			case "hint":
				h.Bounds.Hint = ids()
			default:
				return false
			}
			return true
		})
	default:
		return c.optional(key, field{"id", &h.ID}, field{"step", &h.Step}, field{"duration", &h.Duration},
			field{"objects", &h.Objects}, field{"collected", &h.Collected})
	}
	return true
}
