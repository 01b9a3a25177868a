package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Election is how a service's candidates find out who is next.
type Election string

// The elections.
const (
	ElectionRace  Election = "race"
	ElectionQueue Election = "queue"
)

// Profile is a set of times that go together.
type Profile string

// The profiles.
const (
	ProfileFast   Profile = "fast"
	ProfileNormal Profile = "normal"
	ProfileWide   Profile = "wide"
)

// Contain is how a child's process tree is held together.
type Contain string

// The containments.
const (
	ContainAuto   Contain = "auto"
	ContainCgroup Contain = "cgroup"
	ContainPidns  Contain = "pidns"
	ContainStrict Contain = "strict" // auto, but never the last resort
)

// RestartPolicy says whether a child that ended is started again.
type RestartPolicy string

// The restart policies.
const (
	RestartOnFailure RestartPolicy = "on-failure"
	RestartAlways    RestartPolicy = "always"
	RestartNever     RestartPolicy = "never"
)

// OnFailure says what follows when every fencing method has failed.
type OnFailure string

// The ways on when fencing failed.
const (
	OnFailureRefuse OnFailure = "refuse"
	OnFailureGrace  OnFailure = "grace"
)

// LogLevel is the least severe level that is logged.
type LogLevel string

// LogInfo is the default.
const LogInfo LogLevel = "info"

// OnLoss says what follows when the whole ensemble is gone.
type OnLoss string

// What can follow.
const (
	OnLossStop     OnLoss = "stop"
	OnLossFailsafe OnLoss = "failsafe"
)

// LogFormat is how a log line is written.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// WatchdogMode says whether a hardware watchdog is used.
type WatchdogMode string

// The watchdog's modes.
const (
	WatchdogOff       WatchdogMode = "off"
	WatchdogAutomatic WatchdogMode = "automatic"
	WatchdogRequired  WatchdogMode = "required"
)

// choice is a string of which only certain values mean something.
type choice interface{ choices() []string }

func (Election) choices() []string { return words(ElectionRace, ElectionQueue) }
func (Profile) choices() []string  { return words(ProfileFast, ProfileNormal, ProfileWide) }
func (Contain) choices() []string {
	return words(ContainAuto, ContainCgroup, ContainPidns, ContainStrict)
}
func (RestartPolicy) choices() []string { return words(RestartOnFailure, RestartAlways, RestartNever) }
func (OnFailure) choices() []string     { return words(OnFailureRefuse, OnFailureGrace) }
func (OnLoss) choices() []string        { return words(OnLossStop, OnLossFailsafe) }
func (LogLevel) choices() []string      { return []string{"trace", "debug", "info", "warn", "error"} }
func (WatchdogMode) choices() []string {
	return words(WatchdogOff, WatchdogAutomatic, WatchdogRequired)
}
func (LogFormat) choices() []string { return words(LogText, LogJSON) }

func words[T ~string](all ...T) []string {
	list := make([]string, len(all))
	for i, one := range all {
		list[i] = string(one)
	}
	return list
}

// Command is a program and its arguments. A file may write it as a list, or as one string for SplitWords.
type Command []string

// Signal is written by its name, with or without SIG, or by its number.
type Signal syscall.Signal

// String is the signal's name without SIG, or its number where it has no name.
func (s Signal) String() string {
	if name := unix.SignalName(syscall.Signal(s)); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(s))
}

// MarshalText writes what UnmarshalText reads.
func (s Signal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads TERM, SIGTERM, sigterm or 15.
func (s *Signal) UnmarshalText(text []byte) error {
	word := string(text)
	if n, err := strconv.Atoi(word); err == nil {
		if n < 1 || n > 64 {
			return fmt.Errorf("%d is not a signal: numbers go from 1 to 64", n)
		}
		*s = Signal(n)
		return nil
	}
	name := strings.TrimPrefix(strings.ToUpper(word), "SIG")
	if n := unix.SignalNum("SIG" + name); n != 0 {
		*s = Signal(n)
		return nil
	}
	return fmt.Errorf("%s is not a signal%s", quoted(word), cmp.Or(DidYouMean(name, signalNames()), ": write TERM, INT, HUP or another"))
}

// Umask is written in octal.
type Umask uint32

// MarshalText writes what UnmarshalText reads.
func (u Umask) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%03o", uint32(u)), nil }

// UnmarshalText reads 027, 0027, 27 and 0o27.
func (u *Umask) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(text), "0o"), 8, 32)
	if err != nil || n > 0o777 {
		return fmt.Errorf("%s is not an umask: write it in octal, from 000 to 777, such as \"027\"", quoted(string(text)))
	}
	*u = Umask(n)
	return nil
}

func signalNames() []string {
	var names []string
	for n := syscall.Signal(1); n < 32; n++ {
		names = append(names, Signal(n).String())
	}
	return names
}

// ServerAddress is one ZooKeeper server, always as host:port.
type ServerAddress string

// defaultPort is where ZooKeeper listens for clients unless told otherwise.
const defaultPort = "2181"

// UnmarshalText reads host, host:port, [IPv6] and [IPv6]:port.
func (s *ServerAddress) UnmarshalText(text []byte) error {
	server, err := parseServer(string(text))
	if err != nil {
		return err
	}
	*s = server
	return nil
}

// ParseServers reads the comma-separated form that flags and environment variables use.
func ParseServers(list string) ([]ServerAddress, error) {
	var servers []ServerAddress
	for word := range strings.SplitSeq(list, ",") {
		server, err := parseServer(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func parseServer(text string) (ServerAddress, error) {
	if err := plausibleServer(text); err != nil {
		return "", err
	}
	host, port := text, defaultPort
	switch {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		host = text[1 : len(text)-1]
	case strings.Contains(text, ":"):
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("%s is not host:port", quoted(text))
		}
	}
	if host == "" {
		return "", fmt.Errorf("%s names no host", quoted(text))
	}
	if strings.HasPrefix(text, "[") && !strings.Contains(host, ":") {
		return "", fmt.Errorf("%s: brackets are for IPv6 addresses", quoted(text))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%s: the port must be a number from 1 to 65535", quoted(text))
	}
	return ServerAddress(net.JoinHostPort(host, port)), nil
}

// plausibleServer catches what users take from other tools' connection strings.
func plausibleServer(text string) error {
	switch {
	case text == "":
		return errors.New("empty; write host:port")
	case strings.Contains(text, "://"):
		return fmt.Errorf("%s: write host:port without a scheme", quoted(text))
	case strings.Contains(text, "/"):
		return fmt.Errorf("%s: a path does not belong to a server; that is what root is for", quoted(text))
	case strings.Contains(text, ","):
		return fmt.Errorf("%s: write each server as an item of its own", quoted(text))
	case strings.HasPrefix(text, "-"):
		return fmt.Errorf("%s is a flag, and no server", quoted(text))
	case strings.ContainsAny(text, " ;|"):
		return fmt.Errorf("%s: commas separate servers (in YAML, write each as an item of its own)", quoted(text))
	case !isPrintable(text) || strings.ContainsAny(text, "\t@?#\\\"'"):
		return fmt.Errorf("%s contains a character that is part of no host name", quoted(text))
	case strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "["):
		return fmt.Errorf("%s: an IPv6 address goes in brackets, as in [2001:db8::1]:2181", quoted(text))
	}
	return nil
}
