package sidecar

func (c *cursor) nvml(key string, r *NVML) bool {
	switch key {
	case "driver":
		r.Driver = c.str()
	case "nvml":
		r.NVML = c.str()
	case "cuda":
		r.CUDA = c.str()
	case "boot":
		r.Boot = c.str()
	case "devices":
		r.Devices = []GPU{}
		c.maps(func() { r.Devices = append(r.Devices, c.gpu()) })
	case "errors":
		r.Errors = c.failed()
	default:
		return c.optional(key, field{"duration", &r.Duration})
	}
	return true
}

func (c *cursor) gpu() GPU {
	var g GPU
	c.fields(func(key string) bool {
		switch key {
		case "uuid":
			g.UUID = c.str()
		case "name":
			g.Name = c.str()
		case "bus":
			g.Bus = c.str()
		case "mig":
			g.MIG = c.bool()
		case "instances":
			g.Instances = []MIGInstance{}
			c.maps(func() { g.Instances = append(g.Instances, c.instance()) })
		case "processes":
			g.Processes = []GPUProcess{}
			c.maps(func() { g.Processes = append(g.Processes, c.process()) })
		case "accounting":
			g.Accounting = []Accounted{}
			c.maps(func() { g.Accounting = append(g.Accounting, c.accounted()) })
		case "errors":
			g.Errors = c.failed()
		default:
			return c.optional(key, field{"index", &g.Index}, field{"total", &g.Total}, field{"reserved", &g.Reserved}, field{"used", &g.Used},
				field{"free", &g.Free}, field{"retired_pages", &g.Retired}, field{"ecc_errors", &g.ECCErrors})
		}
		return true
	})
	return g
}

func (c *cursor) instance() MIGInstance {
	var m MIGInstance
	c.fields(func(key string) bool {
		switch key {
		case "uuid":
			m.UUID = c.str()
		case "name":
			m.Name = c.str()
		default:
			return c.optional(key, field{"gpu_instance", &m.GPUInstance}, field{"compute_instance", &m.ComputeInstance},
				field{"total", &m.Total}, field{"reserved", &m.Reserved}, field{"used", &m.Used}, field{"free", &m.Free})
		}
		return true
	})
	return m
}

func (c *cursor) process() GPUProcess {
	var p GPUProcess
	c.fields(func(key string) bool {
		switch key {
		case "pid":
			p.PID = c.int()
		case "kind":
			p.Kind = c.str()
		case "name":
			p.Name = c.str()
		case "user":
			p.User = c.str()
		case "state":
			p.State = c.str()
		case "namespaces":
			p.Namespaces = c.ints()
		case "parents":
			p.Parents = c.ints()
		default:
			return c.optional(key, field{"used", &p.Used}, field{"ppid", &p.PPID}, field{"started", &p.Started},
				field{"gpu_instance", &p.GPUInstance}, field{"compute_instance", &p.ComputeInstance})
		}
		return true
	})
	return p
}

func (c *cursor) accounted() Accounted {
	var a Accounted
	c.fields(func(key string) bool {
		switch key {
		case "pid":
			a.PID = c.int()
		case "running":
			a.Running = c.bool()
		default:
			return c.optional(key, field{"max_used", &a.MaxUsed})
		}
		return true
	})
	return a
}

func (c *cursor) failed() []Failed {
	out := []Failed{}
	c.maps(func() {
		var f Failed
		c.fields(func(key string) bool {
			switch key {
			case "what":
				f.What = c.str()
			case "why":
				f.Why = c.str()
			default:
				return false
			}
			return true
		})
		out = append(out, f)
	})
	return out
}
