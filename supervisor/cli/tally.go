package cli

import (
	"fmt"
	"strings"

	"understudy/election"
	"understudy/supervisor/control/web"
)

// tally is the one line that a service manager shows: how many services have which role on this node, and what is wrong with all of them.
func tally(l web.Local) string {
	counts := map[election.Role]int{}
	for _, s := range l.Services {
		counts[s.Role]++
	}
	var parts []string
	for _, role := range []election.Role{
		election.RoleActive, election.RoleStandby, election.RoleClaiming, election.RoleFencing, election.RoleStopping, election.RolePaused,
		election.RoleFailed, election.RoleOffline,
	} {
		if n := counts[role]; n > 0 || role == election.RoleActive || role == election.RoleStandby {
			parts = append(parts, fmt.Sprint(n, " ", role))
		}
	}
	line := count(len(l.Services), "service") + ": " + strings.Join(parts, ", ")
	if l.Session == "" {
		line += "; no session with ZooKeeper"
	}
	if l.Fault != "" {
		line += "; " + l.Fault
	}
	return line
}
