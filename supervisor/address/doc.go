// Package address sets an IP address that moves with a service, tells the neighbours where it is, and removes it.
//
// # Promised
//
//   - An address that another machine answers for is not set.
//   - Removing an address that is not there succeeds. Nothing but that very address, with its length, is removed.
//   - While Keep runs, the address is set and announced: at once, when the link comes up, when the MAC changes, and again and again.
//
// # Not promised
//
//   - That no other machine has the address: one that is cut off does not answer. The lock decides, and the undo that it waits for.
package address
