// SPDX-License-Identifier: Apache-2.0

package zookeeper_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/keygen/zookeeper"
)

// standIn is a ZooKeeper in memory, so that examples and tests run without a
// server. An application passes the *zk.Conn that zk.Connect returns.
type standIn struct {
	mu    sync.Mutex
	nodes map[string]*node
	zxid  int64
}

type node struct {
	data []byte
	stat zookeeper.Stat
	made int // children so far

	closed bool // no children can be made
}

var errNode = errors.New("no node, a node that exists, or another version")

func newStandIn() *standIn { return &standIn{nodes: map[string]*node{"/": {}}} }

func (s *standIn) Create(name string, data []byte, flags int32, acl []zookeeper.ACL) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent := s.nodes[path.Dir(name)]
	if parent == nil {
		return "", errNode
	}
	if parent.closed {
		return "", errors.New("zk: not authenticated")
	}
	if flags&2 != 0 {
		name = fmt.Sprintf("%s%010d", name, parent.made)
	}
	if s.nodes[name] != nil {
		return "", errNode
	}
	parent.made++
	s.zxid++
	now := time.Now().UnixMilli()
	n := &node{closed: acl[0].Perms&4 == 0, data: data, stat: zookeeper.Stat{Czxid: s.zxid, Mzxid: s.zxid, Ctime: now, Mtime: now}}
	if flags&1 != 0 {
		n.stat.EphemeralOwner = s.SessionID()
	}
	s.nodes[name] = n
	return name, nil
}

func (s *standIn) Get(name string) ([]byte, *zookeeper.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	if n == nil {
		return nil, nil, errNode
	}
	stat := n.stat
	return n.data, &stat, nil
}

func (s *standIn) Set(name string, data []byte, version int32) (*zookeeper.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	if n == nil || version >= 0 && version != n.stat.Version {
		return nil, errNode
	}
	s.zxid++
	n.data = data
	n.stat.Version++ // wraps round, as ZooKeeper's does
	n.stat.Mzxid, n.stat.Mtime = s.zxid, time.Now().UnixMilli()
	stat := n.stat
	return &stat, nil
}

func (s *standIn) Delete(name string, version int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	if n == nil || version >= 0 && version != n.stat.Version {
		return errNode
	}
	for below := range s.nodes {
		if strings.HasPrefix(below, name+"/") {
			return errNode // it is not empty
		}
	}
	delete(s.nodes, name)
	return nil
}

func (s *standIn) Exists(name string) (bool, *zookeeper.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	if n == nil {
		return false, &zookeeper.Stat{}, nil
	}
	stat := n.stat
	return true, &stat, nil
}

func (s *standIn) Children(name string) ([]string, *zookeeper.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for below := range s.nodes {
		if rest, ok := strings.CutPrefix(below, name+"/"); ok && !strings.Contains(rest, "/") {
			names = append(names, rest)
		}
	}
	return names, &zookeeper.Stat{}, nil
}

func (s *standIn) Sync(name string) (string, error) { return name, nil }

func (s *standIn) SessionID() int64 { return 7 }

// ageTo sets the version of the only znode below a counter's.
func (s *standIn) ageTo(counter string, version int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range s.nodes {
		if path.Dir(name) == counter {
			n.stat.Version = version
		}
	}
}
