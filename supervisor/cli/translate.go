package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/config"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/ocf"
	"understudy/supervisor/service"
)

// services are a config's, with what only this node can add. keys is what this node and the agents that it asks know one another by.
func services(c *config.Config, once bool, keys *agent.Keys) []service.Conf {
	all := make([]service.Conf, 0, len(c.Services))
	for _, name := range c.ServiceNames() {
		v := service.Conf{Service: c.Services[name].Members(name, inside.OwnBinary, agentMeta), Name: name, Once: once}
		for _, m := range v.Fencing.Methods {
			v.Fence = append(v.Fence, step(m, keys))
		}
		all = append(all, v)
	}
	return all
}

// agentMeta is what a resource agent says of itself; nothing, if it is not installed here: then its start action fails, and says so.
func agentMeta(r ocf.Resource) ocf.Meta {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	meta, _ := r.Meta(ctx)
	return meta
}

// step makes a step of the chain.
func step(m config.FenceMethod, keys *agent.Keys) fencing.Step {
	if len(m.Any) == 0 {
		return method(m.FenceOne, keys)
	}
	var s fencing.Step
	for _, one := range m.Any {
		s.Any = append(s.Any, method(one, keys))
	}
	return s
}

func method(m config.FenceOne, keys *agent.Keys) fencing.Step {
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
	files := agent.KeyFiles{Secret: a.SecretFile, TLS: (*keyfile.TLS)(a.TLS)}
	keys := files.Keys(func(err error) {
		log.Error("cannot read the agent's keys, keeping the previous ones", "error", err)
	})
	if err := keys.Check(); err != nil {
		key := "fencing.agent.secret_file"
		if a.SecretFile == "" {
			key = "fencing.agent.tls"
		}
		message := err.Error()
		if errors.Is(err, fs.ErrNotExist) && a.SecretFile != "" {
			message += fmt.Sprintf(" (openssl rand -hex 32 > %s makes one, for all nodes)", a.SecretFile)
		}
		return nil, config.Faults{{Key: key, Message: message}}
	}
	return &supervisor.Agent{Listen: a.Listen, Advertise: a.Advertise, Keys: keys, Files: files}, nil
}
