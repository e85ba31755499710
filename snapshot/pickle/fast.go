package pickle

type runCache struct{}

func (c *runCache) reset() {}

func (l *loop) fastEvent() bool { return false }
func (l *loop) fastStack() bool { return false }
