// Package fencing decides when the child that a breadcrumb names is known to be dead, or can do no more harm.
//
// It keeps promise P5, fence before start: Chain.Fence returns nil only when
//   - this machine proves it (the target's tree is its own and gone, or ran under another boot), or
//   - a configured method says so, or
//   - the operator confirmed it, or the breadcrumb is gone, which happens only after its tree was proved dead, or
//   - no method is configured, or all failed and on_failure is grace, and the grace delay has passed since the lock was
//     claimed. By then the target's own lease has long ended (P3, and election.PreviousLease).
//
// All else is an error, a method that hangs and a context that ends included, and a child must not start.
//
// Its limits: the grace delay trusts that clocks run at about the same rate everywhere, and that a guardian on the other
// host could run; a host that is paused as a whole and resumed later breaks the second. The chain believes its methods: one
// that exits 0 without fencing defeats all of this. A grace delay never outweighs knowledge: the chain does not wait for a
// target that it sees alive on this machine.
//
// Every method takes a context and must return soon after it ends; the chain gives each a timeout of its own.
package fencing
