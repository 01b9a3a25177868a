// Package agent lets one supervisor ask another: is the child of this activation dead? make it so.
//
// # What is asked, and what an answer means
//
// The asker holds the service's lock with a newer token. It names the child by what the breadcrumb says: service, token,
// node, machine, boot, and the identity of the child's process tree. A tree belongs to one term and so to one token; it is
// made before the lock is claimed, and never used for another. So "dead" may be answered, and is believed, only when
//
//   - the asked process runs on that machine in that very boot, and the named tree was killed and proved empty and was
//     removed, so that a fork that comes late, of a supervisor that thaws, fails: the activation can never run again; or
//   - the asked process is that node, on that machine, in another boot: nothing outlives a boot.
//
// An agent that can prove neither says that it does not know: another machine, a tree that cannot be seen from here, no tree
// named at all, an asker whose token is not newer. It does not matter whether the asked process remembers the token: a
// supervisor that was restarted can prove the end of what its predecessor ran, and one that runs the child says
// only what the kernel has told it. A healthy active node that is asked has lost the lock: only the lock's owner asks.
//
// # How
//
// Over TCP, or TLS with certificates on both sides; one question a connection. Both know a secret: one that they share, or
// what only the two ends of a TLS connection can derive from it.
//
//	asked  -> asker  magic, nonce                            40 bytes
//	asker  -> asked  length, question, MAC(nonce, question)  the question holds the asker's own nonce
//	asked  -> asker  length, answer, MAC(nonce, question's MAC, answer)
//
// The MACs are HMAC-SHA256, made differently in each direction. The asked side's nonce makes a question good for one
// connection, the asker's makes an answer good for one question: nothing can be replayed, and no clock is needed. Before
// a question is proved, nothing of it is decoded, nothing is done and nothing is answered.
//
// # Promises
//
// A second kind of question asks a node not to start a service for a while. It is sealed for its own purpose: an agent that does
// not know it takes it for forged, and neither kind is ever taken for the other. The supervisor decides
// what a promise means, and when to give it; a guardian gives none.
//
// # Promised
//
//   - Without the secret nobody gets anything killed or believed: questions and answers that are forged, replayed, cut
//     short, oversized or slow end in a closed connection and a line in the log, at most one line a second.
//   - Memory and time are bounded: so many connections at a time, the oldest unproved one making room for the next, so that
//     those who hold connections open keep nobody out.
//
// # Not promised
//
//   - Secrecy, where there is no TLS: a listener learns names, tokens and paths of process trees.
//   - Protection against one who knows the secret: he can end any child of this cluster, though only by the identity of its tree.
//   - A flood that fills the line, or the machine's own queue of connections, keeps the answer from coming. The chain then
//     goes on as if there were no agent.
package agent
