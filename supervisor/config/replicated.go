package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"understudy/supervisor/printable"
)

// Replicated says how the copies of a program are told apart and steered: it runs on every node, and one copy is promoted.
type Replicated struct {
	Address       string        `yaml:"address,omitempty" doc:"How other nodes reach this node's copy, with a port if the copies have different ones. Default: the host's name. Once nodes gives it for any other node, this node follows no other address and no other node."`
	Role          Command       `yaml:"role,flow,omitempty" doc:"Exit code 0 if the copy on this node is a follower, 8 if it is the primary. Anything else means not known."`
	Position      Command       `yaml:"position,flow,omitempty" doc:"Prints how far the copy's data goes: one number, with sync behind it if the copy has every acknowledged write, the word same if the program cannot tell but has lost nothing, or nothing if that is not known."`
	Promote       Command       `yaml:"promote,flow,omitempty" doc:"Makes the copy on this node the primary. It is done once role reports a primary."`
	Follow        Command       `yaml:"follow,flow,omitempty" doc:"Has the copy on this node follow the primary in UNDERSTUDY_ACTIVE_ADDRESS. It may be run again at any time."`
	Demote        Command       `yaml:"demote,omitempty,flow" doc:"Makes the primary on this node a follower in a switchover. Without it, or if it fails, the program is stopped and started as a follower."`
	Prepare       Command       `yaml:"prepare,omitempty,flow" doc:"Makes the stopped copy's data such that it can follow the primary in UNDERSTUDY_ACTIVE_ADDRESS, as pg_rewind does. It has no time limit."`
	Reclone       Command       `yaml:"reclone,omitempty,flow" doc:"Replaces the stopped copy's data by the primary's. No time limit."`
	Attempts      int           `yaml:"attempts" doc:"After how many failures in a row of follow or role the copy is stopped and prepared, and of prepare recloned."`
	Copies        Command       `yaml:"copies,omitempty,flow" doc:"Has the primary acknowledge a write only once a copy on one of the nodes in UNDERSTUDY_COPIES has it, and ends once no other copy counts."`
	PositionsFrom int           `yaml:"positions_from,omitempty" doc:"How many copies must have reported their position before any is promoted. The first promotion needs all. Default: all but one of the nodes that ever had a copy."`
	MaxLag        Size          `yaml:"max_lag" doc:"How far behind the best copy one may be that is promoted for its priority."`
	SeenBy        *SeenBy       `yaml:"seen_by,omitempty" doc:"Followers look at the primary from outside. If enough of them cannot reach it, another copy is promoted."`
	Interval      time.Duration `yaml:"interval" doc:"How often role and position are asked."`
	Timeout       time.Duration `yaml:"timeout" doc:"How long each of these commands may take before it is killed and has failed."`
	StateDir      string        `yaml:"state_dir" doc:"The folder for which primary this node's copy has followed. It has to outlast a boot."`

	// Others are the addresses that the files give, under nodes, for the copies of other nodes.
	Others map[string]string `yaml:"-"`
}

func (r *Replicated) setDefaults() {
	r.Interval, r.Timeout, r.StateDir, r.Attempts = time.Second, 10*time.Second, "/var/lib/understudy", 5
}

// nodes is what Others was read from.
func (r *Replicated) nodes() *yaml.Node {
	all := map[string]map[string]map[string]string{}
	for node, address := range r.Others {
		all[node] = map[string]map[string]string{"replicated": {"address": address}}
	}
	return encode(reflectOf(&all))
}

type keyedCommand struct {
	key     string
	command Command
}

// needed are the commands that every replicated service has.
func (r *Replicated) needed() []keyedCommand {
	return []keyedCommand{{"role", r.Role}, {"position", r.Position}, {"promote", r.Promote}, {"follow", r.Follow}}
}

// commands are all that steer a copy.
func (r *Replicated) commands() []keyedCommand {
	return append(r.needed(), keyedCommand{"demote", r.Demote}, keyedCommand{"prepare", r.Prepare}, keyedCommand{"reclone", r.Reclone},
		keyedCommand{"copies", r.Copies})
}

// mostCopies bounds positions_from.
const mostCopies = 1000

// mostAttempts bounds attempts.
const mostAttempts = 1000

// ofOneBoot finds the folders that do not outlast a boot.
var ofOneBoot = regexp.MustCompile(`^/(tmp|run|var/run|dev/shm)(/|$)`)

// check checks the keys, and refuses what does not go together with copies.
func (r *Replicated) check(p, service place, w written) {
	if r == nil {
		return
	}
	for _, c := range r.needed() {
		if at := p.key(c.key); len(c.command) == 0 && !at.given() {
			at.fault("missing: a replicated service has role, position, promote and follow")
		}
	}
	for _, c := range r.commands() {
		c.command.checkGiven(p.key(c.key))
	}
	checkBetween(p.key("attempts"), r.Attempts, 1, mostAttempts)
	host, port := printable.SplitPort(r.Address)
	if at := p.key("address"); at.given() && port == "" && !printable.IsHost(r.Address) {
		at.fault("%s is not the name or address of a host, with or without a port", quoted(r.Address))
	} else if strings.Count(r.Address, ":") == 1 { // more are of an IPv6 address
		checkAddress(at, r.Address)
	}
	if z := p.node.ZooKeeper; isLoopback(host) && len(z.Servers) > 0 && !z.local() {
		p.key("address").warn("no other host reaches %s, so no other copy could follow the one here: write this host's name or address",
			quoted(host))
	}
	if from := p.key("positions_from"); from.given() || r.PositionsFrom != 0 {
		checkBetween(from, r.PositionsFrom, 1, mostCopies)
		if len(r.Copies) > 0 {
			from.and(p.key("copies")).fault("does not go with copies, which records whose positions it takes")
		}
	}
	r.SeenBy.check(p.key("seen_by"))
	if r.MaxLag < 0 {
		p.key("max_lag").fault("must not be negative")
	}
	checkPositive(p.key("interval"), r.Interval)
	checkPositive(p.key("timeout"), r.Timeout)
	checkAbsolute(p.key("state_dir"), r.StateDir)
	if ofOneBoot.MatchString(r.StateDir) {
		p.key("state_dir").warn("%s may be empty after a boot: write a folder such as /var/lib/understudy", quoted(r.StateDir))
	}
	for _, a := range w.Address {
		if host == a.IP.Addr() {
			p.key("address").and(service.key("address")).fault("%s moves with the primary: give one here that this node keeps",
				quoted(host))
		}
	}
	r.checkTogether(p, service, w)
}

// DoubtfulPositions says what it takes that so few positions show the newest data of so many copies; "": it is safe where each write is on
// two copies before it is acknowledged.
func (r *Replicated) DoubtfulPositions(copies int) string {
	if r.PositionsFrom == 0 || r.PositionsFrom >= copies-1 {
		return ""
	}
	return fmt.Sprintf("%d positions of %d copies show the newest data only where each write is on %d copies before it is acknowledged: "+
		"write %d otherwise, or leave positions_from out", r.PositionsFrom, copies, copies-r.PositionsFrom+1, copies-1)
}

// checkTogether refuses what a replicated service cannot have.
func (r *Replicated) checkTogether(p, service place, w written) {
	w.checkFirst(service, p)
	for _, one := range []struct {
		key  string
		has  bool
		says string
	}{
		{"election", w.Election == ElectionQueue, "the copy with the newest data is next, so election is race"},
		{"failback", w.Failback, "`understudy switchover` moves it once the preferred copy has all the data"},
	} {
		if one.has {
			service.key(one.key).and(p).fault("does not go with replicated: %s", one.says)
		}
	}
}
