// Package handoff lets a supervisor become another image of its process, usually another version, while its children run on: what the
// former image writes for the next, and in which order services let go. Each room writes its own record; this is the envelope around them.
//
// The promises are kept meanwhile as they are while a supervisor is frozen: by the rest of the lease, and by the guardians, which stay.
package handoff
