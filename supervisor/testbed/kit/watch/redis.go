package watch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// redis is a connection that speaks Redis' protocol.
type redis struct {
	net.Conn
	replies *bufio.Reader
}

// RedisPassword is what a server that demands one is given.
const RedisPassword = "long and secret"

func dialRedis(addr string, within time.Duration) (*redis, error) {
	conn, err := net.DialTimeout("tcp", addr, within)
	if err != nil {
		return nil, err
	}
	r := &redis{conn, bufio.NewReader(conn)}
	_, _ = r.askWithin(within, "AUTH", RedisPassword) // a server that demands none says so
	return r, nil
}

// DialRedis is for a client that keeps its numbers in a list.
func DialRedis(addr string) (Store, error) {
	r, err := dialRedis(addr, AnswerWithin)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *redis) Put(n int64) error {
	_, err := r.ask("RPUSH", "numbers", strconv.FormatInt(n, 10))
	return err
}

func (r *redis) All() ([]int64, error) {
	var all []int64
	for {
		words, err := r.ask("LRANGE", "numbers", strconv.Itoa(len(all)), strconv.Itoa(len(all)+atOnce-1))
		if err != nil || len(words) == 0 {
			return all, err
		}
		for _, word := range words {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
	}
}

// ask sends a command and reads its reply: one word, or a list of them.
func (r *redis) ask(words ...string) ([]string, error) { return r.askWithin(AnswerWithin, words...) }

func (r *redis) askWithin(within time.Duration, words ...string) ([]string, error) {
	_ = r.SetDeadline(time.Now().Add(within))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(r, b.String()); err != nil {
		return nil, err
	}
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	if line[0] != '*' {
		return []string{line[1:]}, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return nil, err
	}
	list := make([]string, n)
	for i := range list {
		if _, err := r.line(); err != nil { // its length: a number has no line end in it
			return nil, err
		}
		if list[i], err = r.line(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *redis) line() (string, error) {
	line, err := r.replies.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" || line[0] == '-' {
		return "", errors.New("redis says " + line)
	}
	return line, nil
}

// ReplicatedRedis is a connection to one copy. A write counts once another copy has it, too.
type ReplicatedRedis struct{ *redis }

// DialReplicatedRedis is for a client whose writes count once another copy has them, too.
func DialReplicatedRedis(addr string) (Store, error) {
	r, err := dialRedis(addr, AnswerWithin)
	if err != nil {
		return nil, err
	}
	return ReplicatedRedis{r}, nil
}

// Put writes a number.
func (r ReplicatedRedis) Put(n int64) error {
	_, err := r.Held("RPUSH", "numbers", strconv.FormatInt(n, 10))
	return err
}

// Held sends a command that writes. The reply counts once another copy has what was written.
func (r ReplicatedRedis) Held(words ...string) ([]string, error) {
	said, err := r.ask(words...)
	if err != nil {
		return nil, err
	}
	held, err := r.ask("WAIT", "1", "800")
	if err == nil && (len(held) != 1 || held[0] == "0") {
		err = errors.New("no other copy has it")
	}
	return said, err
}

// AskRedis keeps a connection over which it asks whether a copy is the master.
func AskRedis(addr string) func() bool {
	var r *redis
	return func() bool {
		if r == nil {
			var err error
			if r, err = dialRedis(addr, 50*time.Millisecond); err != nil {
				return false
			}
		}
		said, err := r.info()
		if err != nil {
			r.Close()
			r = nil
		}
		return said["role"] == "master"
	}
}

// info is what a copy says of its replication.
func (r *redis) info() (map[string]string, error) {
	_ = r.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := r.Write([]byte("*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n")); err != nil {
		return nil, err
	}
	head, err := r.line()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for n += 2; n > 0; {
		line, err := r.replies.ReadString('\n')
		if err != nil {
			return nil, err
		}
		n -= len(line)
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		said[key] = value
	}
	return said, nil
}

// RedisState asks one copy.
func RedisState(addr, from string) (primary, follows bool, err error) {
	r, err := dialRedis(addr, 200*time.Millisecond)
	if err != nil {
		return false, false, err
	}
	defer r.Close()
	said, err := r.info()
	return said["role"] == "master", said["role"] == "slave" && said["master_link_status"] == "up" && said["master_host"] == from, err
}

// PromoteRedis is what an operator does by hand.
func PromoteRedis(addr string) error {
	r, err := dialRedis(addr, AnswerWithin)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.ask("REPLICAOF", "NO", "ONE")
	return err
}
