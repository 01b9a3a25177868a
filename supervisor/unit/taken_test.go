package unit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"understudy/supervisor/config"
)

// What is to answer for the service is looked at, on addresses too that are set only when it starts.
func TestAPortOfAnotherUnitIsTaken(t *testing.T) {
	s := config.DefaultService("true")
	floating := config.Address{IP: "192.0.2.10/32"}
	s.Processes = append([]config.Process{{Name: "ip", Sets: &floating}}, s.Processes...)
	s.Processes[1].Ready.TCP = "192.0.2.10:80"
	s.Health.HTTP = "http://127.0.0.1/health"
	var asked []string
	holds := map[string]string{}
	who := func(address string, since time.Duration, ours []netip.Addr) string {
		asked = append(asked, fmt.Sprintf("%s %v %v", address, since, ours))
		return holds[address]
	}
	if err := taken(s, 7, who); err != nil || fmt.Sprint(asked) != "[127.0.0.1:80 7ns [192.0.2.10] 192.0.2.10:80 7ns [192.0.2.10]]" {
		t.Error(err, asked)
	}
	holds["192.0.2.10:80"] = "nginx (pid 7, nginx.service)"
	if err := taken(s, 7, who); err == nil || err.Error() != "192.0.2.10:80 is answered by nginx (pid 7, nginx.service), which does not belong to this service" {
		t.Error(err)
	}
}
