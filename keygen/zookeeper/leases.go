// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"fmt"
	"net/url"
	"unicode/utf8"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// Leases is a ledger of leased worker ids, for [workerid.NewLeased]. Its clock is that of
// ZooKeeper's leader, in milliseconds. It is safe for concurrent use.
//
// It stores the same records as [Workers], but has no address, no comparison of clocks and no
// file.
type Leases struct {
	client *client
	path   string
}

var _ workerid.Ledger = (*Leases)(nil)

// NewLeases returns a ledger below the znode path: "/worker", say. It does not call ZooKeeper.
// Acl is the ACL of its znodes; the default permits everybody.
func NewLeases[S StatLike, A ACLLike](conn Conn[S, A], path string, acl ...ACL) (*Leases, error) {
	if err := checkPath(path); err != nil {
		return nil, fmt.Errorf("zookeeper: the path of leases is %w", err)
	}
	client, err := connect(conn, acl)
	if err != nil {
		return nil, err
	}
	return &Leases{client, path}, nil
}

// at returns the registry of the claim's namespace, and the request.
func (l *Leases) at(c workerid.Claim) (registry, request, error) {
	for name, value := range map[string]string{"namespace": c.Namespace, "owner": c.Owner} {
		if value == "" || !utf8.ValidString(value) {
			return registry{}, request{}, fmt.Errorf("the %s %q must be a UTF-8 text that is not empty", name, value)
		}
	}
	a := request{
		owner: c.Owner, holder: c.Holder, most: c.Most,
		clock: c.Layout, claim: c,
		term: c.Term, hold: c.Term, longest: c.Term,
		resumes: func(entry) bool { return true },
	}
	if c.Layout.Unit < 1 {
		return registry{}, request{}, fmt.Errorf("%w: the unit %v is not positive", keygen.ErrLayout, c.Layout.Unit)
	}
	return registry{client: l.client, znodes: znodes{dir: l.path + "/of-" + url.PathEscape(c.Namespace)}}, a, nil
}

// Take implements workerid.Ledger.
func (l *Leases) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	b, a, err := l.at(c)
	if err == nil {
		var e entry
		if e, err = b.take(ctx, a); err == nil {
			return workerid.Entry{Worker: e.worker, Generation: e.Generation, NotBefore: e.notBefore, Ceiling: e.Ceiling}, nil
		}
	}
	return workerid.Entry{}, fmt.Errorf("zookeeper: take a lease: %w", err)
}

// Renew implements workerid.Ledger.
func (l *Leases) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (int64, error) {
	b, a, err := l.at(c)
	if err == nil {
		var renewed entry
		if renewed, err = b.renew(ctx, a, held(e)); err == nil {
			return renewed.Ceiling, nil
		}
	}
	return 0, fmt.Errorf("zookeeper: renew a lease: %w", err)
}

// held returns the entry as its holder knows it. The ceiling in the registry is at least as
// high.
func held(e workerid.Entry) entry {
	return entry{worker: e.Worker, notBefore: e.NotBefore, record: record{Generation: e.Generation}}
}

// Return implements workerid.Ledger.
func (l *Leases) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	b, a, err := l.at(c)
	if err == nil {
		err = b.returnEntry(ctx, a, held(e), end, false)
	}
	if err != nil {
		return fmt.Errorf("zookeeper: return a lease: %w", err)
	}
	return nil
}
