// Package device is the watchdog of a machine: a device that resets it when nobody has written to it for a while.
//
// A supervisor opens it, and closes it. Both guardians write to it meanwhile, and whoever is the last to have it says farewell.
package device
