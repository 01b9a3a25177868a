// Package replica keeps one node's copy of a replicated program running as a follower, while no term of this node has it promoted.
//
// A follower needs no lease, and no ZooKeeper: it runs in a tree of its own, which the guardians end with the supervisor (P4). P1: a copy
// that says of itself that it is the primary, while no term has it, is killed. A term takes the copy over with its tree, has the tree
// fall with the session's lease, and only then promotes it; the tree ends
// with the term, and the copy comes back as a follower in a new one.
//
// Copy is what the program is told to do, and what is shown of it. Its parts have their own state: data (what is known of its data, and
// kept on disk), lending (its tree, and what a term has of it), orders (of operators), mender (prepare and reclone), looking (what a
// follower says while it runs). Promotion is what a term does with the copy.
package replica
