// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/nilness"
)

// Stat is a znode's metadata; go-zookeeper's zk.Stat has the same fields.
type Stat struct {
	Czxid, Mzxid                int64 // the writes that created and last changed it
	Ctime, Mtime                int64 // their times, by the leader's clock, in ms since 1970
	Version, Cversion, Aversion int32 // how often its data, children and ACL changed
	EphemeralOwner              int64 // the session with which it ends, 0 for none
	DataLength, NumChildren     int32
	Pzxid                       int64 // the write that last changed its children
}

// childrenCreated returns how often a znode was created below this one. Cversion is how often one
// was created or deleted.
func (s Stat) childrenCreated() int64 { return (int64(s.Cversion) + int64(s.NumChildren)) / 2 }

// ACL is a right to a znode; go-zookeeper's zk.ACL has the same fields.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

// StatLike is any type with the fields of [Stat].
type StatLike interface {
	~struct {
		Czxid, Mzxid                int64
		Ctime, Mtime                int64
		Version, Cversion, Aversion int32
		EphemeralOwner              int64
		DataLength, NumChildren     int32
		Pzxid                       int64
	}
}

// ACLLike is any type with the fields of [ACL].
type ACLLike interface {
	~struct {
		Perms  int32
		Scheme string
		ID     string
	}
}

// Conn is the part of a client that the package uses. *zk.Conn of github.com/go-zookeeper/zk
// implements it; S and A are inferred. It must be safe for concurrent use, and a call must
// return when its connection is lost.
type Conn[S StatLike, A ACLLike] interface {
	Create(path string, data []byte, flags int32, acl []A) (string, error)
	Get(path string) ([]byte, *S, error)
	Set(path string, data []byte, version int32) (*S, error)
	Delete(path string, version int32) error
	Exists(path string) (bool, *S, error)
	Children(path string) ([]string, *S, error)
	Sync(path string) (string, error)
	SessionID() int64
}

// The flags of Create.
const (
	ephemeral  int32 = 1
	sequential int32 = 2
)

const anyVersion int32 = -1

// createRight is the ACL's permission to create znodes below one.
const createRight int32 = 4

// nodes is a Conn without its types.
type nodes interface {
	create(path string, data []byte, flags int32) (string, error)
	createLeafOnly(path string) (string, error)
	get(path string) ([]byte, Stat, error)
	set(path string, data []byte, version int32) (Stat, error)
	remove(path string, version int32) error
	exists(path string) (bool, Stat, error)
	children(path string) ([]string, Stat, error)
	sync(path string) error
	session() int64
}

type typedConn[S StatLike, A ACLLike] struct {
	conn Conn[S, A]
	acl  []A
}

func (t typedConn[S, A]) create(path string, data []byte, flags int32) (string, error) {
	return t.conn.Create(path, data, flags, t.acl)
}

// createLeafOnly creates a znode below which no process may create others.
func (t typedConn[S, A]) createLeafOnly(path string) (string, error) {
	acl := make([]A, 0, len(t.acl))
	for _, right := range t.acl {
		closed := ACL(right)
		closed.Perms &^= createRight
		acl = append(acl, A(closed))
	}
	return t.conn.Create(path, nil, 0, acl)
}

func (t typedConn[S, A]) get(path string) ([]byte, Stat, error) {
	data, stat, err := t.conn.Get(path)
	if err != nil {
		return nil, Stat{}, err
	}
	return data, Stat(*stat), nil
}

func (t typedConn[S, A]) set(path string, data []byte, version int32) (Stat, error) {
	stat, err := t.conn.Set(path, data, version)
	if err != nil {
		return Stat{}, err
	}
	return Stat(*stat), nil
}

func (t typedConn[S, A]) remove(path string, version int32) error {
	return t.conn.Delete(path, version)
}

func (t typedConn[S, A]) exists(path string) (bool, Stat, error) {
	found, stat, err := t.conn.Exists(path)
	if err != nil {
		return false, Stat{}, err
	}
	return found, Stat(*stat), nil
}

func (t typedConn[S, A]) children(path string) ([]string, Stat, error) {
	names, stat, err := t.conn.Children(path)
	if err != nil {
		return nil, Stat{}, err
	}
	return names, Stat(*stat), nil
}

func (t typedConn[S, A]) sync(path string) error {
	_, err := t.conn.Sync(path)
	return err
}

func (t typedConn[S, A]) session() int64 { return t.conn.SessionID() }

// client adds contexts to the calls of a Conn, which have none. A call whose context ended goes
// on until the Conn returns. There are at most maxCalls calls, so that an outage does not
// accumulate them.
type client struct {
	nodes nodes
	slots chan struct{}
}

const maxCalls = 64

// errNoConn is the error of a value that no constructor made.
var errNoConn = errors.New("zookeeper: the connection is nil; connect to ZooKeeper first")

// connect makes a client. Znodes that it creates get the ACL acl, or permission for everybody
// when it is empty.
func connect[S StatLike, A ACLLike](conn Conn[S, A], acl []ACL) (*client, error) {
	if nilness.Is(conn) {
		return nil, errNoConn
	}
	if len(acl) == 0 {
		acl = []ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
	}
	t := typedConn[S, A]{conn: conn}
	for _, right := range acl {
		t.acl = append(t.acl, A(right))
	}
	return &client{t, make(chan struct{}, maxCalls)}, nil
}

// answer is the result of a call of a Conn.
type answer[T any] struct {
	value T
	err   error
}

