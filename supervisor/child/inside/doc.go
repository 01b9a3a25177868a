// Package inside is what runs in front of a program, in the program's own container: the copy of a supervisor that waits at a gate and
// becomes the program (Fork, Become), with the settings that it applies on the way, and the stub above it where there is no cgroup
// (ForkStub, InitMain). It is also the init of a container in front of a supervisor (PID1Main).
//
// A process that will be a program runs it, and its stub. The supervisor makes these two, tells them what to become, and explains what
// they say.
package inside
