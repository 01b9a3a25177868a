package zkmem

import (
	"fmt"
	"time"
)

// version is what srvr says; clients that parse it expect a release of ZooKeeper.
const version = "3.8.0-understudy-zkmem, built on 2022-02-25 08:49 UTC"

// Figures are what the four-letter words tell.
type Figures struct {
	Port                 string
	Tick, Least, Longest time.Duration
	Connections          int
	Received, Sent       int64
}

// IsWord reports whether four bytes are a word that is answered.
func IsWord(w string) bool { return w == "ruok" || w == "isro" || w == "srvr" || w == "conf" }

// Word answers a four-letter word.
func (d *Data) Word(word string, f Figures) string {
	switch word {
	case "ruok":
		return "imok"
	case "isro":
		return "rw"
	case "srvr":
		return fmt.Sprintf("Zookeeper version: %s\nLatency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n"+
			"Zxid: %#x\nMode: standalone\nNode count: %d\n", version, f.Received, f.Sent, f.Connections, d.Zxid, len(d.tree.nodes)+1)
	}
	return fmt.Sprintf("clientPort=%s\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\ntickTime=%d\n"+
		"maxClientCnxns=0\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=0\n",
		f.Port, f.Tick.Milliseconds(), f.Least.Milliseconds(), f.Longest.Milliseconds())
}
