// Package failsafe keeps services running while no node sees ZooKeeper: what this node has promised others (Promises), and the
// gate of a session (Gate), which says how long what runs here may run. Members, promises and gate know nothing of services or
// programs. The lengths of promises and leases are package election's.
package failsafe
