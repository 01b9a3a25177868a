// Package onethread has tests under the race detector run one thread at a time. Each package whose tests use testing/synctest imports it.
//
// Go 1.26's race detector breaks when two threads of one bubble fire timers at once: they share one of its contexts. time.After(0) in two
// goroutines is enough. Without the race detector the package does nothing.
package onethread
