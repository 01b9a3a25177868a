package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/printable"
)

// clusterFlags say which cluster a command is about.
type clusterFlags struct {
	ZK, Root, Config string
	set              *pflag.FlagSet
	warned           bool // of errors in the config
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.ZK, "zk", os.Getenv("UNDERSTUDY_ZK"), "ZooKeeper `servers`, host:port, comma-separated (env UNDERSTUDY_ZK)")
	cmd.Flags().StringVar(&f.Root, "root", "", "`path` in ZooKeeper that holds all data (default /understudy)")
	cmd.Flags().StringVar(&f.Config, "config", "", "take servers, root and credentials from a config `file`")
	f.set = cmd.Flags()
}

// given tells whether the servers were named on the command line, and not by the environment.
func (f *clusterFlags) given() bool {
	return f.ZK != "" && (f.set == nil || f.set.Changed("zk"))
}

// load reads the config that the flags name, or makes one of them.
func (f *clusterFlags) load() (*config.Config, error) {
	c := config.Default()
	if f.Config != "" {
		loaded, ignored, err := config.LoadPartly(f.Config)
		if err != nil {
			return nil, usageError{err}
		}
		if len(ignored) > 0 && !f.warned {
			f.warned = true
			fmt.Fprintf(os.Stderr, "understudy: warning: %s has %s, and only its zookeeper part is used: %s\n",
				f.Config, count(len(ignored), "error"), printable.Text(ignored[0].String()))
		}
		c = loaded
	}
	return c, f.apply(c)
}

// apply puts the flags over what a file says.
func (f *clusterFlags) apply(c *config.Config) error {
	if f.ZK != "" && (f.Config == "" || f.given()) {
		servers, err := config.ParseServers(f.ZK)
		if err != nil {
			return usage("%s: %w", f.source(), err)
		}
		c.ZooKeeper.Servers = servers
	}
	if f.Root != "" {
		if !path.IsAbs(f.Root) || path.Clean(f.Root) != f.Root || f.Root == "/" {
			like := path.Join("/", cmp.Or(strings.Trim(f.Root, "/"), "understudy"))
			return usage("--root: %q is no path in ZooKeeper: write one such as %s", f.Root, like)
		}
		c.ZooKeeper.Root = f.Root
	}
	if len(c.ZooKeeper.Servers) == 0 {
		return usage("--zk is missing: give host:port[,host:port...], set UNDERSTUDY_ZK, or name a file with --config%s", absent())
	}
	return nil
}

// absent explains why the default file was not taken.
func absent() string {
	if absentFile(config.DefaultFile) {
		return " (" + config.DefaultFile + " does not exist)"
	}
	return ""
}

func absentFile(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// cluster is a config that says how to reach the cluster: of the flags, or where they say nothing of the default file.
func (f *clusterFlags) cluster() (*config.Config, error) {
	from := *f
	if f.ZK == "" && f.Config == "" {
		if _, err := os.Stat(config.DefaultFile); !errors.Is(err, fs.ErrNotExist) {
			from.Config = config.DefaultFile
		}
	}
	return from.load()
}

// election makes of the flags what is needed to talk to the cluster.
func (f *clusterFlags) election() (election.Config, error) {
	c, err := f.cluster()
	if err != nil {
		return election.Config{}, err
	}
	auth, err := credentials(c)
	if err == nil {
		err = unsecured(c)
	}
	if errors.Is(err, fs.ErrPermission) {
		return election.Config{}, usage("%w: run this as root, or as the user of the supervisor", err)
	} else if err != nil {
		return election.Config{}, usageError{err}
	}
	return client(c, auth), nil
}

// client is how the cluster is reached by those who stand for no election.
func client(c *config.Config, auth *election.Auth) election.Config {
	return election.Config{
		Servers: servers(c), Root: c.ZooKeeper.Root, Lease: max(c.ZooKeeper.Lease, time.Second), Auth: auth,
		TLS: secured(c), Logger: hclog.NewNullLogger(),
	}
}

func servers(c *config.Config) []string {
	list := make([]string, 0, len(c.ZooKeeper.Servers))
	for _, s := range c.ZooKeeper.Servers {
		list = append(list, string(s))
	}
	return list
}

// secured is how the servers are spoken to.
func secured(c *config.Config) *keyfile.TLS {
	if c.ZooKeeper.TLS == nil {
		return nil
	}
	t := keyfile.TLS(*c.ZooKeeper.TLS)
	return &t
}

// unsecured is why the servers cannot be spoken to so.
func unsecured(c *config.Config) error {
	if t := secured(c); t != nil {
		if _, err := t.Config(); err != nil {
			return fmt.Errorf("zookeeper.tls: %w", err)
		}
	}
	return nil
}

// credentials reads the secret that the config names.
func credentials(c *config.Config) (*election.Auth, error) {
	if c.ZooKeeper.Auth == nil {
		return nil, nil
	}
	auth, err := election.ReadAuth(c.ZooKeeper.Auth.Scheme, c.ZooKeeper.Auth.File)
	if err != nil {
		return nil, fmt.Errorf("zookeeper.auth.file: %w", err)
	}
	return auth, nil
}

// source is where the servers' names come from.
func (f *clusterFlags) source() string {
	switch {
	case f.given():
		return "--zk"
	case f.Config != "":
		return f.Config
	case f.ZK != "":
		return "UNDERSTUDY_ZK"
	}
	return config.DefaultFile
}

// words are the flags that make another command speak of the same cluster.
func (f *clusterFlags) words() []string {
	var words []string
	if f.given() {
		words = append(words, "--zk "+printable.Word(f.ZK))
	}
	if f.Root != "" {
		words = append(words, "--root "+printable.Word(f.Root))
	}
	if f.Config != "" {
		words = append(words, "--config "+printable.Word(f.Config))
	}
	return words
}

// advised are the commands in a text that ask for a cluster.
var advised = regexp.MustCompile("`understudy (?:status|history|start|stop|pause|resume|switchover|drain|undrain|forget|fence|" +
	"restart|reload|reclone)\\b[^`]*`")

// typed has the commands in a text speak of the same cluster.
func (f *clusterFlags) typed(text string) string {
	words := strings.Join(f.words(), " ")
	if words == "" {
		return text
	}
	return advised.ReplaceAllStringFunc(text, func(c string) string { return strings.TrimSuffix(c, "`") + " " + words + "`" })
}
