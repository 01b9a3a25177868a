package config

import "time"

// Fencing says how an old active node is made sure to be dead when nothing proves it.
type Fencing struct {
	Methods   []FenceMethod `yaml:"methods,omitempty" doc:"What is tried, in order. The first that succeeds is enough."`
	OnFailure OnFailure     `yaml:"on_failure" doc:"When every method failed. refuse: nobody starts until one succeeds or an operator confirms. grace: start after grace_delay."`
}

// FenceMethod is one step of the chain: one method, or several that are tried at the same time.
type FenceMethod struct {
	FenceOne `yaml:",inline"`
	Any      []FenceOne `yaml:"any,omitempty" oneof:"method" doc:"Methods that are tried at the same time. The first that succeeds is enough, and ends the others."`
}

// FenceOne is one method; exactly one field is set.
type FenceOne struct {
	Agent      *FenceAsk     `yaml:"agent,omitempty" oneof:"method" doc:"Ask the old node's own supervisor, or its guardians. Takes fencing.agent at the top of the file, on every node."`
	Exec       *FenceExec    `yaml:"exec,omitempty" oneof:"method" doc:"A command that ends with success once the old node is known to be dead."`
	SSH        *FenceSSH     `yaml:"ssh,omitempty" oneof:"method" doc:"Log in on the old node's host, and have 'understudy fence kill-local' kill the child there and prove it."`
	HTTP       *FenceHTTP    `yaml:"http,omitempty" oneof:"method" doc:"A request that is answered with a certain status once the old node is known to be dead."`
	FenceAgent *FenceProgram `yaml:"fence_agent,omitempty" oneof:"method" doc:"One of ClusterLabs' fence agents: switches the old node off, and looks whether it is off."`
}

// FenceAsk asks the agent that the breadcrumb names.
type FenceAsk struct {
	Timeout time.Duration `yaml:"timeout" doc:"How long it may take."`
}

// FenceExec runs a command that exits 0 once the target is known to be dead.
type FenceExec struct {
	Command Command           `yaml:"command,flow" doc:"The program and its arguments. It finds whom to fence in its environment."`
	Plugs   map[string]string `yaml:"plugs,omitempty" doc:"The nodes that it may fence, each with a word for it, which the command finds as UNDERSTUDY_TARGET_PLUG. A node that is not listed is not fenced by this method. Default: whichever node the breadcrumb names."`
	Timeout time.Duration     `yaml:"timeout" doc:"How long it may take."`
}

// FenceSSH runs `understudy fence kill-local` over ssh.
type FenceSSH struct {
	User       string            `yaml:"user" doc:"Whom to log in as."`
	KeyFile    string            `yaml:"key_file" doc:"The private key, without a passphrase. An absolute path."`
	KnownHosts string            `yaml:"known_hosts" doc:"The file of known host keys, as ssh has it. An absolute path. Another host is not talked to."`
	Address    string            `yaml:"address,omitempty" doc:"Where to log in, as host:port; {host}, {node} and the like are filled in. Default: {host}:22, by the name that the old node's host gives itself; with plugs {plug}:22."`
	Command    string            `yaml:"command,omitempty" doc:"What to run there; what it needs to know is appended. Default: understudy fence kill-local."`
	Plugs      map[string]string `yaml:"plugs,omitempty" doc:"The nodes that it may log in for, each with its host. A node that is not listed is not fenced by this method. Default: whichever node the breadcrumb names, on a host that known_hosts has."`
	Timeout    time.Duration     `yaml:"timeout" doc:"How long it may take."`
}

// FenceHTTP makes one request.
type FenceHTTP struct {
	URL        string            `yaml:"url" doc:"Where to; {node}, {plug}, {service}, {token} and the like are filled in, in headers and body too, each as a part of a host's name, one segment of the path, or a value of the query. In the host only what plugs lists is filled in."`
	Method     string            `yaml:"method,omitempty" doc:"The request's method. Default: POST."`
	Headers    map[string]string `yaml:"headers,omitempty" doc:"Header lines, by name."`
	Body       string            `yaml:"body,omitempty" doc:"What is sent."`
	Status     []int             `yaml:"status,flow,omitempty" doc:"Which statuses mean that the old node is dead. Default: 200 to 299."`
	BearerFile string            `yaml:"bearer_file,omitempty" doc:"The file that holds a bearer token, an absolute path."`
	CAFile     string            `yaml:"ca_file,omitempty" doc:"The certificates of who may have signed the server's, in PEM. An absolute path. Default: the system's."`
	Plugs      map[string]string `yaml:"plugs,omitempty" doc:"The nodes that it may fence, each with what {plug} is for it: a power controller, say. A node that is not listed is not fenced by this method. Default: whichever node the breadcrumb names, if none of it is in the URL's host."`
	Timeout    time.Duration     `yaml:"timeout" doc:"How long it may take."`
}

// FenceProgram runs a fence agent.
type FenceProgram struct {
	Command Command           `yaml:"command,flow" doc:"The fence agent and its arguments, as in fence_ipmilan."`
	Options map[string]string `yaml:"options,omitempty" doc:"Its options, by their names on its stdin; {node}, {plug} and the like are filled in for the nodes of plugs."`
	Secrets map[string]string `yaml:"secrets,omitempty" doc:"Options whose value is the only line of a file, by name, as in password: /etc/understudy/ipmi.secret. Absolute paths."`
	Plugs   map[string]string `yaml:"plugs,omitempty" doc:"The nodes that it may fence, each with what the fence agent calls its power outlet or machine. A node that is not listed is not fenced by this method. Default: whichever node the breadcrumb names, by that name."`
	Timeout time.Duration     `yaml:"timeout" doc:"How long switching off and looking may take together."`
}
