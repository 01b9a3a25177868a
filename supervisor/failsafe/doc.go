// Package failsafe keeps services running while no node reaches ZooKeeper. It holds this node's promises to others (Promises), and the
// gate of a session (Gate), which says how long the programs here may run. Members, promises and gate know nothing of services
// or programs. The lengths of promises and leases are package election's.
package failsafe
