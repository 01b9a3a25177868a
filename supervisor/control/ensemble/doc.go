// Package ensemble looks at the ZooKeeper servers of a config, and says what their setup means for failovers. Each server is asked by
// itself: by sessions, and by the four-letter words that it allows.
package ensemble
