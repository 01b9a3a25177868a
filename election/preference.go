package election

import (
	"context"
	"fmt"
	"strconv"
)

// preference is our znode among the preferred.
type preference struct {
	s    *Session
	dir  string
	path string // "": there is none
}

// set announces a priority, 0 for none.
func (p *preference) set(ctx context.Context, priority int) error {
	path := ""
	if priority > 0 {
		path = p.dir + "/" + strconv.Itoa(priority) + "-" + p.s.cfg.Node.Node
	}
	if p.path != "" && p.path != path {
		if err := p.s.delete(ctx, p.path); err != nil {
			return fmt.Errorf("take the preference back: %w", err)
		}
		p.path = ""
	}
	if path == "" {
		return nil
	}
	p.path = path // from now on it may exist
	return wrap("write the preference", p.s.own(ctx, path, nil))
}
