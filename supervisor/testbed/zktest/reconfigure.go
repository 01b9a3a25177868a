package zktest

import "slices"

// Reconfigure adds lines to the zoo.cfg of server i, of which each counts instead of an earlier one of the same key, from the server's
// next start on.
func (e *Ensemble) Reconfigure(i int, lines ...string) error {
	cfg := e.cfg
	cfg.ExtraLines = slices.Concat(cfg.ExtraLines, lines)
	return cfg.write(e.servers[i], e.servers)
}
