package steps

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy/election/jute"
)

// What a log has beside the operations of package jute.
const (
	logMagic          = "ZKLG"
	opCreateContainer = 19
	opDeleteContainer = 20
	opCreateTTL       = 21
	opCloseSession    = -11
	opError           = -1
)

// Ends is where those of a leader's transactions that were committed may end, by its epoch, the likeliest first.
type Ends map[int64][]int64

// Read returns the transactions in the logs of servers that are all up and agree, by their data directories, in order, and where each
// leader's may end. That is most likely the newest which most logs have. A leader that is cut off leaves some that its log alone has and that
// were never committed, and a server that is brought up to date by a snapshot lacks some that were: so it may be the newest of any log. A
// server that a leader was bringing up to date when both failed has logged what the leader had alone, forgets that, and may lead without it:
// so it may be the newest which all logs have.
func Read(dirs ...string) (all []Txn, ends Ends, err error) {
	found, count := map[int64]Txn{}, map[int64]int{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "version-2", "log.*"))
		if err != nil {
			return nil, nil, fmt.Errorf("find logs: %w", err)
		}
		here := map[int64]Txn{}
		for _, file := range files {
			if err := readLog(file, here); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", file, err)
			}
		}
		for zxid, t := range here {
			found[zxid] = t
			count[zxid]++
		}
	}
	ends = Ends{}
	common := map[int64]int{} // how many logs have the newest that the most have
	for _, zxid := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[zxid])
		epoch, n := zxid>>32, count[zxid]
		end := ends[epoch]
		if end == nil {
			end = make([]int64, 3)
		}
		if n > len(dirs)/2 {
			end[0] = zxid
		}
		if end[1] = zxid; n >= common[epoch] {
			common[epoch], end[2] = n, zxid
		}
		ends[epoch] = end
	}
	return all, ends, nil
}

// Least returns what is refused of the possible history of which the least is: what the logs leave open has been as the steps allow, if they
// allow any of it.
func (e Ends) Least(all []Txn, follow func([]Txn) (refused []string)) (refused []string) {
	chosen := map[int64]int64{}
	for epoch, possible := range e {
		chosen[epoch] = possible[0]
	}
	try := func() []string {
		return follow(slices.DeleteFunc(slices.Clone(all), func(t Txn) bool { return t.Zxid > chosen[t.Zxid>>32] }))
	}
	refused = try()
	for _, epoch := range slices.Sorted(maps.Keys(e)) {
		for _, end := range e[epoch][1:] {
			before := chosen[epoch]
			if end == before || len(refused) == 0 {
				continue
			}
			chosen[epoch] = end
			if fewer := try(); len(fewer) < len(refused) {
				refused = fewer
			} else {
				chosen[epoch] = before
			}
		}
	}
	return refused
}

// readLog reads one file. A server may write to it: what is not whole yet is left out.
func readLog(path string, into map[int64]Txn) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var head [16]byte // magic, version, and the database's number
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:4]) == "\x00\x00\x00\x00" {
		return nil //nolint:nilerror // it is being made
	}
	if string(head[:4]) != logMagic {
		return errors.New("this is no log of ZooKeeper's")
	}
	for {
		var head [12]byte // the sum, as a long, and the length
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return nil //nolint:nilerror // no more
		}
		sum, length := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint32(head[8:])
		if length == 0 || length > jute.MaxFrame { // what was allocated before it was needed
			return nil
		}
		record := make([]byte, length+1)
		if _, err := io.ReadFull(in, record); err != nil || record[length] != 'B' || uint64(adler32.Checksum(record[:length])) != sum {
			return nil //nolint:nilerror // it is being written
		}
		t, err := decode(record[:length])
		if err != nil {
			return err
		}
		into[t.Zxid] = t
	}
}

// decode reads a transaction.
func decode(record []byte) (t Txn, err error) {
	r := jute.NewReader(record)
	t.Session = r.Int64()
	cxid := r.Int32()
	t.Zxid, t.At = r.Int64(), time.UnixMilli(r.Int64())
	switch op := r.Int32(); op {
	case opCloseSession:
		t.Ended, t.Expired = true, cxid == 0
		return t, r.Err()
	case int32(jute.OpMulti):
		for n := r.Count(8); n > 0 && r.Err() == nil; n-- {
			op, body := r.Int32(), r.Buffer()
			if op == opError { // none of it was done
				return Txn{Zxid: t.Zxid, At: t.At}, r.Err()
			}
			if err := t.add(op, jute.NewReader(body)); err != nil {
				return t, err
			}
		}
		return t, r.Err()
	default:
		return t, t.add(op, r)
	}
}

func (t *Txn) add(op int32, r *jute.Reader) error {
	var o Op
	switch op {
	case int32(jute.OpCreate), int32(jute.OpCreate2), opCreateContainer, opCreateTTL:
		o = Op{Create, r.String(), r.Buffer()}
	case int32(jute.OpSetData):
		o = Op{Set, r.String(), r.Buffer()}
	case int32(jute.OpDelete), opDeleteContainer:
		o = Op{Kind: Delete, Path: r.String()}
	case int32(jute.OpCheck):
		o = Op{Kind: Check, Path: r.String()}
	default: // no change of znodes
		return nil
	}
	t.Ops = append(t.Ops, o)
	return r.Err()
}
