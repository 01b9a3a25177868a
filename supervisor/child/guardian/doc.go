// Package guardian is the guardian process. Two of them watch each supervisor, and run nothing else: what guard.Guardian decides, done over
// the kernel. A guardian's loop waits only for events. It uses no file system but procfs and cgroupfs, no network, and no log until all is
// done; goroutines beside it close sessions, and undo effects, which is what Duties are for.
//
// P3, P4: it kills the trees when their lease ends, when its supervisor is gone, or when its twin goes unreplaced.
package guardian
