// Package handoff lets a supervisor become another image of its process, another version as a rule, without its children's noticing: what
// the one writes for the other, and in which order everybody lets go. Each room writes its own record; this is the envelope around them.
//
// The children run on. What keeps the promises meanwhile is what keeps them while a supervisor is frozen: the lease that is left, and the
// guardians, which stay.
package handoff
