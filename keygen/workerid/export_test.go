// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/shardid/shardid/internal/statefile"
	"github.com/shardid/shardid/keygen"
)

// OrdinalOf is what Ordinal does with a machine's name.
var OrdinalOf = ordinal

// PrivateIPOf is PrivateIP on a machine with other addresses.
var PrivateIPOf = privateIP

// SetNow gives a Leased with a File another clock.
func SetNow(l *Leased, now func() time.Time) { l.leaseFile.now = now }

// OnWall gives a Recorded another wall clock.
func OnWall(a keygen.Assigner, wall func() time.Time) keygen.Assigner {
	r := a.(recorded)
	r.wall = wall
	return r
}

// Kill has the effect of the end of the process on a stored lease.
func Kill(l keygen.Lease) {
	m := l.(*fileLease).leaseFile
	_ = m.lock.Close()
	m.lock, m.of = nil, nil
}

// FailRenewal makes a stored lease find that the ledger is unreachable.
func FailRenewal(ctx context.Context, l keygen.Lease) {
	r := l.(*fileLease)
	r.raised = time.Time{}
	_, _ = r.Renew(ctx)
}

// Forge changes the content of a stored lease's file, with a valid checksum. It does
// nothing without a file.
func Forge(file string, change func(owner string, notBefore *int64, fileIdentity *string)) error {
	m := leaseFile{file: file}
	n, err := m.read()
	if err != nil || n.Sum == 0 {
		return err
	}
	change(n.Owner, &n.NotBefore, &n.Place)
	text, err := json.Marshal(n.summed())
	if err != nil {
		return err
	}
	return statefile.Replace(file, text)
}

// Before changes the file of a stored lease to the form of a version that stored no layout.
func Before(file string) error {
	m := leaseFile{file: file}
	n, err := m.read()
	if err != nil {
		return err
	}
	n.Layout = ""
	text, err := json.Marshal(n.summed())
	if err != nil {
		return err
	}
	return statefile.Replace(file, text)
}

// PlaceOf returns the identity of the lock of a stored lease's file.
func PlaceOf(file string) (string, error) {
	f, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	return fileIdentity(f)
}
