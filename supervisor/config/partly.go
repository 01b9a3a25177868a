package config

import (
	"slices"
	"strings"
)

// LoadPartly reads a configuration for a command that needs only its zookeeper part: faults elsewhere are returned beside the config. It
// has to be YAML.
func LoadPartly(name string) (*Config, Faults, error) {
	r := Read(name, "")
	if r.Config != nil {
		return r.Config, nil, nil
	}
	if c := r.zookeeper(); c != nil {
		if len(r.Faults) == 1 && r.Faults[0].Message == nothingToRun { // it is of a machine that only asks
			return c, nil, nil
		}
		return c, r.Faults, nil
	}
	return nil, nil, r.Err()
}

// zookeeper is a config of which the zookeeper part is right; nil: it is not.
func (r LoadResult) zookeeper() *Config {
	wrong := func(f Fault) bool { return f.Key == "zookeeper" || strings.HasPrefix(f.Key, "zookeeper.") }
	if r.loader == nil || slices.ContainsFunc(r.Faults, wrong) {
		return nil
	}
	return r.loader.doc.config()
}
