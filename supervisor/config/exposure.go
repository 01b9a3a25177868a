package config

import (
	"net"
	"strings"
)

// securityPage is where the packages put it.
const securityPage = "/usr/share/doc/understudy/docs/security.md"

// Exposure says, in one line, what strangers at the servers can do; "" when the config says that only the nodes reach them, or when
// only this machine does.
func (z ZooKeeper) Exposure() string {
	switch {
	case z.TrustedNetwork, z.local():
		return ""
	case z.Auth != nil:
		return "any client that reaches the ZooKeeper servers can end any session, and so stop services (see " + securityPage + "). " +
			"Where client certificates or a firewall keep other clients out, set `trusted_network: true` in zookeeper"
	}
	return "any client that reaches the ZooKeeper servers can stop a service, move it, or have two copies of it run (see " + securityPage +
		"). Keep other clients out with a firewall and set `trusted_network: true` in zookeeper, or set its auth"
}

// local tells whether all servers are reached through the loopback alone.
func (z ZooKeeper) local() bool {
	for _, server := range z.Servers {
		host, _, err := net.SplitHostPort(string(server))
		if err != nil {
			host = string(server)
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			return false
		}
	}
	return len(z.Servers) > 0
}

// isLoopback tells whether a host is this machine and nothing else.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
