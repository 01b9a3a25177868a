// Package copies decides which copy of a replicated program may be promoted. It is pure: what the copies' nodes have told goes in, and a
// verdict comes out.
//
// It keeps two rules:
//
//   - The newest data wins. A copy that has followed a newer promotion is newer, whatever the positions say; of two that have followed the
//     same one, the one with the greater position is.
//   - What is not known does not count. A copy without a position is not fit, and is none of those that have to have told theirs.
package copies
