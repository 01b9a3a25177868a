// Package ensemble looks at the ZooKeeper servers of a config, and says what their setup means for failovers. Each server is asked by
// itself: by sessions, by the four-letter words that it allows, and, if it runs on this host, by its zoo.cfg.
package ensemble
