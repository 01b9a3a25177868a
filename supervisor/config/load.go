package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"gopkg.in/yaml.v3"
)

// largestFile bounds what is read; a thousand services need a tenth of it.
const largestFile = 4 << 20

// whatToWrite is what a file that says nothing is answered with.
const whatToWrite = "is empty: write at least\n" +
	"    zookeeper: {servers: [\"zk1:2181\", \"zk2:2181\", \"zk3:2181\"]}\n" +
	"    services: {NAME: {command: [PROGRAM, ARGUMENT]}}"

// document is the file as it is written. Its fields are read in their order: services start from the defaults.
type document struct {
	Node      string             `yaml:"node"`
	ZooKeeper ZooKeeper          `yaml:"zookeeper"`
	Log       Log                `yaml:"log"`
	Defaults  Service            `yaml:"defaults"`
	Services  map[string]Service `yaml:"services"`
}

// LoadFile reads a configuration, or returns Faults that name everything wrong with it.
func LoadFile(name string) (*Config, error) {
	src, err := readFile(name)
	if err != nil {
		return nil, Faults{{File: name, Message: "cannot be read: " + err.Error()}}
	}
	return Load(name, src)
}

// Load is LoadFile for text that is already at hand; name is what faults call it.
func Load(name string, src []byte) (*Config, error) {
	root, fault := parse(src)
	if fault != nil {
		fault.File = name
		return nil, Faults{*fault}
	}
	if root == nil {
		return nil, Faults{{File: name, Line: 1, Column: 1, Message: whatToWrite}}
	}
	empty := Default()
	doc := document{ZooKeeper: empty.ZooKeeper, Log: empty.Log, Defaults: DefaultService()}
	d := newDecoder(name, &doc.Defaults)
	d.document(root, &doc)

	cfg := &Config{Node: doc.Node, ZooKeeper: doc.ZooKeeper, Log: doc.Log, Services: doc.Services}
	var v validator
	if cfg.Node == "" && !d.given(path{"node"}) {
		cfg.Node = v.hostname()
	}
	v.config(cfg)
	v.settings(path{"defaults"}, doc.Defaults)
	d.place(v.found)
	d.tooMuch()
	if err := d.faults.orNil(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// readFile reads a regular file whole; a FIFO or a device must not block or flood us.
func readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reason(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, reason(err)
	}
	if info.IsDir() {
		return nil, errors.New("it is a directory")
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	src, err := io.ReadAll(io.LimitReader(file, largestFile+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(src) > largestFile {
		return nil, errors.New("it is larger than 4 MiB")
	}
	return src, nil
}

// reason drops the operation and the name, which a fault says itself.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// tooMuch says so when not all of the file was looked at.
func (d *decoder) tooMuch() {
	switch {
	case d.values > mostValues:
		d.add(&yaml.Node{}, nil, "the file stands for too many values (does an alias repeat aliases?)")
	case len(d.faults) >= mostFaults:
		d.add(&yaml.Node{}, nil, "more than "+strconv.Itoa(mostFaults)+" faults: the rest of the file was not looked at")
	}
}

// document reads the file's only mapping.
func (d *decoder) document(root *yaml.Node, doc *document) {
	if root.Kind != yaml.MappingNode {
		d.fault(root, nil, "%s where keys such as zookeeper: and services: are expected", kindOf(root))
		return
	}
	d.value(root, reflectOf(doc), nil)
}
