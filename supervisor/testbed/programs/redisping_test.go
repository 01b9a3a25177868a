package programs

import (
	"path/filepath"
	"testing"

	"understudy/supervisor/config"
	"understudy/supervisor/testbed/must"
)

// redis-cli ping ends with 0 whatever the answer is. One that refuses all writes, or its clients, is not well.
func TestTheExamplesOfRedisReadTheAnswerToPing(t *testing.T) {
	for _, file := range []string{"redis.yaml", "redis-replicated.yaml"} {
		read := config.Read(filepath.Join("../../../examples", file), "db-1")
		must.OK(t, read.Err())
		for answer, well := range map[string]bool{
			"PONG": true, "LOADING Redis is loading the dataset in memory": true, "BUSY Redis is busy running a script.": true, "": false,
			"NOAUTH Authentication required.": false, "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.": false,
		} {
			r := newRigged(t, map[string]string{"redis-cli": "echo \"" + answer + "\""})
			if _, code, _ := r.run(t, "", append([]string{"env"}, read.Config.Services["redis"].Health.Exec...)...); (code == 0) != well {
				t.Errorf("%s: the answer %q: exit code %d", file, answer, code)
			}
		}
	}
}
