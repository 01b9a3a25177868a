// Package handoff lets a supervisor become another image of its process, usually another version, while its children run on. It defines
// the envelope that the previous image writes for the next one, and the order in which services let go. Each room writes its own
// record in the envelope.
//
// Meanwhile the promises hold as they do while a supervisor is frozen: by the rest of the lease, and by the guardians, which stay.
package handoff
