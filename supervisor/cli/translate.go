package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/config"
	"understudy/supervisor/ocf"
	"understudy/supervisor/service"
)

// services are a config's, with what only this node can add. keys is what this node and the agents that it asks know one another by.
func services(c *config.Config, once bool, keys *agent.Keys) []service.Conf {
	all, meta := make([]service.Conf, 0, len(c.Services)), agentsMeta(c)
	for _, name := range c.ServiceNames() {
		v := service.Conf{Service: c.Services[name].Members(name, inside.OwnBinary, meta), Name: name, Once: once}
		for _, m := range v.Fencing.Methods {
			v.Fence = append(v.Fence, step(m, keys))
		}
		all = append(all, v)
	}
	return all
}

// metaPatience is how long all agents together may take to say what they are: they delay the start of every service.
const metaPatience = 5 * time.Second

// knownMeta is what agents have said, by their files and when those changed: each is asked once.
var knownMeta sync.Map

// agentsMeta asks all resource agents of a config at once what they say of themselves. Nothing is known of one that does not answer, or is
// not installed here: then its start action fails, and says so.
func agentsMeta(c *config.Config) func(ocf.Resource) ocf.Meta {
	ctx, cancel := context.WithTimeout(context.Background(), metaPatience)
	defer cancel()
	type version struct {
		path    string
		changed time.Time
	}
	all := map[string]version{}
	var asked sync.WaitGroup
	for _, v := range c.Services {
		for _, p := range v.Processes {
			r := ocf.Resource{Agent: p.OCF}
			info, err := os.Stat(r.Path())
			if _, twice := all[p.OCF]; p.OCF == "" || twice || err != nil {
				continue
			}
			one := version{r.Path(), info.ModTime()}
			all[p.OCF] = one
			if _, known := knownMeta.Load(one); known {
				continue
			}
			asked.Go(func() {
				if meta, err := r.Meta(ctx); err == nil {
					knownMeta.Store(one, meta)
				}
			})
		}
	}
	asked.Wait()
	return func(r ocf.Resource) ocf.Meta {
		meta, _ := knownMeta.Load(all[r.Agent])
		m, _ := meta.(ocf.Meta)
		return m
	}
}

// step makes a step of the chain.
func step(m config.FenceMethod, keys *agent.Keys) fencing.Step {
	switch {
	case m.Agent != nil:
		return fencing.Step{Method: agent.Method{Keys: keys}, Timeout: m.Agent.Timeout}
	case m.Exec != nil:
		return fencing.Step{Method: fencing.Exec{Command: m.Exec.Command, Plugs: m.Exec.Plugs}, Timeout: m.Exec.Timeout}
	case m.SSH != nil:
		return fencing.Step{Timeout: m.SSH.Timeout, Method: fencing.SSH{
			User: m.SSH.User, KeyFile: m.SSH.KeyFile, KnownHosts: m.SSH.KnownHosts, Address: m.SSH.Address, Command: m.SSH.Command,
			Plugs: m.SSH.Plugs,
		}}
	case m.HTTP != nil:
		h := m.HTTP
		return fencing.Step{Timeout: h.Timeout, Method: fencing.HTTP{
			URL: h.URL, Method: h.Method, Headers: h.Headers, Body: h.Body, Status: h.Status, BearerFile: h.BearerFile, CAFile: h.CAFile,
			Plugs: h.Plugs,
		}}
	default:
		f := m.FenceAgent
		return fencing.Step{Timeout: f.Timeout, Method: fencing.FenceAgent{
			Command: f.Command, Options: f.Options, Secrets: f.Secrets, Plugs: f.Plugs,
		}}
	}
}

// listen makes what the supervisor has to know of its own agent, and fails where it could not work; nil without an agent.
func listen(c *config.Config, log hclog.Logger) (*supervisor.Agent, error) {
	a := c.Fencing.Agent
	if a == nil {
		return nil, nil
	}
	keys := agent.KeysIn(a.SecretFile, func(err error) {
		log.Error("cannot read the agent's secret, keeping the previous one", "error", err)
	})
	if _, err := keys.Secrets(); err != nil {
		message := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			message += fmt.Sprintf(" (openssl rand -hex 32 > %s makes one, for all nodes)", a.SecretFile)
		}
		return nil, config.Faults{{Key: "fencing.agent.secret_file", Message: message}}
	}
	return &supervisor.Agent{Listen: a.Listen, Advertise: a.Advertise, Keys: keys}, nil
}
