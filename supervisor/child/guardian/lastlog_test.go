package guardian

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"understudy/supervisor/guard"
)

// A guardian's last line looks like any other of its supervisor's log.
func TestLastLineIsInTheStyleOfTheLog(t *testing.T) {
	text, json := guard.LogStyle{Level: "info"}, guard.LogStyle{JSON: true, Level: "warn"}
	killed := guard.Deeds{Killed: []string{"web", "redis"}, Why: "the supervisor is gone", Took: 30 * time.Millisecond, Sessions: 1, Closed: 1}
	stuck := killed
	stuck.Alive, stuck.Closed = []string{"db"}, 0
	idle := guard.Deeds{Why: "the supervisor is gone", Sessions: 1, Err: errors.New("no server")}
	recorded := idle
	recorded.Recorded = []string{"web"}
	for name, c := range map[string]struct {
		log   lastLog
		deeds guard.Deeds
		want  string
	}{
		"text":    {lastLog{style: text, supervisor: 123}, killed, `^\d{4}-\S+ \[WARN\]  understudy.guard: the supervisor died, its guardian killed the programs: supervisor=123 reason="the supervisor is gone" killed="web, redis" took=30ms session=closed\n$`},
		"JSON":    {lastLog{style: json, journal: true}, killed, `^<4>\{.*"@level":"warn".*"killed":"web, redis".*"session":"closed".*\}\n$`},
		"journal": {lastLog{style: text, journal: true}, idle, `^<4>\[WARN\]  understudy.guard: the supervisor is gone, its guardian ended the session: .*session="left to expire: no server"\n$`},
		"stuck":   {lastLog{style: text, journal: true}, stuck, `^<3>\[ERROR\] .*could not kill.* session="left to expire" alive=db\n$`},
		"record":  {lastLog{style: text, journal: true}, recorded, `^<3>\[ERROR\] .*could not remove the record of what it has undone: .*session="left to expire: no server" recorded=web\n$`},
		"silent":  {lastLog{style: guard.LogStyle{Level: "error"}, journal: true}, killed, `^$`},
	} {
		if got := c.log.line(c.deeds); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
