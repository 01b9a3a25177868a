package config

import (
	"strings"
	"testing"
)

func TestWhoReachesTheServersIsToldUnlessTheyAreTrusted(t *testing.T) {
	const certificates = `tls: {cert_file: /c, key_file: /k}`
	for _, c := range []struct {
		zookeeper string
		says      string
	}{
		{`servers: [zk1:2181]`, "or set its auth"},
		{`servers: [zk1:2181], trusted_network: true`, ""},
		{`servers: [zk1:2181], auth: {scheme: digest, file: /f}`, "can end any session"},
		{`servers: [zk1:2181], auth: {scheme: digest, file: /f}, trusted_network: false`, "can end any session"},
		{`servers: [zk1:2181], auth: {scheme: digest, file: /f}, ` + certificates, "can end any session"}, // the servers may not ask for ours
		{`servers: [zk1:2181], auth: {scheme: digest, file: /f}, trusted_network: true`, ""},
		{`servers: ["127.0.0.1:2181", "localhost:2182", "[::1]:2183"]`, ""},
		{`servers: ["127.0.0.1:2181", zk2:2181]`, "or set its auth"},
	} {
		r := newLoader("u.yaml", disk{}).load([]byte("node: n\nzookeeper: {" + c.zookeeper + "}\nservices: {}\n"))
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", c.zookeeper, err)
			continue
		}
		z := r.Config.ZooKeeper
		if says := z.Exposure(); !strings.Contains(says, c.says) || (c.says == "") != (says == "") {
			t.Errorf("%s: %q", c.zookeeper, says)
		}
	}
}
