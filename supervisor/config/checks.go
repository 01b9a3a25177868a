package config

import "time"

// Ready says when a process counts as ready: at most one of the ways is given, and none means at once. Of a oneshot,
// which is ready once it has ended, only Timeout counts, and 0 means that it may take as long as it likes.
type Ready struct {
	TCP     string        `yaml:"tcp,omitempty" oneof:"way" doc:"When host:port accepts a connection."`
	HTTP    string        `yaml:"http,omitempty" oneof:"way" doc:"When a GET of the URL is answered with a status from 200 to 399."`
	Exec    Command       `yaml:"exec,flow,omitempty" oneof:"way" doc:"When the command ends with success. It is tried again until then."`
	Notify  bool          `yaml:"notify,omitempty" oneof:"way" doc:"When it says READY=1 on the socket in NOTIFY_SOCKET, as sd_notify does."`
	After   time.Duration `yaml:"after,omitempty" oneof:"way" doc:"When it has run for this long."`
	Timeout time.Duration `yaml:"timeout,omitempty" doc:"How long it may take to become ready; a process that takes longer has failed. Does not go with after. A oneshot has to end in it; without it, a oneshot may take as long as it likes."`
}

// Health is a check of the running service, at most one of the ways; none means that there is no check.
type Health struct {
	Exec       Command       `yaml:"exec,flow,omitempty" oneof:"way" doc:"It is healthy while the command ends with success."`
	HTTP       string        `yaml:"http,omitempty" oneof:"way" doc:"It is healthy while a GET of the URL is answered with a status from 200 to 399."`
	TCP        string        `yaml:"tcp,omitempty" oneof:"way" doc:"It is healthy while host:port accepts a connection."`
	Interval   time.Duration `yaml:"interval" doc:"How long from the start of one check to the start of the next."`
	Timeout    time.Duration `yaml:"timeout" doc:"How long a check may take; one that takes longer is killed and has failed."`
	Failures   int           `yaml:"failures" doc:"How many failures in a row make it unhealthy."`
	StartDelay time.Duration `yaml:"start_delay" doc:"How long after it became ready the first check is made."`
}

// Precheck is a check on a standby; no command means that there is no check.
type Precheck struct {
	Exec     Command       `yaml:"exec,flow,omitempty" doc:"The node could run the service while the command ends with success."`
	Interval time.Duration `yaml:"interval" doc:"How long from the start of one check to the start of the next."`
	Timeout  time.Duration `yaml:"timeout" doc:"How long a check may take; one that takes longer is killed and has failed."`
}

// LogFile is where a process's stdout and stderr go; no File means the supervisor's own.
type LogFile struct {
	File     string `yaml:"file,omitempty" doc:"The file, an absolute path."`
	MaxSize  Size   `yaml:"max_size" doc:"The size at which the file is put aside and a new one begun, such as 50MiB."`
	Keep     int    `yaml:"keep" doc:"How many files that were put aside are kept."`
	Compress bool   `yaml:"compress" doc:"Whether files that were put aside are compressed (gzip)."`
}

// Way names the key that says how readiness is seen, "" when none does.
func (r Ready) Way() string {
	switch {
	case r.TCP != "":
		return "tcp"
	case r.HTTP != "":
		return "http"
	case len(r.Exec) > 0:
		return "exec"
	case r.Notify:
		return "notify"
	case r.After > 0:
		return "after"
	}
	return ""
}

// Way names the key that says how health is seen, "" when there is no check.
func (h Health) Way() string {
	switch {
	case len(h.Exec) > 0:
		return "exec"
	case h.HTTP != "":
		return "http"
	case h.TCP != "":
		return "tcp"
	}
	return ""
}
