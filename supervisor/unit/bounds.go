package unit

import (
	"understudy/supervisor/child/box"
	"understudy/supervisor/config"
)

func bounds(g config.Program) box.Bounds {
	all := g.Bounds()
	return box.Bounds{Memory: all["memory"], CPU: all["cpu"], Tasks: all["tasks"]}
}

// Unbounded is why this supervisor cannot have the limits of memory, cpu and tasks of a service hold; nil: it can, as far as is known.
// Wherever: another supervisor on this machine could not either, as one that is in a unit.
func Unbounded(s config.Service, wherever bool) error {
	for _, p := range s.Processes {
		b := bounds(p.Program)
		if b == (box.Bounds{}) {
			continue
		}
		err := b.Impossible()
		if err == nil && !wherever {
			err = b.LacksHere()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
