package config

import "time"

// Notify is how people are told what happens to the services of the cluster.
type Notify struct {
	Exec    Command       `yaml:"exec,flow,omitempty" oneof:"way" doc:"A command, which has the text in UNDERSTUDY_TEXT, and all of it as JSON in UNDERSTUDY_NOTICE. It has to end with success."`
	HTTP    string        `yaml:"http,omitempty" oneof:"way" doc:"A URL, which gets the JSON as a POST. It has to answer with a status from 200 to 299."`
	Timeout time.Duration `yaml:"timeout" doc:"How long that may take."`
}

const longestNotice = 20 * time.Second

func (n *Notify) setDefaults() { n.Timeout = 10 * time.Second }

func (n Notify) check(p place) {
	n.Exec.checkGiven(p.key("exec"))
	checkURL(p.key("http"), n.HTTP)
	if timeout := p.key("timeout"); checkPositive(timeout, n.Timeout) && n.Timeout > longestNotice {
		timeout.fault("may be %v at most", longestNotice)
	}
	if len(n.Exec) == 0 && n.HTTP == "" {
		p.fault("says no way: add exec: or http:")
	}
}

// Lacks is why people could not be told by this machine; nil: nothing is known to be missing.
func (n Notify) Lacks() error { return missing(n.Exec, Program{}) }
