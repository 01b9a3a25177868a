// Package agent lets one supervisor ask another to kill the child of an activation, and to say whether it is dead.
//
// # What is asked, and what an answer means
//
// The asker holds the service's lock with a newer token. It names the child with the breadcrumb's words: service, token,
// node, machine, boot, and the identity of the child's process tree. A tree belongs to one term and so to one token; it is
// made before the lock is claimed, and never used again. So an agent may answer "dead", and the asker believes it, only when
//
//   - the asked process runs on that machine in that very boot, and the named tree was killed, proved empty and removed. A
//     late fork by a supervisor that thaws then fails: the activation can never run again; or
//   - the asked process is that node, on that machine, in another boot: no process outlives a boot.
//
// An agent that can prove neither says that it does not know. That is so on another machine, for a tree that it cannot see, for a
// breadcrumb that names no tree, and for an asker whose token is not newer. The asked process need not remember the token: a
// restarted supervisor can prove the death of its predecessor's child, and one that runs the child says only what the kernel has
// told it. A healthy active node that is asked has lost the lock: only the lock's owner asks.
//
// # How
//
// Over TCP, one question a connection. Both know a secret.
//
//	asked  -> asker  magic, nonce                            40 bytes
//	asker  -> asked  length, question, MAC(nonce, question)  the question holds the asker's own nonce
//	asked  -> asker  length, answer, MAC(nonce, question's MAC, answer)
//
// The MACs are HMAC-SHA256, computed differently in each direction. The asked side's nonce makes a question good for one
// connection, the asker's makes an answer good for one question: nothing can be replayed, and no clock is needed. Until
// a question is proved, the agent decodes nothing of it, does nothing and answers nothing.
//
// # Promises
//
// A second kind of question asks a node not to start a service for a while. It is sealed for its own purpose: an agent that does
// not know this kind treats it as forged, and no agent confuses the two kinds. The supervisor decides what a promise means, and
// when to give it; a guardian gives none.
//
// # Promised
//
//   - Without the secret nobody can have a child killed, or an answer believed: questions and answers that are forged, replayed,
//     cut short, oversized or slow end in a closed connection and a line in the log, at most one line a second.
//   - Memory and time are bounded: the number of connections is limited, and the oldest unproved one makes room for the next, so
//     that clients who hold connections open keep nobody out.
//
// # Not promised
//
//   - Secrecy: a listener learns names, tokens and paths of process trees.
//   - Protection against somebody who knows the secret: they can kill any child of this cluster, though only by the identity of its tree.
//   - A flood that fills the line, or the machine's own queue of connections, keeps the answer from coming. The chain then
//     continues as if there were no agent.
package agent
