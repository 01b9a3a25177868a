package config

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"understudy/supervisor/address"
	"understudy/supervisor/ocf"
	"understudy/supervisor/safefile"
)

// member looks at what a member that is no program needs.
func (s *machineCheck) member(p path, process Process, first bool) {
	if process.Mount != nil && first && !s.dangers {
		if err := process.Mount.mount().Fit(); err != nil {
			s.warn(p.key("mount"), err.Error())
		}
	}
	if process.Address != nil {
		s.address(p.key("address"), *process.Address)
	}
	if process.OCF != "" {
		s.agentOf(p, process)
	}
}

func (s *machineCheck) addresses(p path, list Addresses) {
	for i, a := range list {
		at := p.item(i)
		if !s.loader.given(at) {
			at = p // it is the only one
		}
		s.address(at, a)
	}
}

func (s *machineCheck) address(p path, a Address) {
	if s.dangers {
		return
	}
	if right := address.MissingRights(); right != "" {
		s.warn(p, "setting and announcing an address requires CAP_NET_ADMIN and CAP_NET_RAW: this process lacks "+right)
	}
	ours := address.Address{Prefix: a.IP.Prefix(), Device: a.Device}
	if err := ours.Lacks(); err != nil {
		s.warn(p, err.Error())
	}
	if set := ours.Beside(); set.IsValid() {
		s.warn(p, set.String()+" is set on this host, and stays there when the service moves: remove it")
	}
}

// metaPatience is how long an agent may take to say what it is.
const metaPatience = 5 * time.Second

func (s *machineCheck) agentOf(p path, process Process) {
	r := ocf.Resource{Agent: process.OCF, Name: ocf.Instance(p[1], process.Name)} // p is services.NAME...
	if _, err := os.Stat(r.Path()); err != nil {
		s.warn(p.key("ocf"), reason(err).Error()+": "+r.Path())
		return
	}
	s.executables(p.key("ocf"), Command{r.Path()}, Program{}, true)
	s.inline(p.key("params"), process.Params)
	if s.dangers || os.Geteuid() == 0 && safefile.Own(r.Path(), safefile.Command) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), metaPatience)
	defer cancel()
	meta, err := r.Meta(ctx)
	if err != nil {
		s.warn(p.key("ocf"), err.Error())
		return
	}
	known := len(s.found)
	for _, param := range slices.Sorted(maps.Keys(process.Params)) {
		if !slices.Contains(meta.Params, param) {
			s.warn(p.key("params").key(param), process.OCF+" has no such parameter"+DidYouMean(param, meta.Params))
		}
	}
	for _, param := range meta.Required {
		if _, given := process.Params[param]; !given {
			s.warn(p.key("params"), process.OCF+" requires the parameter "+param)
		}
	}
	if len(s.found) > known || os.Geteuid() != 0 { // an agent is root's
		return
	}
	r.Params = process.Params
	if err := r.Validate(ctx); err != nil {
		s.warn(p.key("params"), err.Error())
	}
}