// call waits for f or for the end of ctx. An error that a retry cannot cure becomes a
// keygen.SetupError.
func call[T any](ctx context.Context, c *client, f func() (T, error)) (T, error) {
	var none T
	if c == nil {
		return none, errNoConn
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	done := make(chan answer[T], 1)
	go func() {
		value, err := f()
		<-c.slots
		done <- answer[T]{value, err}
	}()
	select {
	case a := <-done:
		return a.value, explained(a.err)
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (c *client) create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	return call(ctx, c, func() (string, error) { return c.nodes.create(path, data, flags) })
}

// found is a znode with its data.
type found struct {
	data []byte
	stat Stat
}

func (c *client) get(ctx context.Context, path string) (found, error) {
	return call(ctx, c, func() (found, error) {
		data, stat, err := c.nodes.get(path)
		return found{data, stat}, err
	})
}

func (c *client) set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	return call(ctx, c, func() (Stat, error) { return c.nodes.set(path, data, version) })
}

func (c *client) remove(ctx context.Context, path string, version int32) error {
	_, err := call(ctx, c, func() (struct{}, error) { return struct{}{}, c.nodes.remove(path, version) })
	return err
}

// exists returns nil for a znode that does not exist.
func (c *client) exists(ctx context.Context, path string) (*Stat, error) {
	return call(ctx, c, func() (*Stat, error) {
		found, stat, err := c.nodes.exists(path)
		if !found || err != nil {
			return nil, err
		}
		return &stat, nil
	})
}

// answers returns true when ZooKeeper answers a question about path within probeTimeout.
func (c *client) answers(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := c.exists(ctx, path)
	return err == nil
}

// sync makes the server catch up with its ensemble. Without it, a read may miss what other clients
// have just written.
func (c *client) sync(ctx context.Context, path string) error {
	_, err := call(ctx, c, func() (struct{}, error) { return struct{}{}, c.nodes.sync(path) })
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// children returns the names of the znodes below path, and the metadata of path.
func (c *client) children(ctx context.Context, path string) ([]string, Stat, error) {
	type parent struct {
		names []string
		stat  Stat
	}
	p, err := call(ctx, c, func() (parent, error) {
		names, stat, err := c.nodes.children(path)
		return parent{names, stat}, err
	})
	return p.names, p.stat, err
}

// The errors of a Conn are values of a package that is not imported here. So the functions
// below ask ZooKeeper whether a znode exists instead of examining the error.

// add creates a znode and returns false when it exists already.
func (c *client) add(ctx context.Context, path string, data []byte, flags int32) (bool, error) {
	return c.addBy(ctx, path, func() (string, error) { return c.create(ctx, path, data, flags) })
}

// addLeafOnly creates a znode below which no process may create others. It returns false when
// the znode exists already.
func (c *client) addLeafOnly(ctx context.Context, path string) (bool, error) {
	return c.addBy(ctx, path, func() (string, error) {
		return call(ctx, c, func() (string, error) { return c.nodes.createLeafOnly(path) })
	})
}

func (c *client) addBy(ctx context.Context, path string, create func() (string, error)) (bool, error) {
	var failed error
	for range 2 { // the znode may disappear between the two calls, at the end of its session
		_, err := create()
		if err == nil {
			return true, nil
		}
		failed = err
		stat, err := c.exists(ctx, path)
		if err != nil {
			break
		}
		if stat != nil {
			return false, nil
		}
	}
	return false, fmt.Errorf("create %s: %w", path, failed)
}

// find returns nil for a znode that does not exist.
func (c *client) find(ctx context.Context, path string) (*found, error) {
	var failed error
	for range 2 { // the znode may be created between the two calls
		f, err := c.get(ctx, path)
		if err == nil {
			return &f, nil
		}
		failed = err
		stat, err := c.exists(ctx, path)
		if err != nil {
			break
		}
		if stat == nil {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("read %s: %w", path, failed)
}

// swap replaces the data of a znode if it has the given version. It returns false when the
// version is another one, or the znode is missing.
func (c *client) swap(ctx context.Context, path string, data []byte, version int32) (bool, error) {
	_, err := c.set(ctx, path, data, version)
	if err == nil {
		return true, nil
	}
	if stat, lookErr := c.exists(ctx, path); lookErr == nil && (stat == nil || stat.Version != version) {
		return false, nil
	}
	return false, fmt.Errorf("write %s: %w", path, err)
}

// removeIfExists removes a znode, and accepts that it does not exist.
func (c *client) removeIfExists(ctx context.Context, path string, version int32) error {
	err := c.remove(ctx, path, version)
	if err == nil {
		return nil
	}
	if stat, lookErr := c.exists(ctx, path); lookErr == nil && stat == nil {
		return nil
	}
	return fmt.Errorf("delete %s: %w", path, err)
}

// createPath creates the znode path and its missing parents.
func (c *client) createPath(ctx context.Context, path string) error {
	if stat, err := c.exists(ctx, path); err != nil || stat != nil {
		return err
	}
	for at, rest := "", path; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest[1:], "/")
		if rest != "" {
			rest = "/" + rest
		}
		at += "/" + name
		if _, err := c.add(ctx, at, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// checkPath accepts absolute paths without empty names.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") || path == "/" || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
		return fmt.Errorf("%q; it must begin with a slash and have a name after each slash, like /ids/order", path)
	}
	return nil
}
