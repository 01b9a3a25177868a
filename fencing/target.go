package fencing

import "time"

// Target is whoever a breadcrumb names: the child that may still be running, and where.
type Target struct {
	Service        string
	Node           string // the supervisor's name in the set
	Host           string
	Machine        string // the machine id, the same across boots
	Boot           string // the boot id
	Token          int64  // the fencing token of the activation
	GuardianPid    int
	Address        string        // where its agent listens, if anywhere
	SessionTimeout time.Duration // of the session that held the lock
}
