package box

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

const oomScore = "/proc/self/oom_score_adj"

// Spared is a supervisor's score: the kernel kills it later than all programs, and before its guardians.
const Spared = -900

var exposed atomic.Pointer[int]

// Exposed is the score that this process was started with, which its programs get; nil: it has that still.
func Exposed() *int { return exposed.Load() }

// Spare has the kernel kill other processes before this one when memory is short, as far as its rights go: down to lowest.
func Spare(lowest int) {
	text, err := os.ReadFile(oomScore)
	was, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || wrong != nil {
		return
	}
	for _, score := range []int{lowest, lowest / 2, 0} { // without CAP_SYS_RESOURCE as low as somebody who had it left it
		if score < was && scored(score) == nil {
			exposed.CompareAndSwap(nil, &was)
			return
		}
	}
}

// Expose takes that back for what this process becomes.
func Expose() {
	if was := exposed.Load(); was != nil {
		_ = scored(*was) // it may always be raised
	}
}

func scored(score int) error { return os.WriteFile(oomScore, []byte(strconv.Itoa(score)), 0) }
